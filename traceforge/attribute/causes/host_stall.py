"""A rank's host is busy, or asleep in the training loop, while its device has nothing to do."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="host_stall",
    mode="runtime_control_plane",
    phrase="keeps its device idle while its host thread launches nothing",
    phrase_of_host="pauses in code that no recorded operation explains",
    next_step="Profile {subject}'s host thread in the late stretches (with_stack=True, py-spy): Python work, locks, "
    "sleeps, CPU contention, missing CPU affinity.",
    is_like_taken_cores=True,
    # Python between operations is on no record, and a slow host takes longer for it, too.
    comes_with_slow_hosts=True,
)
