"""A rank at the limit of its memory frees and allocates in every iteration; both wait for the device."""

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    for place in site.operations("compute")[1:3]:
        site.stall(load, place, site.extra_ns / 2, name="cudaMalloc", category="cuda_runtime", drains_device=True)


FAULT = Fault(
    "allocator_stall",
    "runtime_control_plane",
    "rank",
    "is held up in device memory allocation",
    _apply,
    cause="allocator_stall",
)
