"""Transfers that are slow because ranks came late. In: who owns what, a measured coupling. Out: those who were late.

Where transfers grow with the spread of arrivals (`replay.calibration`), so much of a slow transfer as its own spread
explains belongs to those who were late in that iteration, in the proportion of what they own there; the sum stays. Not
handled: transfers that are slow by it in the usual iteration as well, since that is what the reference holds.
"""

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.replay.engine import record
from traceforge.replay.reference import Amounts
from traceforge.thresholds.replay import TRANSFER_QUANTILE


def charged_to_late_ranks(run: LedgerInput, owned_ns: Amounts, growth: float) -> Amounts:
    """What each owner owns, with slow transfers charged to ranks as far as their lateness explains it.

    Args:
        owned_ns: see `blame_of_run.owned_ns`, shape (I, owners).
        growth: of a transfer by a unit of the mean wait before it; > 0.
    """
    model, result = run.model, owned_ns.copy()
    ranks, kinds, count = len(model.ranks), len(model.kinds), len(run.communicators)
    work = owned_ns[:, : ranks * kinds].reshape(len(result), ranks, kinds).copy()
    explained, slower = _explained_ns(run, growth)
    for c in range(count):
        # Who comes late to one group may have waited in another: all who are late have a part.
        late = np.maximum(0.0, work)
        total = late.sum(axis=(1, 2))
        column = ranks * kinds + c
        part = np.divide(explained[:, c], slower[:, c], out=np.zeros(len(result)), where=slower[:, c] > 0)
        moved = np.where(total > 0, np.maximum(0.0, result[:, column]) * np.clip(part, 0.0, 1.0), 0.0)
        work += late * np.divide(moved, total, out=np.zeros(len(result)), where=total > 0)[:, None, None]
        result[:, column] -= moved
    result[:, : ranks * kinds] = work.reshape(len(result), ranks * kinds)
    return result


def _explained_ns(run: LedgerInput, growth: float) -> tuple[Amounts, Amounts]:
    """By iteration and communicator: transfer that the spread explains, and transfer above usual, shape (I, C)."""
    model = run.model
    spread = record(model, on_device=set()).spread_ns
    is_real = model.group >= 0
    beyond_spread = growth * _above_usual(spread, is_real)
    beyond_transfer = _above_usual(model.transfer_ns.astype(np.float64), is_real)
    explained = np.zeros((len(model.iterations), len(run.communicators)))
    slower = np.zeros_like(explained)
    iteration = np.broadcast_to(np.arange(len(model.iterations))[:, None, None], is_real.shape)
    np.add.at(explained, (iteration[is_real], run.communicator[is_real]), beyond_spread[is_real])
    np.add.at(slower, (iteration[is_real], run.communicator[is_real]), beyond_transfer[is_real])
    return explained, slower


def _above_usual(values_ns: Amounts, is_real: NDArray[np.bool_]) -> Amounts:
    """Values above the first quartile of their place in the program, shape (I, P, R)."""
    result = np.zeros(values_ns.shape)
    for place in range(values_ns.shape[1]):
        real = is_real[:, place]
        if real.any():
            usual = np.quantile(values_ns[:, place][real], TRANSFER_QUANTILE)
            result[:, place] = np.where(real, np.maximum(0.0, values_ns[:, place] - usual), 0.0)
    return result
