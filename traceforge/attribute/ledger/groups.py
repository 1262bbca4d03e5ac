"""Blame flow where ranks meet in groups and wait at once. In: iterations of that kind. Out: the blame of each.

The same rules as in `propagation`. After a wait all members of a group have the same account, but for how late each
left the transfer and what it did since, so one account is kept a group (see `blame_state`). Groups that join the same
accounts have the same least of them; only where a rank meets the others alone with its account can its own part change
that.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.ledger.blame_state import Expanded, Factored, Own, product
from traceforge.attribute.ledger.group_merge import GroupMerge
from traceforge.attribute.ledger.hidden_work import carried_at
from traceforge.attribute.ledger.one_group import BlameOfMany, factor_of, rows_of
from traceforge.replay.model import StepModel
from traceforge.replay.rank_groups import RankGroups, RankPartition, partition_of, rank_groups
from traceforge.replay.reference import Amounts, Reference

Index = NDArray[np.int64]

# Elements of arrays of (iterations, accounts, owners) worked on at once: of the few accounts that others are sums of,
# and of all accounts, which are seldom worked out.
_FEW_AT_ONCE = 300_000
_ALL_AT_ONCE = 4_000_000


def blame_groups(
    model: StepModel, iterations: Index, reference: Reference, communicator: Index
) -> Iterator[BlameOfMany]:
    """Blame of iterations in groups that have the reference's number of collectives.

    Args:
        iterations: their places in the model.
        communicator: index of the communicator of each place, shape (I, P, R).
    """
    if not len(iterations):
        return
    met = rank_groups(model.group)
    merges: dict[tuple[int, int], GroupMerge] = {}
    columns = len(model.ranks) * len(model.kinds) + int(communicator.max(initial=0)) + 1
    accounts = [len(layout.size) for layout in met.layouts] or [1]
    size = max(1, min(_FEW_AT_ONCE // (columns * min(accounts)), _ALL_AT_ONCE // (columns * max(accounts))))
    chunk: list[int] = []
    for i in iterations.tolist():
        if chunk and (len(chunk) == size or not _is_alike(model, met, communicator, chunk[0], i)):
            yield _blame(model, met, np.array(chunk), reference, communicator, merges)
            chunk = []
        chunk.append(i)
    yield _blame(model, met, np.array(chunk), reference, communicator, merges)


def _is_alike(model: StepModel, met: RankGroups, communicator: Index, one: int, other: int) -> bool:
    """Whether two iterations have the same groups, waits and communicators."""
    return bool(
        (met.at[one] == met.at[other]).all()
        and (model.awaited[one, :, 0] == model.awaited[other, :, 0]).all()
        and (communicator[one] == communicator[other]).all()
    )


def _blame(
    model: StepModel,
    met: RankGroups,
    chunk: Index,
    reference: Reference,
    communicator: Index,
    merges: dict[tuple[int, int], GroupMerge],
) -> BlameOfMany:
    flow = _GroupFlow(model, chunk, reference, int(communicator.max(initial=0)) + 1, merges)
    for position in range(len(reference.transfer_ns)):
        flow.work(position)
        if model.awaited[chunk[0], position, 0] >= 0:
            number = int(met.at[chunk[0], position])
            flow.meet_and_wait(position, number, met.layouts[number], communicator[chunk[0], position])
        else:
            flow.work_on(position)
    flow.work(len(reference.transfer_ns))
    return flow.finish()


# Numbers in place of a layout's: no wait yet, and the end of the iteration, where all meet.
_NONE, _ALL = -1, -2


@dataclass(frozen=True, slots=True)
class _GroupStates:
    """What groups have; B iterations, G groups, C owners (kind x rank, then communicators).

    Attributes:
        shared: lateness that all have, shape (B, C).
        late: lateness beside it, shape (B, G, C).
        total: of both, shape (B, G).
        credit: for fast transfers (<= 0), by communicator, shape (B, G, communicators); None where there is none.
        early: <= 0, shape (B, G).
    """

    shared: Amounts
    late: Expanded | Factored
    total: Amounts
    credit: Amounts | None
    early: Amounts


@dataclass(frozen=True, slots=True)
class _More:
    """By how much groups have more in common at some places than the accounts they join; flat lists."""

    row: Index
    group: Index
    column: Index
    amount: Amounts


@dataclass(frozen=True, slots=True)
class _LeastAt:
    """Places at which an account that a group joins has the least; flat lists."""

    row: Index
    group: Index
    account: Index
    column: Index


class _GroupFlow:
    """Accounts of groups, and what each rank has beside its group's, for iterations that are alike."""

    def __init__(
        self,
        model: StepModel,
        iterations: Index,
        reference: Reference,
        communicators: int,
        merges: dict[tuple[int, int], GroupMerge],
    ) -> None:
        # What joins what is worked out once for two layouts, by their numbers; this one's is that of the last wait.
        self._joinings, self._layout = merges, _NONE
        self._model, self._iterations, self._reference = model, iterations, reference
        self._rows = rows_of(iterations)
        count, self._ranks, kinds = len(iterations), len(model.ranks), len(model.kinds)
        self._work, self._communicators = self._ranks * kinds, communicators
        start = model.start_ns[iterations].astype(np.float64)
        # Against the time at reference durations.
        self._lateness = start - start.max(axis=1, keepdims=True)
        self._latest = self._lateness[:, :1]
        # How far each account is ahead of the last start at reference durations; each rank, before the first wait.
        self._ahead, self._has_met = self._lateness.copy(), False
        # By how much each rank's own reference since the last wait is above the others'; None where no one's is.
        self._own_ahead: Amounts | None = None
        self._since = np.zeros((count, kinds, self._ranks))
        self._account = np.zeros(self._ranks, dtype=np.int64)
        nothing = Own(self._account, np.zeros_like(self._since), np.zeros((count, 1, communicators)))
        self._have = _GroupStates(
            np.zeros((count, self._work + communicators)),
            Expanded(np.zeros((count, 1, self._work + communicators)), nothing),
            np.zeros((count, 1)),
            None,
            np.zeros((count, 1)),
        )
        self._communicator = np.zeros(1, dtype=np.int64)
        self._left_late, self._left_early = np.zeros((count, self._ranks)), np.zeros((count, self._ranks))

    def work(self, position: int) -> None:
        """Work before the arrival at a place."""
        self._add(self._model.before_arrival_ns[self._rows, position], self._reference.before_arrival_ns[position])

    def work_on(self, position: int) -> None:
        """Work behind an arrival after which nobody waits."""
        work, usual = self._model.before_wait_ns[self._rows, position], self._reference.before_wait_ns[position]
        if usual.any() or work.any():
            self._add(work, usual)

    def _add(self, work: NDArray[np.int64], reference: Amounts) -> None:
        for k, usual in enumerate(reference.tolist()):
            difference = work[..., k] - usual
            self._since[:, k] += difference
            self._lateness += difference

    def meet_and_wait(self, position: int, number: int, layout: RankPartition, communicator: Index) -> None:
        slower = self._model.transfer_ns[self._rows, position] - self._reference.transfer_ns[position]
        self._have, self._layout = self._meet(number, layout), number
        self._lateness = self._latest.take(layout.group, axis=1) + slower
        self._left_late, self._left_early = np.maximum(0, slower), np.minimum(0, slower)
        carried = carried_at(self._model, self._rows, position, self._reference)
        self._own_ahead = None if carried is None or not carried.any() else carried.sum(axis=2)
        self._since[:] = 0.0 if carried is None else -np.moveaxis(carried, 2, 1)
        self._account, self._communicator = layout.group, communicator[layout.order[layout.first]]

    def finish(self) -> BlameOfMany:
        have = self._meet(_ALL, partition_of(np.zeros(self._ranks, dtype=np.int64)))
        late = have.shared + have.late.expanded().late[:, 0]
        count, kinds, ranks = self._since.shape
        transfers = late[:, self._work :] + (0.0 if have.credit is None else have.credit[:, 0])
        work = late[:, : self._work].reshape(count, kinds, ranks)
        return BlameOfMany(self._iterations, np.moveaxis(work, 1, 2), transfers, have.early[:, 0])

    def _meet(self, number: int, layout: RankPartition) -> _GroupStates:
        have, key = self._have, (self._layout, number)
        if key not in self._joinings:
            self._joinings[key] = GroupMerge(layout, self._account, have.early.shape[1])
        merge = self._joinings[key]
        is_one_kind, is_to_part = len(merge.kinds) == 1, len(layout.size) > have.early.shape[1]
        late = have.late if is_one_kind and not is_to_part else have.late.expanded()
        survey = late.survey(self._communicator)
        least = survey.least[:, None] if is_one_kind else _least_of_kinds(merge, late.expanded())
        own_late = np.maximum(0, self._since)
        more = (
            self._own_in_common(merge, late, survey.work, least, own_late),
            self._left_in_common(merge, late, survey.left, least),
        )
        common = (have.shared.sum(axis=1)[:, None] + least.sum(axis=2))[:, merge.kind_of]
        for one in more:
            np.add.at(common, (one.row, one.group), one.amount)
        credit = self._credit(merge)
        early = merge.by_group(np.maximum, have.early[:, merge.account_of])
        self._ahead, self._has_met = self._ahead_of(merge), True
        in_common = common + early if credit is None else common + early + credit.sum(axis=2)
        below = in_common + self._ahead
        beyond = self._lateness - below.take(layout.group, axis=1)
        own = have.total.take(self._account, axis=1) - common.take(layout.group, axis=1)
        own += own_late.sum(axis=1)
        own += self._left_late
        factor = factor_of(merge.shared(beyond), own)
        weight = np.zeros((len(factor), *merge.joins.shape))
        weight[:, merge.group_of, merge.account_of] = merge.by_pair(np.add, factor)
        fresh = self._fresh(merge, weight, factor, own_late, more)
        shared = have.shared + least[:, 0] if is_one_kind else have.shared
        joined = _joined(merge, late, least, weight, fresh, is_to_part=is_to_part)
        # A total is of what is there, not of what should be: else rounding would grow from meeting to meeting.
        total = shared.sum(axis=1)[:, None] + joined.total()
        latest = merge.by_group(np.maximum, merge.by_pair(np.maximum, beyond))
        self._latest = below + latest
        return _GroupStates(shared, joined, total, credit, early + np.minimum(0, latest))

    def _fresh(
        self, merge: GroupMerge, weight: Amounts, factor: Amounts, own_late: Amounts, more: tuple[_More, _More]
    ) -> Own:
        """What groups have beside what they take over from the accounts they join."""
        work = own_late * factor[:, None]
        left = np.zeros((len(factor), len(merge.joins), self._communicators))
        of_pairs = merge.by_pair(np.add, factor * self._left_late)
        column = self._communicator[merge.account_of]
        if len(np.unique(merge.group_of * self._communicators + column)) == len(column):
            left[:, merge.group_of, column] = of_pairs
        else:
            np.add.at(left, (np.arange(len(left))[:, None], merge.group_of, column), of_pairs)
        given = 1 - weight.sum(axis=2)
        of_work, of_left = more
        flat = work.reshape(len(work), -1)
        flat[of_work.row, of_work.column] += of_work.amount * given[of_work.row, of_work.group]
        left[of_left.row, of_left.group, of_left.column - self._work] += (
            of_left.amount * given[of_left.row, of_left.group]
        )
        return Own(merge.layout.group, work, left)

    def _own_in_common(
        self, merge: GroupMerge, late: Expanded | Factored, at_own: Amounts, least: Amounts, own_late: Amounts
    ) -> _More:
        """Own work of ranks that are alone with their account, where that has the least of all that meet."""
        kind = merge.kind_of[merge.layout.group]
        of_work = least[:, :, : self._work].reshape(len(least), -1, *own_late.shape[1:])
        of_rank = (
            of_work[:, 0] if len(merge.kinds) == 1 else np.moveaxis(of_work[:, kind, :, np.arange(len(kind))], 0, 2)
        )
        row, k, rank = np.nonzero((at_own == of_rank) & (own_late > 0) & merge.is_alone)
        column, group = k * self._ranks + rank, merge.layout.group[rank]
        is_open = ~_is_tied(merge, late, least, _LeastAt(row, group, self._account[rank], column))
        row, k, rank, column, group = (each[is_open] for each in (row, k, rank, column, group))
        values = late.at(row, column)
        values[np.arange(len(row)), self._account[rank]] += own_late[row, k, rank]
        return _more(merge, least, row, group, column, values)

    def _left_in_common(self, merge: GroupMerge, late: Expanded | Factored, at_own: Amounts, least: Amounts) -> _More:
        """How late members of an account left its transfer, where that account has the least of all that meet."""
        left = merge.by_pair(np.minimum, self._left_late)
        columns = self._work + self._communicator[merge.account_of]
        owners, groups = least.shape[2], len(merge.joins)
        if len(merge.kinds) == 1:
            is_least = at_own == least[:, 0, self._work + self._communicator]
            row, pair = np.nonzero(is_least.take(merge.account_of, axis=1) & (left > 0))
        else:
            of_pair = least[:, merge.kind_of[merge.group_of], columns]
            row, pair = np.nonzero((at_own[:, merge.account_of] == of_pair) & (left > 0))
        at = _LeastAt(row, merge.group_of[pair], merge.account_of[pair], columns[pair])
        is_open = ~_is_tied(merge, late, least, at, self._work + self._communicator)
        row, pair = row[is_open], pair[is_open]
        place = np.unique((row * groups + merge.group_of[pair]) * owners + columns[pair])
        row, group, column = place // (groups * owners), place // owners % groups, place % owners
        added = np.zeros((len(left), *merge.joins.shape))
        added[:, merge.group_of, merge.account_of] = left
        is_own = self._work + self._communicator == column[:, None]
        values = late.at(row, column) + np.where(is_own, added[row, group], 0.0)
        return _more(merge, least, row, group, column, values)

    def _ahead_of(self, merge: GroupMerge) -> Amounts:
        """How far groups are ahead of the last start at reference durations: as far as the last of what they join."""
        if self._has_met and self._own_ahead is None:
            of_pairs = self._ahead[:, merge.account_of]
        elif self._own_ahead is None:
            of_pairs = merge.by_pair(np.maximum, self._ahead)
        else:
            of_pairs = merge.by_pair(np.maximum, self._ahead.take(self._account, axis=1) + self._own_ahead)
        return merge.by_group(np.maximum, of_pairs)

    def _credit(self, merge: GroupMerge) -> Amounts | None:
        """Credit for fast transfers that all members of a group have, shape (B, G, communicators)."""
        column = self._communicator[merge.account_of]
        one = column[merge.first_of_group]
        is_one = np.logical_and.reduceat(column == one[merge.group_of], merge.first_of_group)
        if self._have.credit is None and not is_one.any():
            return None
        least = merge.by_pair(np.maximum, self._left_early)
        if self._have.credit is not None:
            pairs = self._have.credit[:, merge.account_of]
            pairs[:, np.arange(len(column)), column] += least
            return merge.by_group(np.maximum, pairs)
        # Nobody has credit from before: only what all have with one communicator is common.
        common = np.where(is_one, merge.by_group(np.maximum, least), 0.0)
        if not common.any():
            return None
        result = np.zeros((len(least), len(merge.joins), self._communicators))
        result[:, np.arange(len(one)), one] = common
        return result


