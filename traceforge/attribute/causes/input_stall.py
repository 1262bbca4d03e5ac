"""A rank waits for its data loader while its device is idle."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="input_stall",
    mode="runtime_control_plane",
    phrase="waits for its next batch of input",
    next_step="Look at {subject}'s data loader in these iterations: storage, decoding, number of workers, prefetch.",
)
