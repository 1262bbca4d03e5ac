"""What counts as suspicious in the configuration that NCCL's logs show."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_MATCH_SCORE: Annotated[
    float,
    Meaning(
        "share of calls",
        "A process group and a communicator match only if this share of their calls agrees in order.",
        "fabric.communicator_match",
    ),
] = 0.5

FAR_DISTANCE: Annotated[
    int,
    Meaning(
        "place in fabric.nic_distance.distance",
        "From this class of path on (PHB, SYS), data pass the CPU on the way from GPU to NIC.",
        "finding far_nic",
    ),
] = 8

FEW_CHANNELS_SHARE: Annotated[
    float,
    Meaning(
        "share of the channels of its equals",
        "A communicator with a smaller share than this has too few channels.",
        "finding few_channels",
    ),
] = 0.5

CALLS_BEFORE_TRAINING: Annotated[
    int,
    Meaning("collectives", "After so many calls of a process training has begun.", "finding late_communicator"),
] = 100

LEAST_STAMPED_CALLS: Annotated[
    int, Meaning("calls", "With fewer calls the median lateness of a rank is not trusted.", "finding late_enqueue")
] = 20

LEAST_RANKS_COMPARED: Annotated[
    int, Meaning("ranks of a host", "With fewer ranks there is no usual one to compare with.", "finding late_enqueue")
] = 3

LEAST_LATE_NS: Annotated[
    int, Meaning("ns", "A rank whose median lateness is smaller is not late.", "finding late_enqueue")
] = 1_000_000

LATE_RATIO: Annotated[
    float,
    Meaning(
        "times the others' lateness",
        "A late rank is later than the other ranks of its host by more than this factor.",
        "finding late_enqueue",
    ),
] = 5

USUAL_SPEED_QUANTILE: Annotated[
    float,
    Meaning(
        "quantile of the job's NICs",
        "The usual speed of a NIC; half of the NICs may be slow, but hardly three in four.",
        "finding nic_below_speed",
    ),
] = 0.75

SLOW_NIC_SHARE: Annotated[
    float,
    Meaning(
        "share of the usual speed", "A NIC below this share of the usual speed is slow.", "finding nic_below_speed"
    ),
] = 0.75

LARGE_MESSAGE_BYTES: Annotated[
    int, Meaning("bytes", "From this size on protocol LL wastes bandwidth.", "finding odd_algorithm")
] = 4 * 1024 * 1024

SLOW_INIT_NS: Annotated[
    int, Meaning("ns", "One communicator that takes this long to make is slow.", "finding slow_init")
] = 10_000_000_000

SLOW_INITS_NS: Annotated[
    int,
    Meaning("ns", "Communicators of one process that together take this long to make are slow.", "finding slow_init"),
] = 60_000_000_000