def _least_of_kinds(merge: GroupMerge, late: Expanded) -> Amounts:
    """Least of the accounts that groups of each kind join, shape (B, kinds, C)."""
    return np.stack([late.late[:, joined].min(axis=1) for joined in merge.kinds], axis=1)


def _joined(
    merge: GroupMerge, late: Expanded | Factored, least: Amounts, weight: Amounts, fresh: Own, *, is_to_part: bool
) -> Expanded | Factored:
    """What groups have of the accounts they join, beside what all have, and of their own."""
    if len(merge.kinds) == 1:
        if is_to_part:
            return Factored(weight, late.expanded().late - least, fresh)
        return Expanded(late.joined(weight, least[:, 0]), fresh)
    have = late.expanded().late
    result = np.zeros((len(have), len(merge.joins), have.shape[2]))
    for kind, joined in enumerate(merge.kinds):
        groups = np.flatnonzero(merge.kind_of == kind)
        result[:, groups] = least[:, kind, None]
        if len(joined) > 1:
            apart = have[:, joined] - least[:, kind, None]
            result[:, groups] += product(weight[:, groups][:, :, joined], apart)
    return Expanded(result, fresh)


def _is_tied(
    merge: GroupMerge, late: Expanded | Factored, least: Amounts, at: _LeastAt, own: Index | None = None
) -> NDArray[np.bool_]:
    """Places where the next account has the least as well: there is no more in common; others are not looked at.

    Args:
        own: places at which accounts may have more of their own, shape (G,).
    """
    other = (at.account + 1) % merge.joins.shape[1]
    is_least = late.at_one(at.row, other, at.column) <= least[at.row, merge.kind_of[at.group], at.column]
    result: NDArray[np.bool_] = is_least & (other != at.account) & merge.joins[at.group, other]
    return result if own is None else result & (own[other] != at.column)


def _more(merge: GroupMerge, least: Amounts, row: Index, group: Index, column: Index, values: Amounts) -> _More:
    """What groups have in common at some columns above the least of their accounts.

    Args:
        values: what each account has there, own parts included, shape (entries, accounts).
    """
    lowest = np.where(merge.joins[group], values, np.inf).min(axis=1, initial=np.inf)
    amount = lowest - least[row, merge.kind_of[group], column]
    is_more = amount > 0
    return _More(row[is_more], group[is_more], column[is_more], amount[is_more])
