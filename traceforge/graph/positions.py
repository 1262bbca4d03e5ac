"""Where collectives stand in the common order of all ranks. In: each rank's chain. Out: a position for each collective.

A collective's position lies above those of all that any member issued before it. Meetings of one call (a batch of sends
and receives) come in any order, as they go on at once: each takes the first position that is free on all its members,
so that ranks which exchange in a ring have theirs at the same places. Behind the call as many positions stay free as a
rank needs to await them all. Not handled: chains that contradict one another (None).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traceforge.graph.schedule import Edges, schedule, topological_order


@dataclass(frozen=True, slots=True)
class ChainedCall:
    """A call in a rank's chain.

    Attributes:
        collectives: that it joins: one, or the meetings of a batch.
        free: positions of the rank that stay free behind it.
    """

    collectives: tuple[int, ...]
    free: int = 0


def common_positions(chains: Sequence[Sequence[ChainedCall]]) -> dict[int, int] | None:
    """Position of each collective; None where orders contradict.

    Args:
        chains: calls of each rank in order of issue.
    """
    collectives = sorted({one for chain in chains for link in chain for one in link.collectives})
    level = _levels(collectives, chains)
    if level is None:
        return None
    members: dict[int, list[tuple[int, ChainedCall]]] = {one: [] for one in collectives}
    for rank, chain in enumerate(chains):
        for link in chain:
            for one in link.collectives:
                members[one].append((rank, link))
    reached, taken = [-1] * len(chains), [set[int]() for _ in chains]
    missing = {(rank, link): len(link.collectives) for of in members.values() for rank, link in of}
    positions: dict[int, int] = {}
    for one in sorted(collectives, key=lambda one: (level[one], one)):
        position = 1 + max(reached[rank] for rank, _ in members[one])
        while any(position in taken[rank] for rank, _ in members[one]):
            position += 1
        positions[one] = position
        for rank, link in members[one]:
            missing[rank, link] -= 1
            taken[rank].add(position)
            if not missing[rank, link]:
                reached[rank] = max(taken[rank]) + link.free
                taken[rank].clear()
    return positions


def _levels(collectives: Sequence[int], chains: Sequence[Sequence[ChainedCall]]) -> dict[int, int] | None:
    """Length of the longest chain of calls before each collective."""
    number = {one: n for n, one in enumerate(collectives)}
    pairs = [
        (number[one], number[other])
        for chain in chains
        for link, following in pairwise(chain)
        for one in link.collectives
        for other in following.collectives
    ]
    begin, end = np.array(pairs, np.int64).reshape(-1, 2).T
    order, circular = topological_order(len(collectives), begin, end)
    if circular:
        return None
    place = np.argsort(order)
    edges = Edges(place[begin], place[end], np.zeros(len(begin), np.int64))
    levels = schedule(np.ones(len(order), np.int64), np.zeros(len(order), np.int64), edges).start_ns
    return {one: int(levels[place[n]]) for one, n in number.items()}
