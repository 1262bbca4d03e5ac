"""All ranks write a checkpoint together, and go on when the last has done so."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    extra_ns = np.full((len(site.iterations), site.cluster.ranks), site.extra_ns)
    place = site.operations("input")[0]
    site.stall_ranks(load, place, extra_ns, name="save_checkpoint", drains_device=True)


FAULT = Fault(
    "job_checkpoint",
    "runtime_control_plane",
    "job",
    "all ranks write a checkpoint together",
    _apply,
    cause="checkpoint_pause",
)
