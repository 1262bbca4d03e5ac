"""In each iteration another rank pauses its host: garbage collection that ranks do not run at the same time."""

import numpy as np

from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    ranks = np.arange(site.cluster.ranks)
    turn = np.arange(len(site.iterations))[:, None] % len(ranks) == ranks
    site.stall_ranks(load, site.operations("copy")[0], site.extra_ns * turn)


FAULT = Fault(
    "rotating_pause",
    "runtime_control_plane",
    "job",
    "in each iteration another rank pauses its host, in turn",
    _apply,
    cause="host_stall",
)
