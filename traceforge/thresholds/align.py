"""How surely clocks are tied, calls are matched and steps are found."""

from typing import Annotated

from traceforge.thresholds import Meaning

RESOLUTION_RESIDUALS: Annotated[
    float,
    Meaning(
        "clock residuals",
        "A time between two ranks below this is not resolved and supports no answer.",
        "timeline.arrival.below_resolution, attribute.finding, replay.calibration, Change.below_resolution",
    ),
] = 3

EARLIEST_EPOCH_NS: Annotated[
    int,
    Meaning(
        "ns",
        "Smaller times (2001 and before) count from a session or boot, so that 0 is a time; else 0 stands for none.",
        "align.rank, align.clock",
    ),
] = 10**18

# Two clocks, from the ends of the collectives they share.
LEAST_ANCHORS: Annotated[int, Meaning("collectives", "Fewer common ends do not tie two clocks.", "align.clock")] = 3
LEAST_DRIFT_ANCHORS: Annotated[
    int, Meaning("collectives", "Fewer common ends do not show a drift.", "align.clock.drift_ppb")
] = 10
LEAST_JUMP_NS: Annotated[
    int, Meaning("ns", "A smaller jump of the difference of two clocks is no setting of one.", "align.clock_piece")
] = 500_000
LEAST_JUMP_SPREADS: Annotated[
    float, Meaning("standard deviations", "Nor is one smaller than this against the other steps.", "align.clock_piece")
] = 20
LEAST_JUMP_RATIO: Annotated[
    int, Meaning("ratio", "Nor is one that is not so many times the next largest step.", "align.clock_piece")
] = 4
STEEP_PPB: Annotated[
    int, Meaning("parts per billion", "Where a clock runs off by more it was set.", "timeline.iteration.is_partial")
] = 10_000_000
LEAST_DRIFT_ERRORS: Annotated[
    float, Meaning("standard errors", "A drift closer to zero is taken as zero.", "align.clock.drift_ppb")
] = 4
MOST_DRIFT_PPB: Annotated[
    float, Meaning("parts per billion", "Crystals differ by up to 1e-4; more is no drift.", "align.clock.drift_ppb")
] = 1e6
MOST_POOLED_ERRORS: Annotated[
    float, Meaning("standard errors", "Ranks of a host that differ by more drift apart.", "align.clock.drift_ppb")
] = 4
LEAST_PIECE_NS: Annotated[
    int, Meaning("ns", "A crystal's frequency follows temperature and does not change faster.", "align.clock_piece")
] = 5_000_000_000
LEAST_PIECE_ANCHORS: Annotated[
    int, Meaning("collectives", "Fewer common ends do not support a piece of a clock's course.", "align.clock_piece")
] = 20
LEAST_AUTOCORRELATION: Annotated[
    float, Meaning("correlation", "Deviations from a line that correlate less are noise.", "align.clock_piece")
] = 0.1
LEAST_AUTOCORRELATION_ERRORS: Annotated[
    float, Meaning("standard errors", "Deviations from a line that correlate less are noise.", "align.clock_piece")
] = 4
MOST_BENT_SPREAD: Annotated[
    float, Meaning("share of a line's spread", "Pieces must bring the spread below this.", "align.clock_piece")
] = 0.9
STRAY_SHARE: Annotated[
    float, Meaning("share of collectives", "Left out at either end of the range of ends.", "align.clock.residual_ns")
] = 0.05
SHARED_CLOCK_RESIDUAL_NS: Annotated[
    int, Meaning("ns", "Host clocks that processes convert by themselves agree to this.", "align.clock.residual_ns")
] = 10_000
SAME_HOST_RESIDUAL_NS: Annotated[
    int, Meaning("ns", "Device clocks of a host agree to this; up to 70 µs were seen.", "align.clock.residual_ns")
] = 100_000
LEAST_COMMON_ENDS: Annotated[
    int, Meaning("collectives", "From here on only operations that end together tie clocks.", "align.clock")
] = 30
LARGEST_END_GAP_NS: Annotated[
    int, Meaning("ns", "Ends of messages one way and the other agree to this, or they are not common.", "align.clock")
] = 20_000
LEAST_OUT_OF_ORDER_NS: Annotated[
    int, Meaning("ns", "On one clock no rank ends this long before another starts.", "align.clock.status")
] = 1_000_000
MOST_OUT_OF_ORDER_SHARE: Annotated[
    float, Meaning("share of collectives", "More out of order, and ranks do not read one clock.", "align.clock.status")
] = 0.2

