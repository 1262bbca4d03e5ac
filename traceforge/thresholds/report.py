"""What a report says of a run, and what it colours as good or bad."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_ITERATIONS_OF_A_LEVEL: Annotated[
    float, Meaning("iterations", "Each side of a lasting change of iteration time has so many.", "lasting change")
] = 3

CLEAR_CHANGE_ERRORS: Annotated[
    float,
    Meaning(
        "standard errors", "A lasting change is larger: the search over all splits makes 3 common.", "lasting change"
    ),
] = 4.5

LEAST_CHANGE_SHARE: Annotated[
    float, Meaning("share of the mean before", "A smaller lasting change is not reported.", "lasting change")
] = 0.02

LEAST_EPISODE_ITERATIONS: Annotated[
    float,
    Meaning(
        "iterations", "So many iterations slower than the whole baseline may be an episode.", "headline of a comparison"
    ),
] = 3

EPISODE_DISTANCE: Annotated[
    float,
    Meaning(
        "times the baseline's slowest iteration less its median",
        "Iterations of an episode are slower than its slowest by as much, as among more iterations some are by chance.",
        "headline of a comparison",
    ),
] = 1.0

HIDDEN_SHARE: Annotated[
    float,
    Meaning(
        "share of the change of what is not hidden",
        "Where transfers themselves change by less, that change is of how much of them is hidden.",
        "what changed since a baseline",
    ),
] = 0.5

LEAST_EPISODE_SHARE: Annotated[
    float,
    Meaning("share of iterations", "An episode covers at least this much of the run.", "headline of a comparison"),
] = 0.1

LEAST_LEFT_OUT_SHARE: Annotated[
    float,
    Meaning("share of the longest duration", "An axis that would leave out less begins at zero.", "iteration time"),
] = 0.25

LEAST_WON_BACK_SHARE: Annotated[
    float,
    Meaning("share of the time lost", "Less that faster stretches win back is not said.", "caption of the lost time"),
] = 0.1

HABITUALLY_LAST_SHARE: Annotated[
    float,
    Meaning(
        "share of iterations",
        "A rank that is last in fewer is not called habitually late.",
        "caption of the lateness chart",
    ),
] = 0.5

HABITUALLY_LAST_SIGMAS: Annotated[
    float,
    Meaning(
        "standard deviations", "Excess over an equal chance of each rank to be last.", "caption of the lateness chart"
    ),
] = 2

LATENESS_COLOUR_SHARE: Annotated[
    float,
    Meaning(
        "share of the mean iteration", "Less lateness never gets the strongest colour.", "colours of the lateness chart"
    ),
] = 0.02

LEAST_PHASE_SHARE: Annotated[
    float,
    Meaning(
        "share of the iteration", "Phases and differences of waiting below this are not named.", "caption of the phases"
    ),
] = 0.01

UNEVEN_WAIT_RATIO: Annotated[
    float,
    Meaning("ratio", "Ranks whose longest and shortest waits differ by less wait alike.", "caption of the phases"),
] = 1.1

SKEW_OVER_TRANSFER: Annotated[
    float,
    Meaning("ratio", "Total skew above this many times the transfer is pointed out.", "caption of the collectives"),
] = 2

GOOD_MATCHED_SHARE: Annotated[
    float,
    Meaning("share of calls", "Matched collective calls from which the tile is good.", "trust: collectives matched"),
] = 0.99

FAIR_MATCHED_SHARE: Annotated[
    float,
    Meaning("share of calls", "Matched collective calls below which the tile is bad.", "trust: collectives matched"),
] = 0.8

GOOD_KEPT_SHARE: Annotated[
    float, Meaning("share of events", "Stored events from which the tile is good.", "trust: events kept")
] = 0.999

FAIR_KEPT_SHARE: Annotated[
    float, Meaning("share of events", "Stored events below which the tile is bad.", "trust: events kept")
] = 0.9

MOST_UNEXPLAINED_SHARE: Annotated[
    float, Meaning("share of the delay", "More unexplained delay calls for caution.", "trust: unexplained")
] = 0.25

LEAST_CULPRIT_SHARE: Annotated[
    float,
    Meaning(
        "share of all delay", "A culprit that owns less is summed with others of its cause.", "bars of the waterfall"
    ),
] = 0.05

LEAST_MARGIN_SHARE: Annotated[
    float,
    Meaning("share of a rank's time", "Smaller parts of an added rank's time are left out.", "table of one more rank"),
] = 0.0005

LEAST_SIZES: Annotated[
    float, Meaning("sizes", "Fewer sizes of collectives show no trend of bandwidth.", "chart of bus bandwidth")
] = 3

LEAST_ITERATIONS: Annotated[
    float, Meaning("iterations", "Fewer are described by their mean alone.", "caption of the iteration times")
] = 3
LEAST_UNNAMED_SHARE: Annotated[
    float,
    Meaning("share of the device's time", "Less work without an operation is not mentioned.", "largest operations"),
] = 0.0005

LEAST_ITERATIONS_OF_A_TAIL: Annotated[
    float, Meaning("iterations", "Fewer have no slowest twentieth; their range is shown.", "caption of iteration times")
] = 20

LEAST_DRAWN_BUBBLE_SHARE: Annotated[
    float, Meaning("share of the picture", "A bubble that is shorter is not drawn.", "report, pipeline")
] = 0.004

LEAST_BOUND_RATIO: Annotated[
    float,
    Meaning("ratio of throughput", "A lower end of an interval below it bounds nothing.", "intervals of pacing"),
] = 0.1

MOST_OF_A_STRIP: Annotated[
    float,
    Meaning(
        "share of lost time", "Who owns less is shown as an upper end where nobody is to blame.", "strip of lost time"
    ),
] = 0.5
