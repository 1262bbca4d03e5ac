"""A node's network cards run below their speed. All groups that pass through the node are slow, so that a trace
cannot tell the node from the network unless other groups avoid it."""

import numpy as np

from traceforge.synth.cluster import Cluster, Group
from traceforge.synth.fault import Fault, Site, crossing_nodes
from traceforge.synth.load import Load


def _groups(cluster: Cluster, place: int) -> list[Group]:
    return [group for group in crossing_nodes(cluster) if place in map(cluster.node_of, group.ranks)]


def _apply(load: Load, site: Site) -> None:
    groups = _groups(site.cluster, site.place)
    site.stretch_transfers(load, groups, np.full(len(site.iterations), site.factor_of(load, groups)))


FAULT = Fault(
    "slow_nic", "fabric_contention", "node", "the network cards of a node run below their speed", _apply, _groups
)