# Calls of different ranks.
LEAST_IN_ORDER_SHARE: Annotated[
    float, Meaning("share of collectives", "A match must have no end before a start in this many.", "align.match")
] = 0.8
ORDER_TOLERANCE_NS: Annotated[
    int, Meaning("ns", "An end may precede another rank's start by this: clocks are not aligned yet.", "align.match")
] = 100_000
LEAST_PAIRS: Annotated[int, Meaning("calls", "Fewer that agree in kind do not align two ranks.", "align.match")] = 3
LEAST_PAIRED_SHARE: Annotated[
    float, Meaning("share of the shorter sequence", "Fewer pairs do not align two ranks.", "align.match")
] = 0.5
AGREEING_SHARE: Annotated[
    float, Meaning("share of pairs", "Share whose ends must agree: losses leave a shift right in part.", "align.match")
] = 0.25
EQUAL_SHIFT_RATIO: Annotated[
    float, Meaning("ratio of widths", "Shifts up to this much worse than the best are as good.", "align.match")
] = 2
LEAST_SHIFT_GAIN: Annotated[
    float, Meaning("ratio of widths", "A window is shifted only if ends agree this much better.", "align.match")
] = 4
GROUP_TOLERANCE_NS: Annotated[
    int, Meaning("ns", "As above, where host clocks are only coarsely aligned.", "align.membership")
] = 200_000
MOST_GROUP_VIOLATIONS: Annotated[
    float, Meaning("violations an iteration", "More, and the groups are not those of the call.", "align.membership")
] = 0.2
GROUP_ROUNDS: Annotated[
    int, Meaning("rounds", "Clocks are aligned by groups, and these found anew, so often.", "align.membership")
] = 3
FARTHER_ENDS: Annotated[
    float, Meaning("ratio", "Larger groups whose members end this much farther apart do not meet.", "align.membership")
] = 3.0
UNSTEADY_ENDS_NS: Annotated[
    int,
    Meaning(
        "ns",
        "Beyond as often that of the steadiest, a change of ends from one iteration to the next that is usual "
        "among ranks that meet.",
        "align.membership",
    ),
] = 2_000

# Files and steps.
LEAST_WINDOW_GAP_NS: Annotated[
    int, Meaning("ns", "Files that begin this long after all others end are of another window.", "align.rank")
] = 1_000_000_000
LEAST_LAUNCH_GAP_NS: Annotated[
    int,
    Meaning(
        "ns",
        "Windows of unknown processes that begin so long after all others end are of another launch.",
        "meta.run.run_name",
    ),
] = 3_600_000_000_000
LEAST_STEPS: Annotated[int, Meaning("repetitions", "What repeats less often is no training step.", "align.step")] = 3
DISTINCT_CHANGE_RATIO: Annotated[
    float,
    Meaning(
        "ratio",
        "Two clocks tell which steps are one if in any other pairing their difference changes by this much more.",
        "align.step",
    ),
] = 4
LEAST_REPEATED_SHARE: Annotated[
    float, Meaning("share of calls", "A period repeats if this share equals the call one period later.", "align.step")
] = 0.95
LEAST_HELD_KINDS: Annotated[
    float,
    Meaning("share of kernel names", "Kernels repeat by steps if most turns hold so many.", "align.step"),
] = 0.98
PERIOD_KINDS: Annotated[
    int, Meaning("kernel names", "So many of the rarest that recur tell which periods to try.", "align.step")
] = 24
PERIOD_TIMES: Annotated[
    int, Meaning("times a step", "One of them may occur up to so often in a step.", "align.step")
] = 4
MOST_LAST_DIFFERENCE: Annotated[
    float, Meaning("share of the median turn", "A last turn that differs by more ends elsewhere.", "align.step")
] = 0.1
LEAST_PARTS: Annotated[
    int, Meaning("turns a run of the optimizer", "Turns of calls are parts of a step from here on.", "align.step")
] = 2
LEAST_FILLED_SHARE: Annotated[
    float, Meaning("share of time", "An annotation is a step if it covers this much from first to last.", "align.step")
] = 0.5
LEAST_ISSUED_SHARE: Annotated[
    float, Meaning("share of calls", "An annotation is a step, too, if it issues this much of them.", "align.step")
] = 0.95
LEAST_STEP_CALLS: Annotated[
    int, Meaning("calls a step", "An annotation that issues fewer is around single calls.", "align.step")
] = 2
