"""What fixing one thing would gain. In: a run's model and a cause. Out: the change of throughput in a replay.

Durations above the reference are cut down to it for that cause alone, and all iterations are replayed. This is not
the share of the ledger: other lateness, hidden so far, may take the place of what was removed.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.engine import Durations, measured, replay
from traceforge.replay.model import StepModel
from traceforge.replay.reference import clean_transfers, references


def gain_without_work_excess(model: StepModel, cause: str, rank_places: Sequence[int]) -> float:
    """Throughput ratio less one if the work of some ranks by a cause never exceeded the reference.

    Args:
        model: with work by cause (see `booking.by_cause`).
    """
    kinds = [k for k, (name, _) in enumerate(model.kinds) if name == cause]
    before_arrival, before_wait = model.before_arrival_ns.copy(), model.before_wait_ns.copy()
    of_length = references(model)
    for i, calls in enumerate(model.calls.tolist()):
        reference = of_length[calls]
        for k, place in product(kinds, rank_places):
            arrivals, waits = np.s_[i, : calls + 1, place, k], np.s_[i, :calls, place, k]
            before_arrival[arrivals] = np.minimum(before_arrival[arrivals], _whole(reference.before_arrival_ns[:, k]))
            before_wait[waits] = np.minimum(before_wait[waits], _whole(reference.before_wait_ns[:, k]))
    return _gain(model, Durations(before_arrival.sum(axis=3), before_wait.sum(axis=3), model.transfer_ns))


def gain_without_transfer_excess(model: StepModel, places: NDArray[np.bool_] | None = None) -> float:
    """Throughput ratio less one if no transfer exceeded the reference.

    Args:
        places: only transfers at these places are fixed, shape (I, P, R); all by default.
    """
    unchanged = measured(model)
    clean = clean_transfers(model)
    transfer = clean if places is None else np.where(places, clean, model.transfer_ns)
    return _gain(model, Durations(unchanged.before_arrival_ns, unchanged.before_wait_ns, transfer))


def _gain(model: StepModel, durations: Durations) -> float:
    was = int(model.end_ns[-1].max() - model.start_ns[0].min())
    would_be = replay(model, durations)
    return was / int(would_be.end_ns[-1].max() - model.start_ns[0].min()) - 1


def _whole(durations_ns: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(durations_ns).astype(np.int64)
