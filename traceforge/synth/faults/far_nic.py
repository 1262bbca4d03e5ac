"""A device reaches the network through a card on the other socket; the groups of its rail are slow."""

from traceforge.synth.cluster import Cluster, Group
from traceforge.synth.fault import Fault, Site, crossing_nodes
from traceforge.synth.load import Load
from traceforge.synth.wiring import Wiring


def _groups(cluster: Cluster, place: int) -> list[Group]:
    return [group for group in crossing_nodes(cluster) if place in group.ranks]


def _apply(load: Load, site: Site) -> None:
    site.slow_transfers(load, _groups(site.cluster, site.place))


def _wire(wiring: Wiring, place: int) -> None:
    node = wiring.cluster.node_of(place)
    wiring.nic_of[place] = wiring.far_nic(place)
    # Where devices drive their NICs for one another, nobody needs a far one.
    wiring.without_relay.add(node)
    wiring.set(node, "NCCL_PXN_DISABLE", "1")


FAULT = Fault(
    "far_nic",
    "gpu_locality",
    "rank",
    "reaches the network through a far card",
    _apply,
    _groups,
    _wire,
    shows_as="communicator",
    cause="slow_path",
)
