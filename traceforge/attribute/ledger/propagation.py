"""Blame flow. In: a run's durations (`StepModel`). Out: for each iteration, its excess and who owns it.

Each rank's time carries a vector over owners, (rank, kind of work), slow transfer, and credit for being early, whose
sum is that time minus the time at reference durations. Work adds its signed difference. Where ranks meet, the blame
they have in common passes as it is, so that a chain of barriers adds up barrier by barrier; the lateness beyond it is
shared (see `shapley`), and each share divided as its rank's own blame is. Waiting adds nothing. Reference durations
are medians over ranks and iterations of the same place in the program (of transfers, first quartiles). An iteration
is reckoned from the last rank's start to the last rank's end, so that iterations add up to the run; at reference
durations, too, each rank begins when it did, since that is what the iteration before left.

Source: closed-form Shapley value of the max game at each meeting; a rank's credits do not cross a meeting.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.ledger.hidden_work import carried_over
from traceforge.attribute.ledger.shapley import share_lateness
from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts, Reference

# Layers of a vector of blame.
_LATE, _CREDIT = 0, 1
# Ranks whose waits are worked out together: more take more memory.
_RANKS_AT_ONCE = 128
# One of so many ranks may have an account of its own before all get one.
_FEW_APART = 8


@dataclass(frozen=True, slots=True)
class Blame:
    """Who owns an iteration's excess; ns, each may be negative (a credit).

    Attributes:
        work_ns: shape (R, K): by rank and kind of work.
        transfers_ns: slow transfers, nobody's in particular, by communicator, shape (C,).
        early_ns: <= 0: everyone came before the reference.
    """

    work_ns: Amounts
    transfers_ns: Amounts
    early_ns: float


def blame_iteration(
    model: StepModel, i: int, reference: Reference, communicator: NDArray[np.int64] | None = None
) -> Blame:
    """Blame for iteration `i`.

    Args:
        communicator: index of the communicator of each place, 0 to C - 1, shape (P, R); all are one by default.
    """
    flow = _DenseFlow(
        model, i, reference, np.zeros(model.group.shape[1:], np.int64) if communicator is None else communicator
    )
    around_waits = reference_around_waits(model, i, reference)
    for position in range(int(model.calls[i])):
        flow.work(model.before_arrival_ns[i, position], around_waits.before_arrival_ns[position])
        flow.meet(position)
        flow.work(model.before_wait_ns[i, position], around_waits.before_wait_ns[position])
        flow.await_end(position)
    flow.work(model.before_arrival_ns[i, model.calls[i]], around_waits.before_arrival_ns[-1])
    return flow.finish()


def reference_around_waits(model: StepModel, i: int, reference: Reference) -> Reference:
    """Reference work of each rank, divided around the waits of iteration `i` as the rank's own work is.

    A rank waits where only communication runs, which need not be where the others wait. What it has less before a
    wait and more after it than the reference is the same work on the other side, not a gain and a loss.

    Returns:
        Work with an axis of ranks: before_arrival_ns of shape (positions + 1, R, K), before_wait_ns (positions, R, K).
    """
    calls = int(model.calls[i])
    arrivals, waits = (
        work.copy() if work.ndim > 2 else np.repeat(work[:, None], len(model.ranks), axis=1)
        for work in (reference.before_arrival_ns, reference.before_wait_ns)
    )
    before = model.before_wait_ns[i, :calls] - waits
    after = model.before_arrival_ns[i, 1 : calls + 1] - arrivals[1:]
    carried = carried_over(before, after)
    waits -= carried
    arrivals[1:] += carried
    return Reference(arrivals, waits, reference.transfer_ns)


@dataclass(frozen=True, slots=True)
class _Ended:
    """Blame at the end of one collective.

    Attributes:
        accounts: of each group, shape (G, 2, columns).
        account: which of them each rank has, shape (R,).
        column: of its communicator, shape (R,).
        slower_ns: transfer above its reference, shape (R,).
    """

    accounts: Amounts
    account: NDArray[np.int64]
    column: NDArray[np.int64]
    slower_ns: Amounts

    def blame(self, ranks: NDArray[np.int64]) -> Amounts:
        """Blame of ranks, shape (ranks, 2, columns)."""
        result: Amounts = self.accounts[self.account[ranks]]
        rows, column, slower = np.arange(len(ranks)), self.column[ranks], self.slower_ns[ranks]
        result[rows, _LATE, column] += np.maximum(0, slower)
        result[rows, _CREDIT, column] += np.minimum(0, slower)
        return result

    def in_common(self, ranks: NDArray[np.int64]) -> Amounts:
        """What ranks have in common, all of which have one account and met by one communicator, shape (2, columns)."""
        result: Amounts = self.accounts[0].copy()
        slower, column = self.slower_ns[ranks], int(self.column[0])
        result[_LATE, column] += max(0.0, float(slower.min()))
        result[_CREDIT, column] += min(0.0, float(slower.max()))
        return result

    @property
    def is_one_column(self) -> bool:
        """Whether all ranks have one account, and met by one communicator."""
        return len(self.accounts) == 1 and bool((self.column == self.column[0]).all())


def _last_uses(model: StepModel, i: int) -> NDArray[np.int64]:
    """The last place at which the end of each is awaited or held against, -1 for none, shape (P,)."""
    places = model.group.shape[1]
    result = np.full(places, -1, dtype=np.int64)
    for of_place in (model.awaited[i], *(() if model.queued is None else (model.queued[i],))):
        used, _ = np.nonzero(of_place >= 0)
        np.maximum.at(result, of_place[of_place >= 0], used)
    return result


class _DenseFlow:
    """Time, reference time and blame of every rank while an iteration goes on.

    Blame is held in two layers with the same columns: lateness (>= 0) and credit (<= 0). Were they netted, a rank
    that is fast after a meeting would take back what it cost everybody before it, and hand that to whoever is late
    next. Only work since a rank's last wait cancels; it is held apart. Columns: rank x kind, then communicators (for
    slow transfers), then early.
    """

    def __init__(self, model: StepModel, i: int, reference: Reference, communicator: NDArray[np.int64]) -> None:
        self._model, self._i, self._reference, self._communicator = model, i, reference, communicator
        ranks, kinds, calls = len(model.ranks), len(model.kinds), int(model.calls[i])
        self._kinds = kinds
        self._transfer = ranks * kinds
        self._early = self._transfer + int(communicator.max(initial=0)) + 1
        start = model.start_ns[i].astype(np.float64)
        # A rank that starts before the last one would do so at reference durations, too.
        self._time = self._reference_time = start - start.max()
        nobodys = np.zeros((1, 2, self._early + 1))
        self._everyone = np.arange(ranks)
        everyones = np.zeros(ranks, dtype=np.int64)
        # What ranks have in common since they last waited together, but for some apart, in place of `_costs_of`; else
        # None.
        self._common: _Ended | None = _Ended(nobodys, everyones, everyones + self._transfer, np.zeros(ranks))
        self._apart: dict[int, Amounts] = {}
        self._costs_of = nobodys
        self._since = np.zeros((ranks, kinds))
        self._end = np.zeros((calls, ranks))
        self._end_alone = np.zeros((calls, ranks))
        self._reference_end = np.zeros((calls, ranks))
        # Accounts at the end of collectives, as long as they are asked for.
        self._ended: dict[int, _Ended] = {}
        self._last_use = _last_uses(model, i)
        self._own_columns = np.arange(ranks * kinds).reshape(ranks, kinds)

    def work(self, work_ns: NDArray[np.int64], reference_ns: Amounts) -> None:
        self._time = self._time + work_ns.sum(axis=1)
        self._reference_time = self._reference_time + reference_ns.sum(axis=-1)
        self._since += work_ns - reference_ns

    def meet(self, position: int) -> None:
        group = self._model.group[self._i, position]
        transfer = self._model.transfer_ns[self._i, position]
        reference_transfer = np.broadcast_to(self._reference.transfer_ns[position], len(group))
        slower = np.where(group >= 0, transfer - reference_transfer, 0.0)
        queued = np.full(len(group), -1) if self._model.queued is None else self._model.queued[self._i, position]
        accounts, account = [], np.zeros(len(group), dtype=np.int64)
        # Who joins no collective here meets nobody: its end is its own time, and nothing is asked of it later.
        self._end[position] = self._end_alone[position] = self._time
        self._reference_end[position] = self._reference_time
        numbers = np.unique(group[group >= 0])
        if not len(numbers):
            return
        for n, number in enumerate(numbers):
            members = np.flatnonzero(group == number)
            time, reference_time, blame = self._join(members, queued)
            self._end[position, members] = time + transfer[members]
            self._end_alone[position, members] = self._alone(members, queued) + transfer[members]
            self._reference_end[position, members] = reference_time + reference_transfer[members]
            accounts.append(blame)
            account[members] = n
        column = self._transfer + self._communicator[position]
        self._ended[position] = _Ended(np.stack(accounts), account, column, slower)

    def await_end(self, position: int) -> None:
        awaited = self._model.awaited[self._i, position]
        places = np.unique(awaited[awaited >= 0]).tolist()
        if places and self._is_awaited_by_all(places[0], awaited):
            places = []
        elif places and (awaited >= 0).sum() + len(self._apart) > len(awaited) // _FEW_APART:
            self._tell_apart()
        for place in places:
            waiting = np.flatnonzero(awaited == place)
            for first in range(0, len(waiting), _RANKS_AT_ONCE):
                self._await(waiting[first : first + _RANKS_AT_ONCE], place)
        for place in [place for place in self._ended if self._last_use[place] <= position]:
            del self._ended[place]

    def _is_awaited_by_all(self, place: int, awaited: NDArray[np.int64]) -> bool:
        """Whether all ranks wait for the same, and none has a chain of its own that outlasts it; if so, they have."""
        ended, reference = self._ended[place], self._reference_end[place]
        is_common = (
            len(self._everyone) > 1
            and bool((awaited == place).all() and (self._model.group[self._i, place] >= 0).all())
            and ended.is_one_column
            and bool((self._time <= self._end_alone[place]).all() and (self._reference_time <= reference).all())
        )
        if is_common:
            self._common, self._apart, self._since[:] = ended, {}, 0.0
            self._time, self._reference_time = np.maximum(self._time, self._end[place]), reference.copy()
        return is_common

    def _tell_apart(self) -> None:
        """Have what each rank has stand in `_costs_of`."""
        if self._common is not None:
            self._costs_of, self._common, self._apart = self._costs(self._everyone), None, {}

    def _costs(self, ranks: NDArray[np.int64]) -> Amounts:
        """Blame of ranks when they last waited, shape (ranks, 2, columns)."""
        if self._common is None:
            kept: Amounts = self._costs_of[ranks]
            return kept
        result = self._common.blame(ranks)
        for n, rank in enumerate(ranks.tolist() if self._apart else ()):
            if rank in self._apart:
                result[n] = self._apart[rank]
        return result

    def _await(self, ranks: NDArray[np.int64], place: int) -> None:
        time = np.stack([self._time[ranks], self._end[place, ranks]], axis=1)
        reference = np.maximum(self._reference_time[ranks], self._reference_end[place, ranks])
        # The end holds a rank's own arrival already: its own chain counts only as far as it outlasts the transfer.
        outlasting = np.maximum(0, self._time[ranks] - self._end_alone[place, ranks])
        # A chain that ends before its own transfer would have adds nothing: the end's account is taken as it is.
        both = np.flatnonzero((outlasting > 0) | (reference > self._reference_end[place, ranks]))
        costs = self._ended[place].blame(ranks)
        if len(both):
            blame = np.stack([self._blame(ranks[both]), costs[both]], axis=1)
            costs[both] = self._shared(blame, (time - reference[:, None])[both], outlasting[both])
        if self._common is None:
            self._costs_of[ranks] = costs
        else:
            self._apart.update(zip(ranks.tolist(), costs, strict=True))
        self._since[ranks] = 0.0
        self._time[ranks], self._reference_time[ranks] = time.max(axis=1), reference

    def finish(self) -> Blame:
        _, _, layers = self._join(self._everyone, np.full(len(self._everyone), -1))
        blame = layers.sum(axis=0)
        work = blame[: self._transfer].reshape(-1, self._kinds)
        return Blame(work, blame[self._transfer : self._early], float(blame[self._early]))

    def _blame(self, ranks: NDArray[np.int64]) -> Amounts:
        """Blame of ranks as of now, shape (ranks, 2, columns)."""
        blame, own = self._costs(ranks), self._own_columns[ranks]
        rows = np.arange(len(ranks))[:, None]
        blame[rows, _LATE, own] += np.maximum(0, self._since[ranks])
        blame[rows, _CREDIT, own] += np.minimum(0, self._since[ranks])
        return blame

    def _alone(self, members: NDArray[np.int64], queued: NDArray[np.int64]) -> Amounts:
        """When members would start a collective if nobody else had part in it."""
        before, time = queued[members], self._time[members]
        is_held = before >= 0
        result: Amounts = time.copy()
        result[is_held] = np.maximum(time[is_held], self._end_alone[before[is_held], members[is_held]])
        return result

    def _join(self, members: NDArray[np.int64], queued: NDArray[np.int64]) -> tuple[float, float, Amounts]:
        """Members meet, each with its own chain and, where its stream is busy, with the end of what holds it back."""
        held = members[queued[members] >= 0]
        behind = {int(place): held[queued[held] == place] for place in np.unique(queued[held])}
        is_alike = all(self._ended[place].is_one_column for place in behind)
        if self._common is not None and is_alike and len(self._apart) + 1 < len(members) == len(self._everyone):
            return self._join_in_common(self._common, behind)
        self._tell_apart()
        times = np.concatenate([self._time[members], *(self._end[at, ranks] for at, ranks in behind.items())])
        references = [self._reference_time[members], *(self._reference_end[at, ranks] for at, ranks in behind.items())]
        blame = self._blame(members)
        if behind:  # else it would be copied for nothing, which takes as long as all the rest
            blame = np.concatenate([blame, *(self._ended[at].blame(ranks) for at, ranks in behind.items())])
        reference = np.concatenate(references)
        latest = float(reference.max())
        return float(times.max()), latest, self._shared(blame[None], (times - latest)[None])[0]

    def _join_in_common(self, common: _Ended, behind: dict[int, NDArray[np.int64]]) -> tuple[float, float, Amounts]:
        """As `_join`, of all ranks where most have but their own work, and how late they left, beside one account.

        At a rank's own columns the others have the least, and at that of the communicator the one that left first has.

        Args:
            behind: ranks that stand behind each place, of which all have one account.
        """
        apart = np.array(sorted(self._apart), dtype=np.int64)
        alike = np.setdiff1d(self._everyone, apart)
        sources = [(common, alike), *((self._ended[place], held) for place, held in behind.items())]
        own = np.maximum(0, self._since[alike])
        times = [self._time[alike], *(self._end[place, held] for place, held in behind.items()), self._time[apart]]
        references = [self._reference_time.max(), *(self._reference_end[at, held].max() for at, held in behind.items())]
        latest, singles = float(max(references)), self._blame(apart)
        lowest = np.stack([ended.in_common(ranks) for ended, ranks in sources])
        every = np.concatenate([lowest, singles])
        result: Amounts = np.stack([every[:, _LATE].min(axis=0), every[:, _CREDIT].max(axis=0)])
        beyond = np.concatenate(times) - latest - result.sum()
        above = every[:, _LATE] - result[_LATE]
        left = [np.maximum(0, ended.slower_ns[ranks]) for ended, ranks in sources]
        left = [one - one.min() for one in left]
        totals = [total + more for total, more in zip(above.sum(axis=1).tolist(), left, strict=False)]
        totals[0] = totals[0] + own.sum(axis=1)
        total = np.concatenate([*totals, above[len(sources) :].sum(axis=1)])
        share = share_lateness(np.maximum(0, beyond))
        factor = np.divide(share, total, out=np.zeros_like(total), where=total > 0)
        factors = np.split(factor, np.cumsum([len(one) for one in left]))
        weight = np.concatenate([[one.sum() for one in factors[:-1]], factors[-1]])
        result[_LATE] += weight @ above
        result[_LATE, self._own_columns[alike]] += own * factors[0][:, None]
        for (ended, _), one, of_source in zip(sources, left, factors, strict=False):
            result[_LATE, int(ended.column[0])] += (one * of_source).sum()
        result[_CREDIT, self._early] += min(0.0, float(beyond.max()))
        return float(max(one.max(initial=-np.inf) for one in times)), latest, result

    def _shared(self, blame: Amounts, lateness: Amounts, most_of_first: Amounts | None = None) -> Amounts:
        """Blame of meetings, shape (meetings, 2, columns).

        Args:
            blame: of each input, shape (meetings, inputs, 2, columns).
            lateness: of each input against the meeting's reference time, signed, shape (meetings, inputs).
            most_of_first: greatest share of the first of two inputs, shape (meetings,); the second takes the rest.
        """
        late, credit = blame[:, :, _LATE], blame[:, :, _CREDIT]
        result = np.stack([late.min(axis=1), credit.max(axis=1)], axis=1)
        beyond = lateness - result.sum(axis=(1, 2))[:, None]
        share = share_lateness(np.maximum(0, beyond))
        if most_of_first is not None:
            surplus = np.maximum(0, share[:, 0] - most_of_first)
            share += np.stack([-surplus, surplus], axis=1)
        own = late - result[:, None, _LATE]
        total = own.sum(axis=2)
        factor = np.divide(share, total, out=np.zeros_like(total), where=total > 0)
        result[:, _LATE] += np.einsum("mic,mi->mc", own, factor)
        result[:, _CREDIT, self._early] += np.minimum(0, beyond.max(axis=1))
        return result
