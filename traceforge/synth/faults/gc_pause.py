"""Python collects garbage on one rank; nothing in the trace names it."""

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    site.stall(load, site.operations("copy")[0], site.extra_ns)


FAULT = Fault(
    "gc_pause",
    "runtime_control_plane",
    "rank",
    "pauses its host while Python collects garbage",
    _apply,
    cause="host_stall",
)
