"""How far arrivals would spread if ranks differed by their own work only. In: a `StepModel`. Out: mean waits.

The idea: walk through each iteration with the ranks' own work as it was and every transfer at its reference; what
spread is left comes from the ranks alone. It is the instrument of `spread`. Work done while a collective is under way
may be slowed by it, so it is replaced by that rank's median at that place; exposed communication is no work.
Not handled: collectives that overtake one another.
"""

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.model import StepModel
from traceforge.replay.reference import TRANSFER_QUANTILE

Amounts = NDArray[np.float64]

_NO_WORK = ("wait", "transfer")


def local_waits(model: StepModel) -> Amounts:
    """Mean wait of the collective at each place, ns, shape (I, P, R), equal over its ranks; 0 where there is none.

    Iterations must be of one length: `model.calls` all equal.
    """
    before_arrival, before_wait = _own_work(model)
    iterations, places, ranks = model.group.shape
    # What a rank did after the last collective of the iteration before delays its start.
    time = np.zeros((iterations, ranks))
    time[1:] = before_arrival[:-1, places]
    waits, ends = np.zeros(model.group.shape), np.zeros(model.group.shape)
    row, column = np.indices((iterations, ranks))
    for p in range(places):
        time = time + before_arrival[:, p]
        last, waits[:, p] = _meet(time, model.group[:, p])
        ends[:, p] = last + np.quantile(model.transfer_ns[:, p], TRANSFER_QUANTILE)
        awaited = model.awaited[:, p]
        reached = ends[row, np.maximum(awaited, 0), column]
        time = time + before_wait[:, p]
        time = np.where(awaited >= 0, np.maximum(time, reached), time)
    return waits


def _own_work(model: StepModel) -> tuple[Amounts, Amounts]:
    """Work before each arrival, shape (I, P + 1, R), and before each wait, shape (I, P, R), ns."""
    is_work = np.array([phase not in _NO_WORK for phase, _ in model.kinds])
    before_arrival = model.before_arrival_ns[..., is_work].sum(axis=3).astype(np.float64)
    before_wait = model.before_wait_ns[..., is_work].sum(axis=3).astype(np.float64)
    # A stretch is free of communication where all collectives before it have been awaited.
    reached = np.maximum.accumulate(model.awaited, axis=1)
    under_way = np.zeros(before_arrival.shape, dtype=np.bool_)
    under_way[:, 1:] = reached < np.arange(model.awaited.shape[1])[None, :, None]
    usual = np.median(before_arrival, axis=0)
    return np.where(under_way, usual, before_arrival), np.broadcast_to(
        np.median(before_wait, axis=0), before_wait.shape
    )


def _meet(time: Amounts, group: NDArray[np.int64]) -> tuple[Amounts, Amounts]:
    """Last arrival of each rank's collective and the mean wait in it, both shape (I, R); no wait outside of any."""
    _, place = np.unique(group, return_inverse=True)
    place = place.reshape(group.shape)
    last = np.full(int(place.max()) + 1, -np.inf)
    np.maximum.at(last, place, time)
    mean = np.bincount(place.ravel(), (last[place] - time).ravel()) / np.bincount(place.ravel())
    inside = group >= 0
    return np.where(inside, last[place], time), np.where(inside, mean[place], 0.0)
