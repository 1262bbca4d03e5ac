"""A rank's host collects garbage while its device is idle (seen only where the trace names it)."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="garbage_collection",
    mode="runtime_control_plane",
    phrase="collects Python garbage while its device is idle",
    phrase_of_host="collects Python garbage",
    next_step="Call gc.freeze() and collect at the same step on all ranks, so that {subject} does not stall alone.",
)
