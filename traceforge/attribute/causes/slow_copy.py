"""A rank spends longer in copies between host and device: where its memory, socket and PCIe path lie."""

from traceforge.attribute.cause import Cause

CAUSE = Cause(
    name="slow_copy",
    mode="gpu_locality",
    phrase="spends longer in copies between host and device",
    next_step="Check {subject}'s CPU and memory affinity against the device's NUMA node, and pinned memory.",
)
