"""Blame flow where ranks meet in groups and wait at once. In: iterations of that kind. Out: the blame of each.

The same rules as in `blame`. After a wait all members of a group have the same account, but for how late each left
the transfer and what it did since, so one account is kept a group. Groups that join the same accounts have the same
least of them; only where a rank meets the others alone with its account can its own part change that.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.airport import share_lateness
from traceforge.attribute.lockstep import LockstepBlame
from traceforge.replay.meeting import Layout, Meetings, layout_of, meetings
from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts, Reference

Index = NDArray[np.int64]

# Elements of an array of (iterations, groups, owners) worked on at once.
_CHUNK = 600_000
# A product of matrices of so many multiplications stays on one thread; more threads cost more than they gain here.
_ONE_THREAD = 200_000


def in_groups(model: StepModel, communicator: Index) -> NDArray[np.bool_]:
    """Iterations in which at every place all ranks wait at once for groups of two or more, or none waits; (I,)."""
    places = np.arange(model.group.shape[1])
    is_real = places[None, :] < model.calls[:, None]
    none = (model.awaited < 0).all(axis=2)
    at_once = (model.awaited == places[:, None]).all(axis=2) & (model.group >= 0).all(axis=2)
    met = meetings(model.group)
    is_shared = np.array([layout.size.min() > 1 for layout in met.layouts], dtype=np.bool_)
    at_once &= is_shared[met.at] if len(is_shared) else False
    for i, p in zip(*np.nonzero(at_once & is_real), strict=True):
        layout = met.layouts[met.at[i, p]]
        own = communicator[i, p]
        at_once[i, p] = (own == own[layout.order[layout.first]][layout.group]).all()
    plain = ~model.before_wait_ns.any(axis=(2, 3)) & (model.transfer_ns >= 0).all(axis=2)
    if model.queued is not None:
        plain &= (model.queued < 0).all(axis=2)
    result: NDArray[np.bool_] = (~is_real | ((none | at_once) & plain)).all(axis=1)
    return result & (len(model.ranks) > 1)


def blame_groups(
    model: StepModel, iterations: Index, reference: Reference, communicator: Index
) -> Iterator[LockstepBlame]:
    """Blame of iterations in groups that have the reference's number of collectives.

    Args:
        iterations: their places in the model.
        communicator: index of the communicator of each place, shape (I, P, R).
    """
    met = meetings(model.group)
    joinings: dict[tuple[int, int], _Joining] = {}
    columns = len(model.ranks) * len(model.kinds) + int(communicator.max(initial=0)) + 1
    most = max((len(layout.size) for layout in met.layouts), default=1)
    size = max(1, _CHUNK // (columns * most))
    chunk: list[int] = []
    for i in iterations.tolist():
        if chunk and (len(chunk) == size or not _is_alike(model, met, communicator, chunk[0], i)):
            yield _blame(model, met, np.array(chunk), reference, communicator, joinings)
            chunk = []
        chunk.append(i)
    if chunk:
        yield _blame(model, met, np.array(chunk), reference, communicator, joinings)


def _is_alike(model: StepModel, met: Meetings, communicator: Index, one: int, other: int) -> bool:
    """Whether two iterations have the same groups, waits and communicators."""
    return bool(
        (met.at[one] == met.at[other]).all()
        and (model.awaited[one, :, 0] == model.awaited[other, :, 0]).all()
        and (communicator[one] == communicator[other]).all()
    )


def _blame(
    model: StepModel,
    met: Meetings,
    chunk: Index,
    reference: Reference,
    communicator: Index,
    joinings: "dict[tuple[int, int], _Joining]",
) -> LockstepBlame:
    flow = _Flow(model, chunk, reference, int(communicator.max(initial=0)) + 1, joinings)
    for position in range(len(reference.transfer_ns)):
        flow.work(position)
        if model.awaited[chunk[0], position, 0] >= 0:
            number = int(met.at[chunk[0], position])
            flow.meet_and_wait(position, number, met.layouts[number], communicator[chunk[0], position])
    flow.work(len(reference.transfer_ns))
    return flow.finish()


class _Joining:
    """Which accounts each group of a meeting joins: pairs of a group and an account, in the order of groups."""

    def __init__(self, layout: Layout, account: Index, accounts: int) -> None:
        self.layout, self.account = layout, account
        key, self.pair, size = np.unique(layout.group * accounts + account, return_inverse=True, return_counts=True)
        self.group_of, self.account_of = key // accounts, key % accounts
        self.order = np.argsort(self.pair, kind="stable")
        self.first = np.concatenate(([0], np.cumsum(size)[:-1]))
        self.first_of_group = np.searchsorted(self.group_of, np.arange(len(layout.size)))
        self.joins = np.zeros((len(layout.size), accounts), dtype=np.bool_)
        self.joins[self.group_of, self.account_of] = True
        kinds, self.kind_of = np.unique(self.joins, axis=0, return_inverse=True)
        self.kind_of = self.kind_of.ravel()
        self.kinds: list[Index] = [np.flatnonzero(kind) for kind in kinds]
        self.alone = np.flatnonzero((size[self.pair] == 1) & (self.joins.sum(axis=1)[layout.group] > 1))

    def by_pair(self, how: np.ufunc, of_ranks: Amounts) -> Amounts:
        """Of ranks, shape (B, R), to pairs."""
        result: Amounts = how.reduceat(of_ranks[:, self.order], self.first, axis=1)
        return result

    def by_group(self, how: np.ufunc, of_ranks: Amounts) -> Amounts:
        """Of ranks, shape (B, R), to groups."""
        result: Amounts = how.reduceat(of_ranks[:, self.layout.order], self.layout.first, axis=1)
        return result


# Numbers in place of a layout's: no wait yet, and the end of the iteration, where all meet.
_NONE, _ALL = -1, -2


@dataclass(frozen=True, slots=True)
class _Accounts:
    """The accounts of groups; B iterations, G groups, C owners (rank x kind, then communicators).

    Attributes:
        shared: lateness that all have, shape (B, C).
        late: lateness beside it, shape (B, G, C).
        total: of both, shape (B, G).
        credit: for fast transfers (<= 0), by communicator, shape (B, G, communicators).
        early: <= 0, shape (B, G).
    """

    shared: Amounts
    late: Amounts
    total: Amounts
    credit: Amounts
    early: Amounts


@dataclass(frozen=True, slots=True)
class _More:
    """By how much groups have more in common at some places than the accounts they join; flat lists."""

    row: Index
    group: Index
    column: Index
    amount: Amounts


class _Flow:
    """Accounts of groups, and what each rank has beside its group's, for iterations that are alike."""

    def __init__(
        self,
        model: StepModel,
        iterations: Index,
        reference: Reference,
        communicators: int,
        joinings: dict[tuple[int, int], _Joining],
    ) -> None:
        # What joins what is worked out once for two layouts, by their numbers; this one's is that of the last wait.
        self._joinings, self._layout = joinings, _NONE
        self._model, self._iterations, self._reference = model, iterations, reference
        count, ranks, kinds = len(iterations), len(model.ranks), len(model.kinds)
        self._columns = np.arange(ranks * kinds).reshape(ranks, kinds)
        start = model.start_ns[iterations].astype(np.float64)
        self._time = start - start.max(axis=1, keepdims=True)
        self._reference_time = 0.0
        self._head = self._time.copy()
        self._since = np.zeros((count, ranks, kinds))
        owners = ranks * kinds + communicators
        self._have = _Accounts(
            np.zeros((count, owners)),
            np.zeros((count, 1, owners)),
            np.zeros((count, 1)),
            np.zeros((count, 1, communicators)),
            np.zeros((count, 1)),
        )
        self._account = np.zeros(ranks, dtype=np.int64)
        self._communicator = np.zeros(1, dtype=np.int64)
        self._left_late, self._left_early = np.zeros((count, ranks)), np.zeros((count, ranks))

    def work(self, position: int) -> None:
        reference = self._reference.before_arrival_ns[position]
        difference = self._model.before_arrival_ns[self._iterations, position] - reference
        self._since += difference
        self._time = self._time + difference.sum(axis=2) + reference.sum()
        self._reference_time += float(reference.sum())

    def meet_and_wait(self, position: int, number: int, layout: Layout, communicator: Index) -> None:
        transfer = self._model.transfer_ns[self._iterations, position]
        self._have, self._layout = self._meet(number, layout), number
        self._time = np.broadcast_to(layout.latest(self._time), transfer.shape) + transfer
        slower = transfer - self._reference.transfer_ns[position]
        self._left_late, self._left_early = np.maximum(0, slower), np.minimum(0, slower)
        self._since[:] = 0.0
        self._head[:] = 0.0
        self._account, self._communicator = layout.group, communicator[layout.order[layout.first]]
        self._reference_time += float(self._reference.transfer_ns[position])

    def finish(self) -> LockstepBlame:
        have = self._meet(_ALL, layout_of(np.zeros(len(self._account), dtype=np.int64)))
        late, work = have.shared + have.late[:, 0], self._columns.size
        return LockstepBlame(
            self._iterations,
            late[:, :work].reshape(self._since.shape),
            late[:, work:] + have.credit[:, 0],
            have.early[:, 0],
        )

    def _meet(self, number: int, layout: Layout) -> _Accounts:
        have, key = self._have, (self._layout, number)
        if key not in self._joinings:
            self._joinings[key] = _Joining(layout, self._account, have.late.shape[1])
        joining = self._joinings[key]
        group, own_late = layout.group, np.maximum(0, self._since)
        if len(joining.kinds) == 1:
            least = have.late.min(axis=1, keepdims=True)
        else:
            least = np.stack([have.late[:, joined].min(axis=1) for joined in joining.kinds], axis=1)
        more = self._own_in_common(joining, least, own_late), self._left_in_common(joining, least)
        common = (have.shared.sum(axis=1)[:, None] + least.sum(axis=2))[:, joining.kind_of]
        for one in more:
            np.add.at(common, (one.row, one.group), one.amount)
        credit = self._credit(joining)
        early = joining.by_group(np.maximum, have.early[:, self._account] + self._head)
        beyond = self._time - self._reference_time - (common + credit.sum(axis=2) + early)[:, group]
        share = _shared(layout, beyond)
        own = have.total[:, self._account] + own_late.sum(axis=2) + self._left_late - common[:, group]
        # A share is at most the rank's own blame; beyond that there is rounding.
        factor = np.minimum(1.0, np.divide(share, own, out=np.zeros_like(own), where=own > 0))
        late = self._joined(joining, least, joining.by_pair(np.add, factor))
        late[:, group[:, None], self._columns] += factor[..., None] * own_late
        column = self._columns.size + self._communicator[joining.account_of]
        left = joining.by_pair(np.add, factor * self._left_late)
        rows = np.arange(len(late))[:, None]
        np.add.at(late, (rows, joining.group_of, column), left)
        given = 1 - joining.by_group(np.add, factor)
        for one in more:
            np.add.at(late, (one.row, one.group, one.column), one.amount * given[one.row, one.group])
        shared = have.shared + least[:, 0] if len(joining.kinds) == 1 else have.shared
        return _Accounts(
            shared,
            late,
            # Of what is there, not of what should be: else rounding would grow from meeting to meeting.
            shared.sum(axis=1)[:, None] + late.sum(axis=2),
            credit,
            early + np.minimum(0, joining.by_group(np.maximum, beyond)),
        )

    def _joined(self, joining: _Joining, least: Amounts, factor: Amounts) -> Amounts:
        """What groups have of the accounts they join, beside what all have, shape (B, G, C)."""
        have = self._have.late
        weight = np.zeros((len(have), *joining.joins.shape))
        weight[:, joining.group_of, joining.account_of] = factor
        if len(joining.kinds) == 1 and len(joining.kinds[0]) > 1:
            return _product(weight, have - least)
        result = np.zeros((len(have), len(joining.joins), have.shape[2]))
        for kind, joined in enumerate(joining.kinds):
            groups = np.flatnonzero(joining.kind_of == kind)
            if len(joining.kinds) > 1:
                result[:, groups] = least[:, kind, None]
            if len(joined) > 1:
                apart = have[:, joined] - least[:, kind, None]
                result[:, groups] += _product(weight[:, groups][:, :, joined], apart)
        return result

    def _own_in_common(self, joining: _Joining, least: Amounts, own_late: Amounts) -> _More:
        """Own work of ranks that are alone with their account, where that has the least of all that meet."""
        ranks = joining.alone
        group, account, columns = joining.layout.group[ranks], self._account[ranks], self._columns[ranks]
        kind = joining.kind_of[group]
        is_least = self._have.late[:, account[:, None], columns] == least[:, kind[:, None], columns]
        row, n, k = np.nonzero(is_least & (own_late[:, ranks] > 0))
        values = self._have.late[row, :, columns[n, k]]
        values[np.arange(len(row)), account[n]] += own_late[row, ranks[n], k]
        return _more(joining, least, row, group[n], columns[n, k], values)

    def _left_in_common(self, joining: _Joining, least: Amounts) -> _More:
        """How late members of an account left its transfer, where that account has the least of all that meet."""
        left = joining.by_pair(np.minimum, self._left_late)
        columns = self._columns.size + self._communicator[joining.account_of]
        kind = joining.kind_of[joining.group_of]
        is_least = self._have.late[:, joining.account_of, columns] == least[:, kind, columns]
        row, pair = np.nonzero(is_least & (left > 0))
        owners, groups = self._have.late.shape[2], len(joining.joins)
        place = np.unique((row * groups + joining.group_of[pair]) * owners + columns[pair])
        row, group, column = place // (groups * owners), place // owners % groups, place % owners
        added = np.zeros((len(left), *joining.joins.shape))
        added[:, joining.group_of, joining.account_of] = left
        is_own = self._columns.size + self._communicator == column[:, None]
        values = self._have.late[row, :, column] + np.where(is_own, added[row, group], 0.0)
        return _more(joining, least, row, group, column, values)

    def _credit(self, joining: _Joining) -> Amounts:
        """Credit for fast transfers that all members of a group have, shape (B, G, communicators)."""
        least = joining.by_pair(np.maximum, self._left_early)
        column = self._communicator[joining.account_of]
        if self._have.credit.any():
            pairs = self._have.credit[:, joining.account_of]
            pairs[:, np.arange(len(column)), column] += least
            return np.maximum.reduceat(pairs, joining.first_of_group, axis=1)
        # Nobody has credit from before: only what all have with one communicator is common.
        result = np.zeros((len(least), len(joining.joins), self._have.credit.shape[2]))
        one = column[joining.first_of_group]
        is_one = np.logical_and.reduceat(column == one[joining.group_of], joining.first_of_group)
        common = np.maximum.reduceat(least, joining.first_of_group, axis=1)
        result[:, np.arange(len(one)), one] = np.where(is_one, common, 0.0)
        return result


