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

# Elements of an array of (iterations, ranks, kinds) worked on at once: they should stay in the processor's cache.
_CHUNK = 100_000


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
    size = max(1, _CHUNK // max(1, len(model.ranks) * len(model.kinds)))
    columns = int(communicator.max(initial=0)) + 1
    for first in range(0, len(iterations), size):
        chunk = iterations[first : first + size]
        flow = _Flow(model, chunk, reference, columns)
        for position in range(len(reference.transfer_ns)):
            flow.work(position)
            if (model.awaited[chunk, position, 0] >= 0).any():
                flow.meet_and_wait(position, communicator[chunk, position, 0])
        flow.work(len(reference.transfer_ns))
        yield flow.finish()


class _Flow:
    """One account for all ranks (suffix `_shared`), and what each rank has beside it, by iteration.

    Credits are for being early, or for a transfer below its reference; only the least of them is common to all.
    """

    def __init__(self, model: StepModel, iterations: NDArray[np.int64], reference: Reference, columns: int) -> None:
        self._model, self._iterations, self._reference = model, iterations, reference
        count, ranks = len(iterations), len(model.ranks)
        start = model.start_ns[iterations].astype(np.float64)
        self._time = start - start.max(axis=1, keepdims=True)
        self._reference_time = np.zeros((count, 1))
        self._head = self._time.copy()
        self._since = np.zeros((count, ranks, len(model.kinds)))
        self._work_shared = np.zeros_like(self._since)
        self._transfers_shared = np.zeros((count, columns))
        self._early_shared = np.zeros(count)
        self._left_late = np.zeros((count, ranks))
        self._left_early = np.zeros((count, ranks))
        self._column = np.zeros(count, dtype=np.int64)

    def work(self, position: int) -> None:
        work = self._model.before_arrival_ns[self._iterations, position]
        reference = self._reference.before_arrival_ns[position]
        difference = work - reference
        self._since += difference
        self._time = self._time + difference.sum(axis=2) + reference.sum()
        self._reference_time = self._reference_time + reference.sum()

    def meet_and_wait(self, position: int, column: NDArray[np.int64]) -> None:
        waits = self._model.awaited[self._iterations, position, 0] >= 0
        transfer = self._model.transfer_ns[self._iterations, position]
        work, transfers, early = self._meet()
        end = self._time.max(axis=1, keepdims=True) + transfer
        slower = transfer - self._reference.transfer_ns[position]
        # Rows that do not wait keep what they have; mostly all wait, and nothing has to be copied.
        one, every = waits[:, None], bool(waits.all())
        self._work_shared = work if every else np.where(one[..., None], work, self._work_shared)
        self._transfers_shared = np.where(one, transfers, self._transfers_shared)
        self._early_shared = np.where(waits, early, self._early_shared)
        self._since[waits] = 0.0
        self._head[waits] = 0.0
        self._left_late = np.where(one, np.maximum(0, slower), self._left_late)
        self._left_early = np.where(one, np.minimum(0, slower), self._left_early)
        self._column = np.where(waits, column, self._column)
        self._time = end if every else np.where(one, end, self._time)
        self._reference_time += np.where(one, self._reference.transfer_ns[position], 0.0)

    def finish(self) -> LockstepBlame:
        return LockstepBlame(self._iterations, *self._meet())

    def _meet(self) -> tuple[Amounts, Amounts, Amounts]:
        """The account of a meeting now: work (iterations, R, K), transfers (iterations, C), early (iterations,)."""
        least_late, least_early = self._left_late.min(axis=1), self._left_early.max(axis=1)
        transfers, rows = self._transfers_shared.copy(), np.arange(len(self._column))
        transfers[rows, self._column] += least_late + least_early
        early = self._early_shared + self._head.max(axis=1)
        common = self._work_shared.sum(axis=(1, 2)) + transfers.sum(axis=1) + early
        beyond = self._time - self._reference_time - common[:, None]
        share = share_lateness(beyond)
        late = np.maximum(0, self._since)
        left = self._left_late - least_late[:, None]
        own = late.sum(axis=2) + left
        factor = np.divide(share, own, out=np.zeros_like(own), where=own > 0)
        transfers[rows, self._column] += (factor * left).sum(axis=1)
        late *= factor[..., None]
        late += self._work_shared
        return late, transfers, early + np.minimum(0, beyond.max(axis=1))
