"""Accounts of groups that meet. In: what groups take over from the accounts they join. Out: accounts to join next.

B iterations at once, G accounts, C owners of each (kind x rank, then communicators). Where few accounts become many,
as where data-parallel groups part into tensor-parallel ones, each of the many is a sum of the few with weights, and
what is its own; it is kept so, and its amounts are worked out some columns at a time, only to find the least.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.reference import Amounts

Index = NDArray[np.int64]

# A product of matrices of so many multiplications stays on one thread; more threads cost more than they gain here.
_PRODUCTS_AT_ONCE = 200_000
# Amounts of many accounts worked out at once: they should stay in the cache until their least is found.
_AT_ONCE = 64_000


@dataclass(frozen=True, slots=True)
class Own:
    """What accounts have of their own, beside what they took over.

    Attributes:
        group: account of each rank, shape (R,).
        work: of each rank in its account, by kind, shape (B, K, R).
        left: how late members left the transfer before, by communicator, shape (B, G, communicators).
    """

    group: Index
    work: Amounts
    left: Amounts

    @property
    def columns(self) -> Index:
        """Account of each owner of work, shape (K * R,)."""
        return np.tile(self.group, self.work.shape[1])

    @property
    def by_owner(self) -> Amounts:
        """Work by owner, shape (B, K * R)."""
        return self.work.reshape(len(self.work), -1)


@dataclass(frozen=True, slots=True)
class Survey:
    """What must be known of accounts before they are joined.

    Attributes:
        least: of all accounts, shape (B, C).
        work: what the account of each rank has at the rank's own places, shape (B, K, R).
        left: what each account has at the communicator by which it last met, shape (B, G).
    """

    least: Amounts
    work: Amounts
    left: Amounts


class Expanded:
    """Accounts with every amount worked out: `late` has shape (B, G, C)."""

    def __init__(self, late: Amounts, own: Own) -> None:
        """Of what was taken over, which is worked on in place, and what is each account's own."""
        self.late = late
        places = _own_places(own, late.shape[2])
        work = own.columns.size
        flat = late.reshape(len(late), -1)
        self._at_own = flat[:, places] + own.by_owner
        flat[:, places] = self._at_own
        late[:, :, work:] += own.left
        self._shape = own.work.shape

    def survey(self, communicator: Index) -> Survey:
        """What must be known before they are joined; `communicator` by which each met last, shape (G,)."""
        left = self.late[:, np.arange(len(communicator)), self._at_own.shape[1] + communicator]
        return Survey(self.late.min(axis=1), self._at_own.reshape(self._shape), left)

    def at(self, row: Index, column: Index) -> Amounts:
        """What all accounts have at some places, shape (places, G)."""
        result: Amounts = self.late[row, :, column]
        return result

    def at_one(self, row: Index, account: Index, column: Index) -> Amounts:
        """What one account has at each of some places, shape (places,)."""
        result: Amounts = self.late[row, account, column]
        return result

    def total(self) -> Amounts:
        """Of all owners, shape (B, G)."""
        result: Amounts = self.late.sum(axis=2)
        return result

    def joined(self, weight: Amounts, least: Amounts) -> Amounts:
        """Sums of what accounts have above the least, shape (B, H, C); `weight` has shape (B, H, G)."""
        return product(weight, self.late - least[:, None])

    def expanded(self) -> "Expanded":
        """These accounts."""
        return self


