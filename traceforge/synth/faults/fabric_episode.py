"""The network is slow for a while: a flapping link, a storm of pauses, a failed-over switch."""

import numpy as np

from traceforge.synth.fault import Fault, Site, crossing_nodes
from traceforge.synth.load import Load


def _apply(load: Load, site: Site) -> None:
    groups = crossing_nodes(site.cluster)
    site.stretch_transfers(load, groups, np.full(len(site.iterations), site.factor_of(load, groups)))


FAULT = Fault(
    "fabric_episode",
    "fabric_contention",
    "job",
    "the network is slow for a while",
    _apply,
    lambda cluster, _place: crossing_nodes(cluster),
)
