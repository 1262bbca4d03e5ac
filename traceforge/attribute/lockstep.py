"""Blame flow where all ranks meet and wait together. In: iterations of that kind. Out: the blame of each.

The same rules as in `blame`, at a cost that grows with the number of ranks and not with its square: after a wait that
all ranks share their accounts are the same, but for how late each left the transfer, so one account is kept for all,
for many iterations at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.airport import share_lateness
from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts, Reference

# Elements of an array of (iterations, ranks) worked on at once: several such arrays should stay in the cache.
_CHUNK = 32_768
# Stands for nothing in a division, where what is divided is nothing as well.
_TINY = 1e-300


@dataclass(frozen=True, slots=True)
class LockstepBlame:
    """Who owns the excess of several iterations; as `blame.Blame`, with an axis of iterations first."""

    iterations: NDArray[np.int64]
    work_ns: Amounts
    transfers_ns: Amounts
    early_ns: Amounts


def in_lockstep(model: StepModel) -> NDArray[np.bool_]:
    """Iterations in which all ranks meet at every place and either all wait for its end at once or none does; (I,)."""
    places = np.arange(model.group.shape[1])
    is_real = places[None, :] < model.calls[:, None]
    together = (model.group == model.group[:, :, :1]).all(axis=2)
    alike = (model.awaited == model.awaited[:, :, :1]).all(axis=2)
    first = model.awaited[:, :, 0] if model.group.shape[2] else model.awaited.max(axis=2)
    at_once = (first == places[None, :]) | (first < 0)
    nothing_between = ~model.before_wait_ns.any(axis=(2, 3)) & (model.transfer_ns >= 0).all(axis=2)
    if model.queued is not None:
        nothing_between &= (model.queued < 0).all(axis=2)
    result: NDArray[np.bool_] = (~is_real | (together & alike & at_once & nothing_between)).all(axis=1)
    return result & (len(model.ranks) > 1)


def blame_lockstep(
    model: StepModel, iterations: NDArray[np.int64], reference: Reference, communicator: NDArray[np.int64]
) -> Iterator[LockstepBlame]:
    """Blame of iterations in lockstep that have the reference's number of collectives.

    Args:
        iterations: their places in the model.
        communicator: index of the communicator of each place, shape (I, P, R).
    """
    if not len(iterations):
        return
    size, places = max(1, _CHUNK // len(model.ranks)), len(reference.transfer_ns)
    columns = int(communicator.max(initial=0)) + 1
    # Where all wait the communicator counts, elsewhere nothing does.
    waits = model.awaited[iterations, :places, 0] >= 0
    column = np.where(waits, communicator[iterations, :places, 0], -1)
    patterns, pattern = np.unique(column, axis=0, return_inverse=True)
    for number, columns_of_waits in enumerate(patterns.tolist()):
        alike = iterations[pattern.ravel() == number]
        for first in range(0, len(alike), size):
            flow = _Flow(model, alike[first : first + size], reference, columns)
            for position, awaited in enumerate(columns_of_waits):
                flow.work(position)
                if awaited >= 0:
                    flow.meet_and_wait(position, awaited)
            flow.work(places)
            yield flow.finish()


class _Flow:
    """One account for all ranks (suffix `_shared`), and what each rank has beside it, by iteration.

    Credits are for being early, or for a transfer below its reference; only the least of them is common to all. Kinds
    of work are the first axis: one kind at a time is worked on, and those in which nothing differs cost nothing.
    """

    def __init__(self, model: StepModel, iterations: NDArray[np.int64], reference: Reference, columns: int) -> None:
        self._model, self._iterations, self._reference = model, iterations, reference
        self._rows = rows_of(iterations)
        count, ranks, kinds = len(iterations), len(model.ranks), len(model.kinds)
        start = model.start_ns[iterations].astype(np.float64)
        # Against the time at reference durations.
        self._lateness = start - start.max(axis=1, keepdims=True)
        self._head = self._lateness.max(axis=1)
        self._since = np.zeros((kinds, count, ranks))
        self._is_since = [False] * kinds
        self._difference = np.zeros((count, ranks))
        self._work_shared = np.zeros_like(self._since)
        self._work_total = np.zeros((kinds, count))
        self._transfers_shared = np.zeros((count, columns))
        self._early_shared = np.zeros(count)
        self._left_late = np.zeros((count, ranks))
        self._left_early = np.zeros((count, ranks))
        self._column = 0

    def work(self, position: int) -> None:
        work = self._model.before_arrival_ns[self._rows, position]
        for k, reference in enumerate(self._reference.before_arrival_ns[position].tolist()):
            target = self._difference if self._is_since[k] else self._since[k]
            np.subtract(work[..., k], reference, out=target)
            if not target.any():
                continue
            self._lateness += target
            if self._is_since[k]:
                self._since[k] += target
            self._is_since[k] = True

    def meet_and_wait(self, position: int, column: int) -> None:
        slower = self._model.transfer_ns[self._rows, position] - self._reference.transfer_ns[position]
        self._meet()
        np.add(self._lateness.max(axis=1, keepdims=True), slower, out=self._lateness)
        np.maximum(0, slower, out=self._left_late)
        np.minimum(0, slower, out=self._left_early)
        self._column = column

    def finish(self) -> LockstepBlame:
        self._meet()
        return LockstepBlame(
            self._iterations, np.moveaxis(self._work_shared, 0, 2), self._transfers_shared, self._early_shared
        )

    def _meet(self) -> None:
        """Make what all have at a meeting now the account of all."""
        least_late, transfers = self._left_late.min(axis=1), self._transfers_shared
        transfers[:, self._column] += least_late + self._left_early.max(axis=1)
        early = self._early_shared + self._head
        common = self._work_total.sum(axis=0) + transfers.sum(axis=1) + early
        beyond = self._lateness - common[:, None]
        share = share_lateness(beyond)
        own = np.subtract(self._left_late, least_late[:, None], out=self._left_late)
        left = own.copy()
        late = [k for k, is_since in enumerate(self._is_since) if is_since]
        for k in late:
            own += np.maximum(0, self._since[k], out=self._since[k])
        factor = factor_of(share, own)
        for k in late:
            self._since[k] *= factor
            self._work_shared[k] += self._since[k]
            self._work_total[k] = self._work_shared[k].sum(axis=1)
            self._is_since[k] = False
        transfers[:, self._column] += np.einsum("ir,ir->i", factor, left)
        self._early_shared = early + np.minimum(0, beyond.max(axis=1))
        self._head = np.zeros(len(early))


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
