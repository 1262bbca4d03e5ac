"""What surely is a host's own work, and when hosts set a job's pace."""

from typing import Annotated

from traceforge.thresholds import Meaning

UNNAMED_HOST_NS: Annotated[
    int,
    Meaning(
        "ns", "A longer stretch between two of a host's own events may hide a wait.", "attribute.host_pace.host_ns"
    ),
] = 1_000_000
UNNAMED_HOST_SHARE: Annotated[
    float, Meaning("share of a step", "So may one that takes more of the step.", "attribute.host_pace.host_ns")
] = 0.02
LONGEST_LAUNCH_NS: Annotated[
    int, Meaning("ns", "A call to launch that takes longer may have to wait.", "attribute.host_pace.host_ns")
] = 20_000
HOST_BOUND_SHARE: Annotated[
    float, Meaning("share of an iteration", "Hosts that need this much by themselves set the pace.", "verdict")
] = 0.85
