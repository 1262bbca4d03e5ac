"""What a replay leaves of a delay. In: iterations replayed without findings. Out: what struck ones last beyond others.

Without what struck them, iterations should last as long as those that were never struck. Where they do not, beyond
chance, the delay changed something that the replay keeps: a neighbour computes faster while a rank that shares its
core stands still, and it would not without the stall. The cost is corrected by that difference; where it may be chance
it only widens the interval. Of steps that vary the longer ones count as struck more easily: what loses half as much is
struck, too. Where delays grow from small to large without a gap, these are not two kinds that could be compared. Nor
are iterations that all ranks spend otherwise, such as with an evaluation: those of as many collectives are compared.
Not handled: delays in (nearly) all iterations, which leave nothing to compare with; two that strike the same ones.
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
    without_ns: Amounts,
    delay_ns: Amounts,
    struck: NDArray[np.int64],
    others: NDArray[np.int64],
    calls: NDArray[np.int64],
) -> ReplayResidual:
    """What a replay leaves of one finding's delay.

    Args:
        without_ns: iterations replayed without any finding, shape (iterations,).
        delay_ns: what the finding costs, likewise.
        struck: those that the finding affects.
        others: those that any other finding affects.
        calls: collectives of each iteration, shape (iterations,).
    """
    hit = np.flatnonzero(delay_ns >= thresholds.RESIDUAL_GAP * np.median(delay_ns[struck]))
    struck = np.union1d(struck, hit)
    alone = np.setdiff1d(struck, others)
    never = np.setdiff1d(np.arange(len(without_ns)), np.union1d(struck, others))
    alike = calls == np.bincount(calls[struck]).argmax()
    alone, never = alone[alike[alone]], never[alike[never]]
    if min(len(alone), len(never)) < thresholds.RESIDUAL_ITERATIONS or not _is_apart(delay_ns[alone], delay_ns[never]):
        return ReplayResidual()
    trifle_ns = thresholds.RESIDUAL_SHARE * float(delay_ns[struck].mean())
    mean = float(without_ns[alone].mean() - without_ns[never].mean())
    error = float(np.hypot(_error(without_ns[alone]), _error(without_ns[never])))
    if abs(mean) < thresholds.RESIDUAL_ERRORS * error or abs(mean) < trifle_ns:
        return ReplayResidual(0.0, min(mean, 0.0), max(mean, 0.0))
    return ReplayResidual(mean, mean - NORMAL * error, mean + NORMAL * error)


def _is_apart(struck_ns: Amounts, never_ns: Amounts) -> bool:
    """Whether there is a gap between nearly all delays that struck and nearly all others."""
    gap = np.quantile(struck_ns, thresholds.RESIDUAL_TAIL) - np.quantile(never_ns, 1 - thresholds.RESIDUAL_TAIL)
    return bool(gap >= thresholds.RESIDUAL_GAP * (np.median(struck_ns) - np.median(never_ns)))


def _error(durations_ns: Amounts) -> float:
    """Standard error of the mean, of iterations that resemble those before them."""
    independent = len(durations_ns) / lasting_count(durations_ns[:, None])
    return float(durations_ns.std(ddof=1) / np.sqrt(independent))
