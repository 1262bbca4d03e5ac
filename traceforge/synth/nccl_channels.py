"""Rings and trees of a communicator. In: its ranks and the wiring. Out: channels, and the connections they need.

Idea: a ring passes through the devices of one host after another, each channel enters hosts at another device, and data
leave a host on the NIC by which the channel enters, so that they stay on their rail; where that NIC cannot be reached
over NVLink, the last device takes its own. Trees join the entries of hosts. Not handled: NVLink SHARP, CollNet.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from traceforge.synth.wiring import Wiring

_NODE_CHANNELS = 4


@dataclass(frozen=True, slots=True)
class Channel:
    """One ring and one tree; numbers are ranks in the communicator.

    Attributes:
        order: the ring.
        entries: by host in order, the rank at which data enter it.
        parent: by rank, its parent in the tree; -1 for the root.
    """

    number: int
    order: tuple[int, ...]
    entries: tuple[int, ...]
    parent: tuple[int, ...]

    def next(self, rank: int) -> int:
        """The rank behind one in the ring."""
        return self.order[(self.order.index(rank) + 1) % len(self.order)]

    def previous(self, rank: int) -> int:
        """The rank before one in the ring."""
        return self.order[self.order.index(rank) - 1]

    def children(self, rank: int) -> list[int]:
        """Children in the tree: within the host first."""
        return [child for child in self.order if self.parent[child] == rank]


@dataclass(frozen=True, slots=True)
class Communicator:
    """A communicator as NCCL builds it.

    Attributes:
        ranks: global ranks in order.
        wiring: the machines.
        channels: its channels.
    """

    ranks: tuple[int, ...]
    wiring: Wiring
    channels: tuple[Channel, ...]

    @property
    def nodes(self) -> list[int]:
        """Hosts it spans, in order."""
        return list(dict.fromkeys(map(self.wiring.cluster.node_of, self.ranks)))

    def node(self, rank: int) -> int:
        """Host of a rank of the communicator."""
        return self.wiring.cluster.node_of(self.ranks[rank])

    def local(self, node: int) -> list[int]:
        """Its ranks on a host."""
        return [rank for rank in range(len(self.ranks)) if self.node(rank) == node]

    def device(self, rank: int) -> int:
        """Device of a rank of the communicator."""
        return self.wiring.device(self.ranks[rank])

    def ends(self, channel: Channel, rank: int, *, in_trees: bool) -> Iterator[tuple[int, int]]:
        """Connections (from, to) that a rank makes in a channel; trees add what rings did not connect."""
        ring = [(channel.previous(rank), rank), (rank, channel.next(rank))]
        if not in_trees:
            yield from ring
            return
        around = [*channel.children(rank), *([channel.parent[rank]] if channel.parent[rank] >= 0 else [])]
        for other in around:
            yield from (pair for pair in ((other, rank), (rank, other)) if channel.next(pair[0]) != pair[1])

    def via(self, channel: Channel, source: int, target: int, *, receives: bool) -> str:
        """How a connection is made, in NCCL's words."""
        node = self.node(source)
        if node == self.node(target):
            return "SHM/direct/direct" if node in self.wiring.without_p2p else "P2P/CUMEM"
        own = target if receives else source
        driver = own
        if not receives and self.wiring.relays(node):
            driver = channel.entries[self.nodes.index(node)]
        nic = self.wiring.nic(self.ranks[driver])
        near = self.wiring.path_to_nic(self.node(driver), self.device(driver), nic) == "PIX"
        return f"NET/IB/{nic}{'' if driver == own else f'({driver})'}{'/GDRDMA' if near else ''}"


def communicator_of(ranks: tuple[int, ...], wiring: Wiring) -> Communicator:
    """The communicator of some global ranks."""
    bare = Communicator(ranks, wiring, ())
    locals_ = [bare.local(node) for node in bare.nodes]
    count = _NODE_CHANNELS if len(locals_) == 1 else max(2, *map(len, locals_))
    return Communicator(ranks, wiring, tuple(_channel(number, locals_) for number in range(count)))


def _channel(number: int, locals_: list[list[int]]) -> Channel:
    # On one host all channels run the same way round: every device reaches every other one.
    turn = number if len(locals_) > 1 else 0
    chains = [own[turn % len(own) :] + own[: turn % len(own)] for own in locals_]
    parent = [-1] * sum(map(len, chains))
    for place, chain in enumerate(chains):
        parent[chain[0]] = chains[(place - 1) // 2][0] if place else -1
        for above, below in pairwise(chain):
            parent[below] = above
    order = tuple(rank for chain in chains for rank in chain)
    return Channel(number, order, tuple(chain[0] for chain in chains), tuple(parent))
