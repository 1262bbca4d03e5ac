"""Who joins what where groups meet. In: the layouts of two waits that follow each other. Out: how to go from one's
accounts to the other's, worked out once for both.
"""

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.ledger.shapley import share_lateness
from traceforge.replay.rank_groups import RankPartition
from traceforge.replay.reference import Amounts

Index = NDArray[np.int64]


class GroupMerge:
    """Which accounts each group of a meeting joins: pairs of a group and an account, in the order of groups.

    Attributes:
        layout: the groups that meet; H of them.
        group_of, account_of: of each pair.
        first_of_group: the first pair of each group, shape (H,).
        joins: which accounts each group joins, shape (H, G).
        kinds: accounts of groups that join the same ones.
        kind_of: of each group, shape (H,).
        is_alone: ranks that meet others, none of which has their account, shape (R,).
    """

    def __init__(self, layout: RankPartition, account: Index, accounts: int) -> None:
        self.layout = layout
        key, pair, size = np.unique(layout.group * accounts + account, return_inverse=True, return_counts=True)
        self.group_of, self.account_of = key // accounts, key % accounts
        self._order = np.argsort(pair, kind="stable")
        self._first = np.concatenate(([0], np.cumsum(size)[:-1]))
        self.first_of_group = np.searchsorted(self.group_of, np.arange(len(layout.size)))
        self.joins = np.zeros((len(layout.size), accounts), dtype=np.bool_)
        self.joins[self.group_of, self.account_of] = True
        kinds, kind_of = np.unique(self.joins, axis=0, return_inverse=True)
        self.kind_of: Index = kind_of.ravel()
        self.kinds: list[Index] = [np.flatnonzero(kind) for kind in kinds]
        self.is_alone: NDArray[np.bool_] = (size[pair] == 1) & (self.joins.sum(axis=1)[layout.group] > 1)
        self._place = np.argsort(layout.order)

    def by_pair(self, how: np.ufunc, of_ranks: Amounts) -> Amounts:
        """Of ranks, shape (B, R), to pairs."""
        ordered = of_ranks.take(self._order, axis=1)
        if len(self._first) == ordered.shape[1]:
            return ordered
        result: Amounts = how.reduceat(ordered, self._first, axis=1)
        return result

    def by_group(self, how: np.ufunc, of_pairs: Amounts) -> Amounts:
        """Of pairs to groups."""
        result: Amounts = how.reduceat(of_pairs, self.first_of_group, axis=1)
        return result

    def shared(self, beyond: Amounts) -> Amounts:
        """Shares of each group's greatest lateness, shape (B, R)."""
        layout = self.layout
        result = np.empty_like(beyond)
        ordered = beyond.take(layout.order, axis=1)
        if (layout.size == layout.size[0]).all():
            shares = share_lateness(ordered.reshape(len(beyond), -1, layout.size[0]))
            return shares.reshape(beyond.shape).take(self._place, axis=1)
        ends = layout.first + layout.size
        for size in np.unique(layout.size):
            members = (ends[layout.size == size] - size)[:, None] + np.arange(size)
            result[:, members] = share_lateness(ordered[:, members])
        return result.take(self._place, axis=1)
