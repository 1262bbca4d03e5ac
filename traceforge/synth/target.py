"""What a fault can strike. In: a cluster and the number of a place. Out: ranks that are struck, and how many places."""

from collections.abc import Callable, Mapping
from typing import Literal

from traceforge.synth.cluster import Cluster

Target = Literal["rank", "node", "stage", "link", "hosts", "expert", "job"]
"""`link` is a rank and the one that it sends to in the next stage, `hosts` a host and the one that it sends to, and
`expert` the ranks at one place of all expert-parallel groups."""


def ranks_struck(cluster: Cluster, target: Target, place: int) -> list[int]:
    """Ranks that a fault strikes."""
    return [*_RANKS[target](cluster, place)]


def places_of(cluster: Cluster, target: Target) -> int:
    """How many places a fault can strike."""
    return _PLACES[target](cluster)


def host_pair(cluster: Cluster, node: int) -> tuple[int, int]:
    """A host, and the one to which its last rank sends."""
    return node, cluster.node_of(cluster.ranks_of(node)[-1] + cluster.ranks_per_stage)


def _of_hosts(cluster: Cluster, node: int) -> list[int]:
    return [rank for one in sorted(set(host_pair(cluster, node))) for rank in cluster.ranks_of(one)]


def _links(cluster: Cluster) -> int:
    return cluster.ranks - cluster.ranks_per_stage


_RANKS: Mapping[Target, Callable[[Cluster, int], list[int] | tuple[int, ...] | range]] = {
    "rank": lambda _cluster, rank: [rank],
    "node": lambda cluster, node: cluster.ranks_of(node),
    "stage": lambda cluster, stage: cluster.ranks_of_stage(stage),
    "link": lambda cluster, rank: [rank, rank + cluster.ranks_per_stage],
    "hosts": _of_hosts,
    "expert": lambda cluster, place: range(place, cluster.ranks, cluster.expert_parallel),
    "job": lambda cluster, _place: range(cluster.ranks),
}
_PLACES: Mapping[Target, Callable[[Cluster], int]] = {
    "rank": lambda cluster: cluster.ranks,
    "node": lambda cluster: cluster.nodes,
    "stage": lambda cluster: cluster.pipeline_parallel if _links(cluster) else 0,
    "link": _links,
    "hosts": lambda cluster: _links(cluster) // cluster.devices,
    "expert": lambda cluster: cluster.expert_parallel if cluster.expert_parallel > 1 else 0,
    "job": lambda _cluster: 1,
}
