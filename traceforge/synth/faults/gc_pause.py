"""Python collects garbage on one rank; nothing in the trace names it."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load, Stall


def _apply(load: Load, site: Site) -> None:
    duration = np.zeros((len(load.host_ns), site.cluster.ranks))
    duration[site.iterations, site.place] = np.rint(site.extra_ns)
    load.stalls.append(Stall(site.places("copy")[0], duration))


FAULT = Fault("gc_pause", "runtime_control_plane", "rank", "pauses its host while Python collects garbage", _apply)
