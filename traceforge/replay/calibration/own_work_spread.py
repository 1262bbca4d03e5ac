"""How far arrivals would spread if ranks differed by their own work only. In: a `StepModel`. Out: mean waits.

The idea: replay each iteration with the ranks' own work as it was and every transfer at its reference; what spread is
left comes from the ranks alone. It is the instrument of `arrival_spread`. Work done while a collective is under way may
be slowed by it, so it is replaced by that rank's median at that place; exposed communication is no work.
Not handled: collectives that overtake one another.
"""

from dataclasses import replace

import numpy as np

from traceforge.replay.calibration.measurement import Amounts
from traceforge.replay.engine import record
from traceforge.replay.model import StepModel, Times
from traceforge.thresholds import replay as thresholds

_NO_WORK = ("wait", "transfer", "communication")


def own_work_waits(model: StepModel) -> Amounts:
    """Mean wait of the collective at each place, ns, shape (I, P, R), equal over its ranks; 0 where there is none.

    Iterations must be of one length: `model.calls` all equal.
    """
    before_arrival, before_wait = _own_work(model)
    # What a rank did after the last collective of the iteration before delays its start.
    start = np.zeros(model.start_ns.shape, dtype=np.int64)
    start[1:] = before_arrival[:-1, -1]
    clean = np.quantile(model.transfer_ns, thresholds.TRANSFER_QUANTILE, axis=(0, 2)).astype(np.int64)
    alone = replace(
        model,
        start_ns=start,
        transfer_ns=np.broadcast_to(clean[:, None], model.transfer_ns.shape),
        before_arrival_ns=before_arrival[..., None],
        before_wait_ns=before_wait[..., None],
        kinds=(("compute", None),),
        queued=None,
        behind=None,
    )
    return record(alone).spread_ns


def _own_work(model: StepModel) -> tuple[Times, Times]:
    """Work before each arrival, shape (I, P + 1, R), and before each wait, shape (I, P, R), ns."""
    is_work = np.array([phase not in _NO_WORK for phase, _ in model.kinds])
    before_arrival = model.before_arrival_ns[..., is_work].sum(axis=3)
    before_wait = model.before_wait_ns[..., is_work].sum(axis=3)
    # A stretch is free of communication where all collectives before it have been awaited.
    reached = np.maximum.accumulate(model.awaited, axis=1)
    under_way = np.zeros(before_arrival.shape, dtype=np.bool_)
    under_way[:, 1:] = reached < np.arange(model.awaited.shape[1])[None, :, None]
    usual = np.median(before_arrival, axis=0).astype(np.int64)
    steady = np.broadcast_to(np.median(before_wait, axis=0).astype(np.int64), before_wait.shape)
    return np.where(under_way, usual, before_arrival), steady
