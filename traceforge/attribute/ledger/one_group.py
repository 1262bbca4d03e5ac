"""Blame flow where all ranks meet and wait together. In: iterations of that kind. Out: the blame of each.

The same rules as in `propagation`, at a cost that grows with the number of ranks and not with its square: after a wait
that all ranks share their accounts are the same, but for how late each left the transfer, so one account is kept for
all, for many iterations at once. Likewise at the end of a collective that holds back the next one on the stream, as
where gradients are reduced in buckets while backward goes on, and all wait for the last. Work before a wait may not
outlast what is waited for (see `hidden_work`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.ledger.hidden_work import carried_at
from traceforge.attribute.ledger.shapley import share_lateness
from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts, Reference

# Elements of an array of (iterations, ranks) worked on at once: several such arrays should stay in the cache.
_AT_ONCE = 32_768
# Stands for nothing in a division, where what is divided is nothing as well.
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class BlameOfMany:
    """Who owns the excess of several iterations; as `propagation.Blame`, with an axis of iterations first."""

    iterations: NDArray[np.int64]
    work_ns: Amounts
    transfers_ns: Amounts
    early_ns: Amounts


def is_one_group(model: StepModel, among: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Iterations in which all ranks meet at every place and either all wait for its end at once or none does; (I,).

    A collective may be held back by an earlier one, the same for all ranks that it is held back on.

    Args:
        among: iterations to look at, those in which transfers hide work (see `hidden_work`); False for the others.
    """
    places = np.arange(model.group.shape[1])
    is_real = places[None, :] < model.calls[:, None]
    together = (model.group == model.group[:, :, :1]).all(axis=2)
    alike = (model.awaited == model.awaited[:, :, :1]).all(axis=2)
    first = model.awaited[:, :, 0] if model.group.shape[2] else model.awaited.max(axis=2)
    at_once = (first == places[None, :]) | (first < 0)
    is_plain = (model.transfer_ns >= 0).all(axis=2)
    if model.queued is not None:
        one = model.queued.max(axis=2, keepdims=True, initial=-1)
        is_plain &= ((model.queued < 0) | (model.queued == one)).all(axis=2)
    result: NDArray[np.bool_] = (~is_real | (together & alike & at_once & is_plain)).all(axis=1)
    return result & among & (len(model.ranks) > 1)


