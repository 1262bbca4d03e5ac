"""What counts as slow, held up or partial on the timeline."""

from typing import Annotated

from traceforge.thresholds import Meaning

LEAST_HELD_SHARE: Annotated[
    float,
    Meaning("share of a gap", "What held the training thread for this much of a gap is its cause.", "timeline.gap"),
] = 0.5