class Factored:
    """Accounts that are sums of fewer, `base` of shape (B, A, C), with weights of shape (B, G, A), and their own."""

    def __init__(self, weight: Amounts, base: Amounts, own: Own) -> None:
        self._weight, self._base, self._own = weight, base, own

    def survey(self, communicator: Index) -> Survey:
        """As of `Expanded`, worked out block by block."""
        count, groups, owners = len(self._base), self._weight.shape[1], self._base.shape[2]
        columns = self._own.columns
        result = Survey(np.empty((count, owners)), self._own.work.copy(), np.empty((count, groups)))
        work = result.work.reshape(count, -1)
        width = max(1, _PRODUCTS_AT_ONCE // (groups * self._weight.shape[2]))
        rows = max(1, min(count, _AT_ONCE // (groups * width)))
        # Owners of work and of transfers in blocks of their own.
        edges = [*range(0, len(columns), width), *range(len(columns), owners, width), owners]
        for start, end in pairwise(edges):
            places = columns[start:end] * (end - start) + np.arange(len(columns[start:end]))
            met = np.flatnonzero((communicator >= start - len(columns)) & (communicator < end - len(columns)))
            for row in range(0, count, rows):
                some, block = slice(row, min(count, row + rows)), slice(start, end)
                late = np.matmul(self._weight[some], self._base[some, :, block])
                if len(places):
                    flat = late.reshape(len(late), -1)
                    work[some, block] += flat[:, places]
                    flat[:, places] = work[some, block]
                else:
                    late += self._own.left[some, :, start - len(columns) : end - len(columns)]
                    result.left[some, met] = late[:, met, communicator[met] + len(columns) - start]
                np.minimum.reduce(late, axis=1, out=result.least[some, block])
        return result

    def at(self, row: Index, column: Index) -> Amounts:
        """What all accounts have at some places, shape (places, G)."""
        columns = self._own.columns
        values: Amounts = np.matmul(self._weight[row], self._base[row, :, column][..., None])[..., 0]
        is_work = column < len(columns)
        place = np.flatnonzero(is_work)
        values[place, columns[column[place]]] += self._own.by_owner[row[place], column[place]]
        values[~is_work] += self._own.left[row[~is_work], :, column[~is_work] - len(columns)]
        return values

    def at_one(self, row: Index, account: Index, column: Index) -> Amounts:
        """What one account has at each of some places, shape (places,)."""
        result: Amounts = (self._weight[row, account] * self._base[row, :, column]).sum(axis=1)
        columns, work = self._own.columns, self._own.by_owner
        is_work = column < len(columns)
        place = column - np.where(is_work, 0, len(columns))
        own = is_work & (columns[np.where(is_work, place, 0)] == account)
        result[own] += work[row[own], place[own]]
        result[~is_work] += self._own.left[row[~is_work], account[~is_work], place[~is_work]]
        return result

    def total(self) -> Amounts:
        """Of all owners, shape (B, G)."""
        result: Amounts = np.matmul(self._weight, self._base.sum(axis=2)[..., None])[..., 0]
        result += self._own.left.sum(axis=2)
        by_rank, order = self._own.work.sum(axis=1), np.argsort(self._own.group, kind="stable")
        first = np.searchsorted(self._own.group[order], np.arange(result.shape[1]))
        result += np.add.reduceat(by_rank[:, order], first, axis=1)
        return result

    def joined(self, weight: Amounts, least: Amounts) -> Amounts:
        """As of `Expanded`."""
        # Sums of sums are sums of the few; the least goes in as one more of them.
        of_few = np.concatenate([np.matmul(weight, self._weight), -weight.sum(axis=2, keepdims=True)], axis=2)
        result = product(of_few, np.concatenate([self._base, least[:, None]], axis=1))
        columns = self._own.columns
        of_owners = np.take(weight, columns, axis=2)
        of_owners *= self._own.by_owner[:, None]
        result[:, :, : len(columns)] += of_owners
        result[:, :, len(columns) :] += np.matmul(weight, self._own.left)
        return result

    def expanded(self) -> Expanded:
        """The same with every amount worked out."""
        return Expanded(product(self._weight, self._base), self._own)


def _own_places(own: Own, owners: int) -> Index:
    """Places of owners of work in their own accounts, all accounts in a row."""
    columns = own.columns
    result: Index = columns * owners + np.arange(len(columns))
    return result


def product(weight: Amounts, apart: Amounts) -> Amounts:
    """Matrix product of shapes (B, G, A) and (B, A, C), on one thread."""
    result = np.empty((len(weight), weight.shape[1], apart.shape[2]))
    size = max(1, _PRODUCTS_AT_ONCE // (weight.shape[1] * weight.shape[2]))
    for first in range(0, apart.shape[2], size):
        block = slice(first, first + size)
        np.matmul(weight, apart[..., block], out=result[..., block])
    return result
