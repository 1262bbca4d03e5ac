"""A rank writes a checkpoint while the others wait for it."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load, Stall


def _apply(load: Load, site: Site) -> None:
    duration = np.zeros((len(load.host_ns), site.cluster.ranks))
    duration[site.iterations, site.place] = np.rint(site.extra_ns)
    load.stalls.append(Stall(site.places("input")[0], duration, "save_checkpoint", drains_device=True))


FAULT = Fault("checkpoint_pause", "runtime_control_plane", "rank", "writes a checkpoint", _apply)
