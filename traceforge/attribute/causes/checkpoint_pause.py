"""A rank writes a checkpoint while its device is idle."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="checkpoint_pause",
    mode="runtime_control_plane",
    phrase="writes a checkpoint",
    next_step="Write checkpoints asynchronously, and no rank later than the others; check {subject}'s storage.",
)
