"""A rank's host cannot launch work as fast as its device completes it: the device runs dry between kernels."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="late_launch",
    mode="runtime_control_plane",
    phrase="launches work more slowly than its device completes it",
    next_step="Look at {subject}'s host: CPU frequency, contention and affinity, Python overhead between operations; "
    "CUDA graphs or torch.compile need fewer launches.",
    phrase_of_host="spends longer in the host's own part of operations",
    next_step_of_host="Look at {subject}'s host: CPU frequency, contention and affinity, Python overhead between "
    "operations.",
    is_like_taken_cores=True,
    # A pause uses up the host's lead over its device; until it is ahead again, each launch comes late.
    follows_pauses=True,
)
