"""When a replay promises something, and when a run shows a coupling."""

from typing import Annotated

from traceforge.thresholds import Meaning

TRANSFER_QUANTILE: Annotated[
    float, Meaning("quantile", "Contention only adds to a transfer; this one is taken for clean.", "references")
] = 0.25

FIRST_QUARTILE: Annotated[
    float, Meaning("quantile", "Work that is on time by the rule first_quartile.", "references")
] = 0.25

LONGEST_GROWTH_NS: Annotated[
    int, Meaning("ns", "A transfer grows by no more where waits make waits without end.", "replay.outcome")
] = 600_000_000_000

NOTICEABLE_SHARE: Annotated[
    float, Meaning("share of the time", "A smaller gain or loss is not worth a change.", "replay.outcome.verdict")
] = 0.01

NEGLIGIBLE_SHARE: Annotated[
    float,
    Meaning("share of the time", "A coupling that costs less may be an error.", "replay.calibration.verdict"),
] = 0.002

LEAST_STEPS: Annotated[float, Meaning("steps", "Fewer do not support a policy.", "replay.outcome.verdict")] = 10

LEAST_PREDICTABILITY: Annotated[
    float, Meaning("correlation", "Below it lateness cannot be foreseen.", "replay.outcome.verdict")
] = 0.3

# Recorded jobs whose waiting ranks spin on others' cores: predicted rightly at an overshoot of 0.05, wrongly at 0.28.
LARGEST_COUPLING: Annotated[
    float,
    Meaning(
        "of the mean wait", "Transfers grow by no more where a run does not show it.", "replay.outcome.gain_ceiling"
    ),
] = 2.0

LONGEST_STRETCH: Annotated[
    float,
    Meaning(
        "standard deviations",
        "What waits show by varying is not known to hold so far below them.",
        "attribute.finding.delay_low_ns",
    ),
] = 10.0

NOTICEABLE_WAITS: Annotated[
    float, Meaning("share of all waits", "Where there are fewer, they bound no growth.", "replay.calibration.high")
] = 0.1

CLEAN_PART: Annotated[
    float,
    Meaning(
        "of another transfer of its size", "A transfer that nobody waits for takes as much.", "replay.calibration.high"
    ),
] = 0.7

MOST_OVERSHOOT: Annotated[
    float, Meaning("share of steps", "Above it the replay promises too much.", "replay.outcome.verdict")
] = 0.15

SURE_CONFIDENCE: Annotated[
    float, Meaning("confidence", "A coupling is there if this interval leaves 0 out.", "replay.calibration.verdict")
] = 0.99

LEAST_ITERATIONS: Annotated[
    float, Meaning("iterations", "With fewer no coupling is measured.", "replay.calibration")
] = 20

LEAST_F: Annotated[
    float, Meaning("F statistic", "A weaker instrument measures nothing (Stock and Yogo 2005).", "replay.calibration")
] = 10

MOST_WIDTH: Annotated[float, Meaning("coefficient", "Nothing follows from a wider interval.", "replay.calibration")] = 2

LONG_WAIT_QUANTILE: Annotated[
    float, Meaning("quantile", "The wait that is held against the clocks.", "replay.calibration")
] = 0.9

CLOCK_ERROR_SLOPE: Annotated[
    float, Meaning("coefficient", "A lower slope is an error of the last arrival's clock.", "replay.calibration")
] = -0.8

LARGEST_INSTRUMENT: Annotated[
    float, Meaning("standard deviations", "Beyond it own work counts as this much.", "replay.calibration")
] = 2.5

LARGEST_RESIDUAL: Annotated[
    float, Meaning("standard deviations", "Beyond it a transfer counts as this much (Huber).", "replay.calibration")
] = 2

ORDINARY_WAIT_QUANTILE: Annotated[
    float, Meaning("quantile", "Longer waits count as this long.", "replay.calibration")
] = 0.95

USUAL_WORK_QUANTILE: Annotated[
    float, Meaning("quantile", "What a piece of work takes if nothing slows it.", "replay.calibration")
] = 0.25

LONGEST_WORK: Annotated[float, Meaning("usual durations", "Longer work counts as this long.", "replay.calibration")] = 4

LONGEST_PAUSE_SHARE: Annotated[
    float, Meaning("share of an iteration", "A thread may be off its core as long.", "replay.calibration")
] = 0.3

MOST_WITHIN_SHARE: Annotated[
    float, Meaning("share of its duration", "An operation does the rest itself.", "replay.calibration")
] = 0.2

STEP_ITERATIONS: Annotated[
    int, Meaning("iterations", "A pace that lasts for fewer is no pace of its own.", "references")
] = 4

STEP_P_VALUE: Annotated[
    float, Meaning("probability", "A rank that gets slower by likelier chance keeps its usual pace.", "references")
] = 0.001

STEP_SPREADS: Annotated[
    float,
    Meaning("standard deviations", "A smaller step may be a drift, of which no iteration begins it.", "references"),
] = 4.0

STEP_SHARE: Annotated[
    float, Meaning("share of the rank's work", "A smaller step does not change what is usual.", "references")
] = 0.03

# From NCCL's own model of rings between hosts (tuning.cc): protocol LL, and Simple; the middle one by ratio.
STEP_LATENCY_NS: Annotated[
    float, Meaning("ns", "A ring's step between hosts, where no setting says another.", "replay.what_if")
] = 6_000

LEAST_STEP_LATENCY_NS: Annotated[
    float, Meaning("ns", "A ring's step between hosts takes no less.", "replay.what_if")
] = 2_700

MOST_STEP_LATENCY_NS: Annotated[
    float, Meaning("ns", "A ring's step between hosts takes no more.", "replay.what_if")
] = 14_000

LEAST_SPEED_QUANTILE: Annotated[
    float,
    Meaning("quantile", "Of measured speeds, what one may be as low as; the rest above, as high.", "replay.what_if"),
] = 0.25

MOST_WITHIN_SPEED: Annotated[
    float, Meaning("ratio", "Links within a host are no faster, over those between hosts.", "replay.what_if")
] = 20.0

# Set on generated jobs that were run again with the change: largest error 0.1 % of the time.
LEAST_MODEL_ERROR: Annotated[
    float, Meaning("share of the time", "A replay of a changed job may be off by as much.", "replay.what_if")
] = 0.0015

MODEL_ERROR_OF_CHANGE: Annotated[
    float, Meaning("share of the change", "And by this, as logarithms.", "replay.what_if")
] = 0.005
MOST_OUT_OF_TURN: Annotated[
    float,
    Meaning(
        "share of iterations",
        "Ranks whose order by number of calls changes in more run one program over unlike data.",
        "attribute.delay",
    ),
] = 0.1
