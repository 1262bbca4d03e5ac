"""What a run may lose against its baseline where the user does not say."""

from typing import Annotated

from traceforge.thresholds import Meaning

BASELINE_TOLERANCE: Annotated[
    float, Meaning("share (points for shares)", "A metric may exceed its baseline by this much.", "check --baseline")
] = 0.05
