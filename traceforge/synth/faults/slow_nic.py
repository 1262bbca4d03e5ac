"""A node's network cards run below their speed. All groups that pass through the node are slow, so that a trace
cannot separate the node from the network unless other groups avoid it."""

from traceforge.synth.cluster import Cluster, Group
from traceforge.synth.fault import Fault, Site, crossing_nodes
from traceforge.synth.load import Load
from traceforge.synth.wiring import SPEED_MEGABITS, Wiring


def _groups(cluster: Cluster, place: int) -> list[Group]:
    return [group for group in crossing_nodes(cluster) if place in map(cluster.node_of, group.ranks)]


def _apply(load: Load, site: Site) -> None:
    site.slow_transfers(load, _groups(site.cluster, site.place))


def _wire(wiring: Wiring, place: int) -> None:
    wiring.speed_megabits |= {(place, nic): SPEED_MEGABITS // 4 for nic in range(wiring.nics)}


FAULT = Fault(
    "slow_nic",
    "fabric_contention",
    "node",
    "the network cards of a node run below their speed",
    _apply,
    _groups,
    _wire,
    shows_as="job",
    cause="slow_transfer",
)