def blame_one_group(
    model: StepModel, iterations: NDArray[np.int64], reference: Reference, communicator: NDArray[np.int64]
) -> Iterator[BlameOfMany]:
    """Blame of iterations in lockstep that have the reference's number of collectives.

    Args:
        iterations: their places in the model.
        communicator: index of the communicator of each place, shape (I, P, R).
    """
    if not len(iterations):
        return
    size, places = max(1, _AT_ONCE // len(model.ranks)), len(reference.transfer_ns)
    columns = int(communicator.max(initial=0)) + 1
    waits = model.awaited[iterations, :places, 0]
    queued = np.full_like(waits, -1) if model.queued is None else model.queued[iterations, :places].max(axis=2)
    # Iterations with the same waits, queues and communicators are worked out together.
    program = np.stack([waits, queued, communicator[iterations, :places, 0]], axis=2)
    _, first_of, alike = np.unique(program.reshape(len(iterations), -1), axis=0, return_index=True, return_inverse=True)
    for number, one in enumerate(first_of.tolist()):
        same = iterations[alike.ravel() == number]
        for first in range(0, len(same), size):
            flow = _OneGroupFlow(model, same[first : first + size], reference, columns, program[one])
            for position in range(places):
                flow.work(position)
                flow.meet(position)
                flow.leave(position)
            flow.work(places)
            yield flow.finish()


@dataclass(frozen=True, slots=True)
class _SharedState:
    """What all ranks have from the end of one collective on; B iterations, R ranks.

    Attributes:
        work: lateness by kind, K of shape (B, R).
        of_work: its sums, K of shape (B,).
        transfers: lateness, by communicator, shape (B, communicators).
        credit: for fast transfers (<= 0), likewise.
        early: <= 0, shape (B,).
        slower: how much longer than the reference the transfer took on each rank, signed, shape (B, R).
        column: its communicator.
        lateness: of each rank's end, signed, against `reference`, shape (B, R).
        reference: when it ends at reference durations, shape (B,).
    """

    work: tuple[Amounts, ...]
    of_work: tuple[Amounts, ...]
    transfers: Amounts
    credit: Amounts
    early: Amounts
    slower: Amounts
    column: int
    lateness: Amounts
    reference: Amounts

    @property
    def late(self) -> Amounts:
        """All lateness, shape (B,)."""
        result: Amounts = sum(self.of_work, self.transfers.sum(axis=1))
        return result

    def with_least_left(self, held: NDArray[np.bool_] | None) -> tuple[Amounts, Amounts]:
        """Transfers and credit with what of this one's all ranks, or those held by it, have in common."""
        transfers, credit, rows = self.transfers.copy(), self.credit.copy(), slice(None)
        left = self.slower if held is None else np.where(held, self.slower, np.inf)
        transfers[rows, self.column] += np.maximum(0, left.min(axis=1))
        left = self.slower if held is None else np.where(held, self.slower, -np.inf)
        credit[rows, self.column] += np.minimum(0, left.max(axis=1))
        return transfers, credit


class _OneGroupFlow:
    """The account of all ranks, and what each rank has beside it, for iterations with the same program.

    Credits are for being early, or for a transfer below its reference; only the least of them is common to all. Kinds
    of work are apart: those in which nothing differs cost nothing.
    """

    def __init__(
        self,
        model: StepModel,
        iterations: NDArray[np.int64],
        reference: Reference,
        columns: int,
        program: NDArray[np.int64],
    ) -> None:
        """`program`: position that all await, position that holds the collective back, its communicator; (P, 3)."""
        self._model, self._iterations, self._durations, self._program = model, iterations, reference, program.tolist()
        self._rows = rows_of(iterations)
        shape = len(iterations), len(model.ranks)
        start = model.start_ns[iterations].astype(np.float64)
        # Time is kept against the reference, so that only what differs from it has to be added.
        self._lateness = start - start.max(axis=1, keepdims=True)
        self._reference = np.zeros(shape[0])
        self._since = [np.zeros(shape) for _ in model.kinds]
        self._is_since = [False for _ in model.kinds]
        # How far each rank is ahead of the others at reference durations since the last wait; None where none is.
        self._ahead: Amounts | None = None
        self._spare = np.zeros(shape)
        none, nowhere = np.zeros(shape[0]), np.zeros((shape[0], columns))
        self._last = _SharedState(
            tuple(np.zeros(shape) for _ in model.kinds),
            tuple(none for _ in model.kinds),
            nowhere,
            nowhere,
            none,
            np.zeros(shape),
            0,
            self._lateness,
            self._reference,
        )
        # Ends that hold later ones back, and until which position.
        self._ended: dict[int, _SharedState] = {}
        self._until = {queued: position for position, (_, queued, _) in enumerate(self._program) if queued >= 0}

    def work(self, position: int) -> None:
        """Work before the arrival at a place."""
        self._add(self._model.before_arrival_ns[self._rows, position], self._durations.before_arrival_ns[position])

    def _add(self, work: NDArray[np.int64], usual: Amounts) -> None:
        for k, usual_ns in enumerate(usual.tolist()):
            target = self._spare if self._is_since[k] else self._since[k]
            np.subtract(work[..., k], usual_ns, out=target)
            if not target.any():
                continue
            self._lateness += target
            if self._is_since[k]:
                self._since[k] += target
            self._is_since[k] = True
        self._reference = self._reference + usual.sum()

    def meet(self, position: int) -> None:
        awaited, queued, column = self._program[position]
        until = self._until.get(position, -1)
        if awaited < 0 and until < 0:
            return
        held = self._model.queued[self._rows, position] >= 0 if self._model.queued is not None and queued >= 0 else None
        usual_ns = self._durations.transfer_ns[position]
        slower = self._model.transfer_ns[self._rows, position] - usual_ns
        met = self._meet(slower, column, held, self._ended.get(queued))
        ended = replace(met, lateness=met.lateness + slower, reference=met.reference + usual_ns)
        self._ended[position] = ended
        self._ended = {place: end for place, end in self._ended.items() if self._until.get(place, -1) > position}
        if awaited >= 0:
            self._last, self._lateness, self._reference = ended, ended.lateness.copy(), ended.reference
            self._is_since = [False for _ in self._is_since]

    def leave(self, position: int) -> None:
        """What ranks do between the arrival at a place and the wait there; where they do not wait, more work."""
        if self._program[position][0] < 0:
            work, usual = self._model.before_wait_ns[self._rows, position], self._durations.before_wait_ns[position]
            self._add(work, usual)
            return
        carried = carried_at(self._model, self._rows, position, self._durations)
        self._ahead = None if carried is None or not carried.any() else carried.sum(axis=2)
        if carried is not None and self._ahead is not None:
            self._since = [np.negative(carried[..., k]) for k in range(len(self._since))]
            self._is_since = [True for _ in self._is_since]

    def finish(self) -> BlameOfMany:
        met = self._meet(self._spare, 0, None, None)
        return BlameOfMany(self._iterations, np.stack(met.work, axis=2), met.transfers + met.credit, met.early)

    def _meet(
        self, slower: Amounts, column: int, held: NDArray[np.bool_] | None, end: _SharedState | None
    ) -> _SharedState:
        """The account of a meeting now, where some ranks' streams are held back until an end."""
        own = self._last
        own_latest = self._reference if self._ahead is None else self._reference + self._ahead.max(axis=1)
        latest = own_latest
        if end is not None and held is not None:
            latest = np.where(held.any(axis=1), np.maximum(own_latest, end.reference), own_latest)
        common = _common(own, end, held)
        below = latest + common.late + common.credit.sum(axis=1) + common.early
        beyond = self._lateness + (self._reference - below)[:, None]
        every = beyond
        if end is not None and held is not None:
            of_end = np.where(held, end.lateness + (end.reference - below)[:, None], -np.inf)
            every = np.concatenate([beyond, of_end], axis=1)
        share, greatest = share_lateness(every), every.max(axis=1)
        late = {k: np.maximum(0, self._since[k]) for k, is_since in enumerate(self._is_since) if is_since}
        work, transfers = list(common.work), common.transfers.copy()
        factor = _take_over(own, common, share[:, : beyond.shape[1]], (*late.values(),), work, transfers)
        if end is not None:
            _take_over(end, common, share[:, beyond.shape[1] :], (), work, transfers)
        for k, of_kind in late.items():
            np.multiply(of_kind, factor, out=of_kind)
            work[k] = np.add(work[k], of_kind, out=of_kind)
        return _SharedState(
            tuple(work),
            tuple(work[k].sum(axis=1) if k in late or end is not None else own.of_work[k] for k in range(len(work))),
            transfers,
            common.credit,
            common.early + np.minimum(0, greatest),
            slower,
            column,
            greatest[:, None] + (below - latest)[:, None],
            latest,
        )


def _common(own: _SharedState, end: _SharedState | None, held: NDArray[np.bool_] | None) -> _SharedState:
    """What all have in common, and the end by which some are held back; times are `own`'s."""
    transfers, credit = own.with_least_left(None)
    if end is None or held is None:
        return replace(own, transfers=transfers, credit=credit)
    is_held = held.any(axis=1, keepdims=True)
    of_end, credit_of_end = end.with_least_left(held)
    work = tuple(
        np.minimum(mine, other, out=mine.copy(), where=is_held) for mine, other in zip(own.work, end.work, strict=True)
    )
    return replace(
        own,
        work=work,
        of_work=tuple(plane.sum(axis=1) for plane in work),
        transfers=np.where(is_held, np.minimum(transfers, of_end), transfers),
        credit=np.where(is_held, np.maximum(credit, credit_of_end), credit),
        early=np.where(is_held.ravel(), np.maximum(own.early, end.early), own.early),
    )


def _take_over(
    account: _SharedState,
    common: _SharedState,
    share: Amounts,
    late: tuple[Amounts, ...],
    work: list[Amounts],
    transfers: Amounts,
) -> Amounts:
    """Add to `work` and `transfers` what chains with one account bring beyond the common; the part each brings.

    Args:
        share: of each chain, shape (B, R).
        late: work of each chain's own, each of shape (B, R).
    """
    left = np.maximum(0, account.slower)
    own = left + (account.late - common.late)[:, None]
    for of_kind in late:
        own += of_kind
    factor = factor_of(share, own)
    taken = factor.sum(axis=1)[:, None]
    for k, plane in enumerate(account.work):
        if plane is not common.work[k]:
            work[k] = work[k] + taken * (plane - common.work[k])
    transfers += taken * (account.transfers - common.transfers)
    transfers[:, account.column] += np.einsum("ir,ir->i", factor, left)
    return factor


def factor_of(share_ns: Amounts, own_ns: Amounts) -> Amounts:
    """Which part of its own blame each takes over; `share_ns` is worked on in place.

    A share is at most one's own blame; beyond that there is rounding.
    """
    greatest = np.maximum(own_ns, share_ns)
    share_ns /= np.maximum(greatest, _TINY, out=greatest)
    return share_ns


def rows_of(iterations: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """The same iterations as a slice, where they follow each other: it takes no copy."""
    follow = len(iterations) > 0 and bool((np.diff(iterations) == 1).all())
    return slice(int(iterations[0]), int(iterations[-1]) + 1) if follow else iterations
