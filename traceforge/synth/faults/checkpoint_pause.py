"""A rank writes a checkpoint while the others wait for it."""

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    site.stall(load, site.operations("input")[0], site.extra_ns, name="save_checkpoint", drains_device=True)


FAULT = Fault(
    "checkpoint_pause", "runtime_control_plane", "rank", "writes a checkpoint", _apply, cause="checkpoint_pause"
)
