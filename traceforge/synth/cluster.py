"""Where ranks run and which groups they form. In: nodes, devices and group sizes. Out: groups by kind, and their paths.

Ranks are numbered node by node. A tensor-parallel group is a run of neighbours, a data-parallel group takes one rank
of each; every group knows whether it stays within a node, within a rack, or crosses the racks' uplink.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError

Kind = Literal["tensor_parallel", "data_parallel"]
Path = Literal["node", "rack", "uplink"]

_KINDS: tuple[Kind, ...] = ("tensor_parallel", "data_parallel")


@dataclass(frozen=True, slots=True)
class Link:
    """The alpha-beta model of a path: each step of a ring costs `latency_ns`, and bytes pass at `bytes_per_ns`."""

    latency_ns: float
    bytes_per_ns: float

    def all_reduce_ns(self, size_bytes: float, members: int) -> float:
        """Time of a ring all-reduce after its last arrival, ns."""
        steps = 2 * (members - 1)
        return steps * self.latency_ns + steps / members * size_bytes / self.bytes_per_ns


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
    """

    nodes: int = 2
    devices: int = 4
    tensor_parallel: int = 1
    nodes_per_rack: int = 0

    def __post_init__(self) -> None:
        if min(self.nodes, self.devices, self.tensor_parallel) < 1:
            raise UsageError("nodes, devices and tensor_parallel must be 1 or more")
        if self.ranks % self.tensor_parallel:
            raise UsageError(f"{self.ranks} ranks cannot be divided into groups of {self.tensor_parallel}")

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

    def groups(self) -> list[Group]:
        """All communicators with two members or more."""
        size = self.tensor_parallel
        tensor = [tuple(range(first, first + size)) for first in range(0, self.ranks, size)]
        data = [tuple(range(first, self.ranks, size)) for first in range(size)]
        of_kind = dict(zip(_KINDS, (tensor, data), strict=True))
        return [
            Group(kind, number, ranks, self._path(ranks))
            for kind, members in of_kind.items()
            for number, ranks in enumerate(members)
            if len(ranks) > 1
        ]

    def group_numbers(self, kind: Kind) -> NDArray[np.int64]:
        """Number of each rank's group of a kind, shape (R,)."""
        rank = np.arange(self.ranks)
        return rank // self.tensor_parallel if kind == "tensor_parallel" else rank % self.tensor_parallel

    def _path(self, ranks: tuple[int, ...]) -> Path:
        nodes = {self.node_of(rank) for rank in ranks}
        if len(nodes) == 1:
            return "node"
        racks = {node // (self.nodes_per_rack or self.nodes) for node in nodes}
        return "rack" if len(racks) == 1 else "uplink"
