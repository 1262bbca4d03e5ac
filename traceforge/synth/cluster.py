"""Where ranks run and which groups they form. In: nodes, devices and group sizes. Out: groups by kind, and their paths.

Ranks are numbered node by node. A tensor-parallel group is a run of neighbours, a data-parallel group takes one rank
of each within a pipeline stage, and a stage is a run of ranks; every group knows whether it stays within a node, within
a rack, or crosses the racks' uplink.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError

Kind = Literal[
    "tensor_parallel", "data_parallel", "pipeline_parallel", "shard", "replicate", "expert_parallel", "expert_data"
]
CollectiveOp = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
Path = Literal["node", "rack", "uplink"]
Naming = Literal["mesh", "megatron"]

_KINDS: tuple[Kind, ...] = get_args(Kind)
_DESCRIPTIONS: dict[Naming, dict[Kind, str]] = {
    "mesh": {
        "tensor_parallel": "mesh_tp",
        "data_parallel": "mesh_dp",
        "pipeline_parallel": "mesh_pp",
        "shard": "mesh_dp_shard",
        "replicate": "mesh_dp_replicate",
        "expert_parallel": "mesh_ep",
        "expert_data": "mesh_dp_shard_mod_ep",
    },
    "megatron": {
        "tensor_parallel": "TENSOR_MODEL_PARALLEL_GROUP",
        "data_parallel": "DATA_PARALLEL_GROUP_WITH_CP",
        "pipeline_parallel": "PIPELINE_MODEL_PARALLEL_GROUP",
        "shard": "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
        "replicate": "INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
        "expert_parallel": "EXPERT_MODEL_PARALLEL_GROUP",
        "expert_data": "EXPERT_DATA_PARALLEL_GROUP",
    },
}


@dataclass(frozen=True, slots=True)
class Link:
    """The alpha-beta model of a path: each step of a ring costs `latency_ns`, and bytes pass at `bytes_per_ns`."""

    latency_ns: float
    bytes_per_ns: float

    def all_reduce_ns(self, size_bytes: float, members: int) -> float:
        """Time of a ring all-reduce after its last arrival, ns."""
        steps = 2 * (members - 1)
        return steps * self.latency_ns + steps / members * size_bytes / self.bytes_per_ns

    def collective_ns(self, op: CollectiveOp, size_bytes: float, members: int) -> float:
        """Time of a collective after its last arrival, ns; the size is that of the whole buffer."""
        if op == "all_reduce":
            return self.all_reduce_ns(size_bytes, members)
        steps = members - 1
        return steps * self.latency_ns + steps / members * size_bytes / self.bytes_per_ns

    def message_ns(self, size_bytes: float) -> float:
        """Time of a message between two ranks once both are there, ns."""
        return self.latency_ns + size_bytes / self.bytes_per_ns


LINKS: dict[Path, Link] = {"node": Link(1_500, 300), "rack": Link(6_000, 45), "uplink": Link(9_000, 40)}
"""Orders of magnitude of NVLink, of a 400 Gbit/s NIC a device, and of the same through a second switch."""


@dataclass(frozen=True, slots=True)
class Group:
    """A communicator: kind, its number among those of its kind, and its global ranks in order."""

    kind: Kind
    number: int
    ranks: tuple[int, ...]
    path: Path


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines of a job.

    Attributes:
        nodes: hosts.
        devices: devices (ranks) a host.
        tensor_parallel: ranks of a tensor-parallel group; 1 for none.
        nodes_per_rack: hosts below one switch; all by default (0).
        pipeline_parallel: stages of a pipeline; 1 for none.
        shard: ranks that hold the model together, each a part of every layer (FSDP); 1 for none.
        expert_parallel: ranks that share the experts of each layer; 1 for none.
        naming: how groups are described: as device meshes of PyTorch (`mesh`) or as Megatron does (`megatron`).
    """

    nodes: int = 2
    devices: int = 4
    tensor_parallel: int = 1
    nodes_per_rack: int = 0
    pipeline_parallel: int = 1
    naming: Naming = "mesh"
    shard: int = 1
    expert_parallel: int = 1

    def __post_init__(self) -> None:
        if min(self.nodes, self.devices, self.tensor_parallel, self.pipeline_parallel) < 1:
            raise UsageError("nodes, devices, tensor_parallel and pipeline_parallel must be 1 or more")
        if self.ranks % (self.tensor_parallel * self.pipeline_parallel):
            size = self.tensor_parallel * self.pipeline_parallel
            raise UsageError(f"{self.ranks} ranks cannot be divided into groups of {size}")
        if self.shard > 1 or self.expert_parallel > 1:
            self._check_parts()
        if self.naming not in _DESCRIPTIONS:
            raise UsageError(f"there is no naming `{self.naming}`", hint=f"choose one of: {', '.join(_DESCRIPTIONS)}")

    def _check_parts(self) -> None:
        if self.tensor_parallel > 1 or (self.shard > 1 and self.expert_parallel > 1):
            raise UsageError("shard, expert_parallel and tensor_parallel do not go together")
        if self.expert_parallel > 1 and self.pipeline_parallel > 1:
            raise UsageError("expert_parallel and pipeline_parallel do not go together")
        size = self.shard * self.expert_parallel
        if self.ranks_per_stage % size:
            raise UsageError(f"{self.ranks_per_stage} ranks cannot be divided into groups of {size}")

    @property
    def ranks(self) -> int:
        """World size."""
        return self.nodes * self.devices

    def node_of(self, rank: int) -> int:
        """Number of the rank's host."""
        return rank // self.devices

    def ranks_of(self, node: int) -> list[int]:
        """Ranks of a host."""
        return list(range(node * self.devices, (node + 1) * self.devices))

    def host_of(self, rank: int) -> str:
        """Name of the rank's host."""
        return f"node{self.node_of(rank)}"

    def ranks_of_stage(self, stage: int) -> tuple[int, ...]:
        """Ranks of a pipeline stage; the ranks at one place of two stages send to one another."""
        return tuple(range(stage * self.ranks_per_stage, (stage + 1) * self.ranks_per_stage))

    @property
    def ranks_per_stage(self) -> int:
        """Ranks that hold the same layers, or parts of them."""
        return self.ranks // self.pipeline_parallel

    def groups(self) -> tuple[Group, ...]:
        """All communicators with two members or more."""
        return _groups(self)

    def description_of(self, kind: Kind) -> str:
        """How a group of a kind is described."""
        return _DESCRIPTIONS[self.naming][kind]

    def group_numbers(self, kind: Kind) -> NDArray[np.int64]:
        """Number of each rank's group of a kind, shape (R,)."""
        size, stride = self._axis(kind)
        rank = np.arange(self.ranks)
        numbers: NDArray[np.int64] = rank // (size * stride) * stride + rank % stride
        return numbers

    def _axis(self, kind: Kind) -> tuple[int, int]:
        """How many ranks a group of a kind has, and by how much their numbers differ."""
        replicas = self.ranks_per_stage // self.tensor_parallel
        sizes: dict[Kind, tuple[int, int]] = {
            "tensor_parallel": (self.tensor_parallel, 1),
            "data_parallel": (replicas if self.shard == 1 else 1, self.tensor_parallel),
            "pipeline_parallel": (self.pipeline_parallel, self.ranks_per_stage),
            "shard": (self.shard, 1),
            "replicate": (replicas // self.shard if self.shard > 1 else 1, self.shard),
            "expert_parallel": (self.expert_parallel, 1),
            "expert_data": (replicas // self.expert_parallel if self.expert_parallel > 1 else 1, self.expert_parallel),
        }
        return sizes[kind]

    def path(self, ranks: Sequence[int]) -> Path:
        """What messages between ranks pass through."""
        nodes = {self.node_of(rank) for rank in ranks}
        if len(nodes) == 1:
            return "node"
        racks = {node // (self.nodes_per_rack or self.nodes) for node in nodes}
        return "rack" if len(racks) == 1 else "uplink"


@lru_cache(maxsize=8)  # asked for by the writer of each rank's file
def _groups(cluster: Cluster) -> tuple[Group, ...]:
    found: list[Group] = []
    for kind in _KINDS:
        members: dict[int, list[int]] = {}
        for rank, number in enumerate(cluster.group_numbers(kind).tolist()):
            members.setdefault(number, []).append(rank)
        found += [
            Group(kind, number, tuple(ranks), cluster.path(ranks))
            for number, ranks in sorted(members.items())
            if len(ranks) > 1
        ]
    return tuple(found)