def _more(joining: _Joining, least: Amounts, row: Index, group: Index, column: Index, values: Amounts) -> _More:
    """What groups have in common at some columns above the least of their accounts.

    Args:
        values: what each account has there, own parts included, shape (entries, accounts).
    """
    lowest = np.where(joining.joins[group], values, np.inf).min(axis=1, initial=np.inf)
    amount = lowest - least[row, joining.kind_of[group], column]
    is_more = amount > 0
    return _More(row[is_more], group[is_more], column[is_more], amount[is_more])


def _product(weight: Amounts, apart: Amounts) -> Amounts:
    """Matrix product of shapes (B, G, A) and (B, A, C), on one thread."""
    result = np.empty((len(weight), weight.shape[1], apart.shape[2]))
    size = max(1, _ONE_THREAD // (weight.shape[1] * weight.shape[2]))
    for first in range(0, apart.shape[2], size):
        block = slice(first, first + size)
        np.matmul(weight, apart[..., block], out=result[..., block])
    return result


def _shared(layout: Layout, beyond: Amounts) -> Amounts:
    """Shares of each group's greatest lateness, shape (B, R)."""
    result = np.zeros_like(beyond)
    ends = layout.first + layout.size
    for size in np.unique(layout.size):
        members = layout.order[(ends[layout.size == size] - size)[:, None] + np.arange(size)]
        result[:, members] = share_lateness(beyond[:, members])
    return result
