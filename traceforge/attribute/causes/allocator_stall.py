"""A rank's host is held up in device memory allocation (cudaMalloc, cudaFree) while its device is idle."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="allocator_stall",
    mode="runtime_control_plane",
    phrase="is held up in device memory allocation",
    next_step="Look at {subject}'s allocator: expandable segments, fragmentation, memory near the limit, "
    "empty_cache() in the loop.",
)
