"""Work that a transfer hides. In: work between an arrival and the wait after it. Out: whether it delays anybody there.

A rank that works while its collective runs, and is done before the collective is, waits until the end all the same: how
long it worked changes nothing there. Only what its reference counts before the wait and the rank does after it, or the
other way round, has to be carried over: the same work would be a gain on one side and a loss on the other.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.model import StepModel
from traceforge.replay.reference import Amounts, Reference


def carried_over(before_ns: Amounts, after_ns: Amounts) -> Amounts:
    """By how much the reference after a wait has to grow, and that before it to shrink; signed.

    Args:
        before_ns: work before the wait above its reference.
        after_ns: work from there to the next arrival above its reference.
    """
    is_opposed = np.sign(before_ns) * np.sign(after_ns) < 0
    result: Amounts = np.where(is_opposed, np.sign(after_ns) * np.minimum(np.abs(before_ns), np.abs(after_ns)), 0.0)
    return result


def carried_at(model: StepModel, rows: NDArray[np.int64] | slice, place: int, reference: Reference) -> Amounts | None:
    """What is carried over the wait at a place, of ranks of one role, shape (B, R, K); None where nothing is."""
    work, usual = model.before_wait_ns[rows, place], reference.before_wait_ns[place]
    if not usual.any() and not work.any():
        return None
    return carried_over(work - usual, model.before_arrival_ns[rows, place + 1] - reference.before_arrival_ns[place + 1])


def hides_work(model: StepModel, of_length: Mapping[int, Reference]) -> NDArray[np.bool_]:
    """Iterations of ranks of one role in which no wait is outlasted by the work before it, nor in the reference; (I,).

    A wait is looked at as one for the collective of its own place.
    """
    result = np.zeros(len(model.calls), dtype=np.bool_)
    for calls, reference in of_length.items():
        if reference.transfer_ns.ndim > 1:
            continue
        rows = np.flatnonzero(model.calls == calls)
        for place in range(calls):
            rows = rows[_hides(model, rows, place, reference)]
        result[rows] = True
    return result


def _hides(model: StepModel, rows: NDArray[np.int64], place: int, reference: Reference) -> NDArray[np.bool_]:
    usual, transfer_ns = reference.before_wait_ns[place], float(reference.transfer_ns[place])
    waits = model.awaited[rows, place] >= 0
    carried = carried_at(model, rows, place, reference)
    if carried is None:
        return np.full(len(rows), True) if transfer_ns >= 0 else ~waits.any(axis=1)
    outlasts = model.before_wait_ns[rows, place].sum(axis=2) > model.transfer_ns[rows, place]
    outlasts |= (usual - carried).sum(axis=2) > transfer_ns
    result: NDArray[np.bool_] = ~(waits & outlasts).any(axis=1)
    return result
