"""The devices of a node have lost their direct links and copy through host memory."""

from traceforge.synth.cluster import Cluster, Group
from traceforge.synth.fault import Fault, Site
from traceforge.synth.load import Load
from traceforge.synth.wiring import Wiring


def _groups(cluster: Cluster, place: int) -> list[Group]:
    return [group for group in cluster.groups() if group.path == "node" and cluster.node_of(group.ranks[0]) == place]


def _apply(load: Load, site: Site) -> None:
    site.slow_transfers(load, _groups(site.cluster, site.place))


def _wire(wiring: Wiring, place: int) -> None:
    wiring.without_p2p.add(place)
    wiring.set(place, "NCCL_P2P_DISABLE", "1")


FAULT = Fault(
    "p2p_lost",
    "gpu_locality",
    "node",
    "has lost the direct links between its devices",
    _apply,
    _groups,
    _wire,
    shows_as="communicator",
    cause="slow_path",
)
