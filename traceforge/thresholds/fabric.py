"""When NCCL's logs show something suspicious. What a limit decides is a file of `fabric/findings/`, or a table."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_MATCH_SCORE: Annotated[
    float, Meaning("share of calls", "Below, a group and a communicator do not match.", "communicator_match")
] = 0.5
FAR_DISTANCE: Annotated[
    int, Meaning("fabric.nic_distance.distance", "From here on (PHB, SYS) data pass the CPU.", "far_nic")
] = 8
FEW_CHANNELS_SHARE: Annotated[
    float, Meaning("share of its equals' channels", "Below, a communicator has too few channels.", "few_channels")
] = 0.5
CALLS_BEFORE_TRAINING: Annotated[
    int, Meaning("calls of a process", "After so many collectives training has begun.", "late_communicator")
] = 100
LEAST_STAMPED_CALLS: Annotated[
    int, Meaning("calls of a rank", "With fewer, the median lateness is not trusted.", "late_enqueue")
] = 20
LEAST_RANKS_COMPARED: Annotated[
    int, Meaning("ranks of a host", "With fewer, no rank is usual or unusual.", "late_enqueue")
] = 3
LEAST_LATE_NS: Annotated[int, Meaning("ns", "A rank with less median lateness is not late.", "late_enqueue")] = (
    1_000_000
)
LATE_RATIO: Annotated[
    float, Meaning("times the others' lateness", "A late rank exceeds the others by this factor.", "late_enqueue")
] = 5
USUAL_SPEED_QUANTILE: Annotated[
    float, Meaning("quantile of NICs", "The usual speed: half may be slow, hardly three in four.", "nic_below_speed")
] = 0.75
SLOW_NIC_SHARE: Annotated[float, Meaning("share of the usual speed", "Below, a NIC is slow.", "nic_below_speed")] = 0.75
LARGE_MESSAGE_BYTES: Annotated[int, Meaning("bytes", "From here on LL wastes bandwidth.", "odd_algorithm")] = 4_194_304
SLOW_INIT_NS: Annotated[int, Meaning("ns", "An init that takes this long is slow.", "slow_init")] = 10_000_000_000
SLOW_INITS_NS: Annotated[int, Meaning("ns", "Inits of a process that sum to this are slow.", "slow_init")] = (
    60_000_000_000
)
MOST_LAG_NS: Annotated[
    int, Meaning("ns", "Telemetry is looked for this far off, or two of its intervals.", "telemetry_lag")
] = 2_000_000_000
LEAST_LAG_SAMPLES: Annotated[
    int, Meaning("readings of a device", "With fewer within the trace no lag is measured.", "telemetry_lag")
] = 12
LEAST_LAG_COVERAGE: Annotated[
    float,
    Meaning("share of the most readings", "A lag that leaves fewer within the trace is not tried.", "telemetry_lag"),
] = 0.7
LEAST_LOAD_SPREAD: Annotated[
    float, Meaning("share of an interval", "A load that varies less has no edges.", "telemetry_lag")
] = 0.05
LEAST_LAG_CORRELATION: Annotated[
    float, Meaning("correlation", "Below, readings do not follow the load.", "telemetry_lag")
] = 0.8
LAG_MARGIN: Annotated[
    float, Meaning("correlation", "A lag must fit so much better than any other.", "telemetry_lag")
] = 0.1
LAG_CHANCE: Annotated[
    float, Meaning("probability", "The best of all lags tried must be less likely by chance.", "telemetry_lag")
] = 0.001
