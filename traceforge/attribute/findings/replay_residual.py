"""What a replay leaves of a delay. In: iterations replayed without findings. Out: what struck ones last beyond others.

Without what struck them, iterations should last as long as those that were never struck. Where they do not, beyond
chance, the delay changed something that the replay keeps: a neighbour computes faster while a rank that shares its
core stands still, and it would not without the stall. The cost is corrected by that difference; where it may be chance
it only widens the interval. Not handled: delays in (nearly) all iterations, which leave nothing to compare with; two
that strike the same iterations.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.reference import Amounts
from traceforge.stats import NORMAL, lasting_count
from traceforge.thresholds import attribute as thresholds


@dataclass(frozen=True, slots=True)
class ReplayResidual:
    """By how much a struck iteration, replayed without the delay, lasts longer than others, ns.

    Attributes:
        mean_ns: what is surely there; 0 where it may be chance.
        low_ns: what it is at least, 95 %.
        high_ns: at most.
    """

    mean_ns: float = 0.0
    low_ns: float = 0.0
    high_ns: float = 0.0


def replay_residual(
    without_ns: Amounts, struck: NDArray[np.int64], others: NDArray[np.int64], affected_ns: float
) -> ReplayResidual:
    """What a replay leaves of one finding's delay.

    Args:
        without_ns: iterations replayed without any finding, shape (iterations,).
        struck: those that the finding affects.
        others: those that any other finding affects.
        affected_ns: what it costs a struck iteration.
    """
    alone = np.setdiff1d(struck, others)
    never = np.setdiff1d(np.arange(len(without_ns)), np.union1d(struck, others))
    if min(len(alone), len(never)) < thresholds.RESIDUAL_ITERATIONS:
        return ReplayResidual()
    mean = float(without_ns[alone].mean() - without_ns[never].mean())
    error = float(np.hypot(_error(without_ns[alone]), _error(without_ns[never])))
    if abs(mean) < thresholds.RESIDUAL_ERRORS * error or abs(mean) < thresholds.RESIDUAL_SHARE * affected_ns:
        return ReplayResidual(0.0, min(mean, 0.0), max(mean, 0.0))
    return ReplayResidual(mean, mean - NORMAL * error, mean + NORMAL * error)


def _error(durations_ns: Amounts) -> float:
    """Standard error of the mean, of iterations that resemble those before them."""
    independent = len(durations_ns) / lasting_count(durations_ns[:, None])
    return float(durations_ns.std(ddof=1) / np.sqrt(independent))
