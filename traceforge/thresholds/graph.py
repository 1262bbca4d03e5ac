"""When the graph of a run takes something for granted."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_SHARE_OF_COMMON_WAIT: Annotated[
    float, Meaning("share of ranks", "A wait that fewer have is not the program's.", "graph.arrival.awaited_position")
] = 0.5

SHORTEST_RARE_WAIT_NS: Annotated[
    float,
    Meaning(
        "ns",
        "A wait that few ranks have is none if it is shorter: the collective ended between two kernels.",
        "graph.arrival.awaited_position",
    ),
] = 10_000

MOST_OUTLASTED_SHARE: Annotated[
    float,
    Meaning(
        "share of a message's time",
        "A call that goes on for longer than that after the other side is done goes on for another message.",
        "graph.arrival.end_ns",
    ),
] = 0.1

EARLIEST_START_NS: Annotated[
    int,
    Meaning(
        "ns",
        "Rounded times let work seem to start so long before what it awaits ends.",
        "graph.arrival.awaited_position",
    ),
] = 1_000

LONGEST_HANDOVER_NS: Annotated[
    float, Meaning("ns", "A collective that starts later after the one before has not queued.", "graph.queued")
] = 10_000

LONGEST_HANDOVER_SHARE: Annotated[
    float, Meaning("duration of the collective before", "The same, where that was short.", "graph.queued")
] = 0.25

LEAST_LINKED_SHARE: Annotated[
    float,
    Meaning("share", "With fewer pairs, or fewer of equal names, a link is refused.", "graph.link.is_accepted"),
] = 0.9

LEAST_TIMED_SHARE: Annotated[
    float, Meaning("share of nodes", "With fewer timed nodes a trace has no times.", "graph.quality.label")
] = 0.9

LONGEST_OWN_PAUSE_NS: Annotated[
    float, Meaning("ns", "A thread silent for longer may have waited for another.", "graph.derived_edge")
] = 50_000

CLOCK_SLACK_NS: Annotated[
    float, Meaning("ns", "Device and host clocks may disagree by so much.", "graph.derived_edge")
] = 10_000

USUAL_LAG_QUANTILE: Annotated[
    float, Meaning("quantile", "Lag that dependencies keep which did not hold anything up.", "graph.baseline")
] = 0.1

EQUALLY_LIKELY_SHARE: Annotated[
    float,
    Meaning("share of equal names", "A shift that pairs as many is as likely as the best.", "graph.link.occurrences"),
] = 0.9

LEAST_FOLLOWING_STRETCHES: Annotated[
    int,
    Meaning(
        "stretches of host operations",
        "With fewer that fit only if a call is missing before them, a recording with fewer calls may merely end.",
        "graph.divergence.status",
    ),
] = 2

FEWEST_OPERATIONS_OF_A_JOB: Annotated[
    int,
    Meaning(
        "host operations",
        "With fewer in a timeline, an execution trace that does not fit it may be of the same job.",
        "graph.communication",
    ),
] = 8
