"""What a run may lose against its baseline where the user does not say."""

from typing import Annotated

from traceforge.thresholds import Meaning

BASELINE_TOLERANCE: Annotated[
    float,
    Meaning(
        "share of a time, or of the whole for shares",
        "A metric may exceed its baseline by this much.",
        "traceforge check --baseline",
    ),
] = 0.05
