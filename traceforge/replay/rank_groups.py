"""Which ranks meet in each collective. In: groups of a `StepModel`. Out: the partitions that occur, and which where.

The groups of a place are the same in most iterations, under other numbers; each distinct layout is found once, so
that the replay needs no sorting.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
Amounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RankPartition:
    """A partition of the ranks into groups.

    Attributes:
        order: places of the ranks, group by group, shape (R,).
        first: where each group begins in `order`, shape (G,).
        group: number of each rank's group, shape (R,).
        size: ranks of each group, shape (G,).
    """

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    group: NDArray[np.int64]
    size: NDArray[np.int64]

    def latest(self, times_ns: Times) -> Times:
        """The latest time of each rank's group, shape (..., R), or (..., 1) where all ranks meet."""
        if len(self.first) == 1:
            every: Times = times_ns.max(axis=-1, keepdims=True)
            return every
        latest = np.maximum.reduceat(times_ns[..., self.order], self.first, axis=-1)
        result: Times = latest[..., self.group]
        return result

    def mean(self, times_ns: Times) -> Amounts:
        """The mean of each rank's group, shape as of `latest`."""
        if len(self.first) == 1:
            return np.asarray(times_ns.sum(axis=-1, keepdims=True) / times_ns.shape[-1])
        total = np.add.reduceat(times_ns[..., self.order], self.first, axis=-1)
        return np.asarray((total / self.size)[..., self.group])


@dataclass(frozen=True, slots=True)
class RankGroups:
    """The layouts of a run, and the number of the one at each place, shape (I, P)."""

    layouts: Sequence[RankPartition]
    at: NDArray[np.int64]


def partition_of(group: NDArray[np.int64]) -> RankPartition:
    """The layout of one place; ranks of a negative group meet nobody.

    Args:
        group: number of each rank's group, shape (R,).
    """
    alone = np.where(group < 0, -1 - np.arange(len(group)), group)
    _, dense, size = np.unique(alone, return_inverse=True, return_counts=True)
    order = np.argsort(dense, kind="stable")
    return RankPartition(order, np.concatenate(([0], np.cumsum(size)[:-1])), dense, size)


def rank_groups(group: NDArray[np.int64]) -> RankGroups:
    """The layouts of a run.

    Args:
        group: number of each rank's group, negative for none, shape (I, P, R).
    """
    count, places, _ = group.shape
    layouts: list[RankPartition] = []
    at = np.full((count, places), -1, dtype=np.int64)
    for place in range(places):
        here, missing = group[:, place], np.arange(count)
        # The latest found first: neighbouring places are alike.
        for number in reversed(range(len(layouts))):
            missing = _place(here, missing, layouts[number], number, at[:, place])
        while len(missing):
            layouts.append(partition_of(here[missing[0]]))
            missing = _place(here, missing, layouts[-1], len(layouts) - 1, at[:, place])
    return RankGroups(layouts, at)


def _place(
    groups: NDArray[np.int64], rows: NDArray[np.int64], layout: RankPartition, number: int, at: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Note `number` for those of the rows that have this layout; the others."""
    if not len(rows):
        return rows
    fits = _fits(groups[rows], layout)
    at[rows[fits]] = number
    return rows[~fits]


def _fits(groups: NDArray[np.int64], layout: RankPartition) -> NDArray[np.bool_]:
    """Which rows (shape (N, R)) have this layout."""
    if len(layout.first) == 1:
        one: NDArray[np.bool_] = (groups == groups[:, :1]).all(axis=1)
        one &= (groups[:, 0] >= 0) | (groups.shape[1] == 1)
        return one
    heads = groups[:, layout.order[layout.first]]
    alike = (groups == heads[:, layout.group]).all(axis=1)
    negative = (heads < 0) & (layout.size > 1)
    positive = np.sort(np.where(heads < 0, -1 - np.arange(heads.shape[1]), heads), axis=1)
    distinct = (np.diff(positive, axis=1) != 0).all(axis=1)
    result: NDArray[np.bool_] = alike & ~negative.any(axis=1) & distinct
    return result
