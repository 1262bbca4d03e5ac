"""A rank writes a checkpoint while its device is idle."""

from types import MappingProxyType

from traceforge.attribute.cause import Cause

_ACTIVITIES = frozenset({"checkpoint"})

CAUSE = Cause(
    name="checkpoint_pause",
    mode="runtime_control_plane",
    phrase="writes a checkpoint",
    next_step="Write checkpoints asynchronously, or from all ranks at the same time; check {subject}'s storage.",
    claims=MappingProxyType(dict.fromkeys(("runtime", "idle", "transfer", "wait"), _ACTIVITIES)),
)
