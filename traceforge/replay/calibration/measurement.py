"""What a measurement of a coupling found, from few, dependent iterations. In: sums by iteration. Out: intervals.

The idea: consecutive iterations resemble one another, distant ones do not; sums over a few long blocks are nearly
independent, and Student's t on them holds its level whatever their variances are (Ibragimov and Müller, "t-statistic
based correlation and heterogeneity robust inference", 2010, after Bakirov and Székely). It needs no estimate of the
correlation, and stays honest where a bootstrap of 20 iterations does not. Not handled: dependence that outlasts blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.stats import CONFIDENCE, t_quantile
from traceforge.store.database import Store
from traceforge.thresholds import replay as thresholds

Amounts = NDArray[np.float64]
Numbers = NDArray[np.int64]

_SHORTEST_BLOCK = 3
_MOST_BLOCKS = 12
_STEP = "SELECT AVG(duration_ns) FROM timeline.iteration WHERE run_id = ? AND NOT is_partial AND NOT is_warmup"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A coefficient with its intervals, or why there is none.

    Attributes:
        coefficient: the coupling; None where nothing was measured.
        low: lower end of the 95 % interval.
        high: upper end.
        surely_low: lower end of the 99 % interval, by which it is judged whether the coupling is there at all.
        surely_high: upper end.
        n: what it was measured on.
        f_statistic: strength of the instrument; None where there is none.
        gain_bound: share of the iterations' time at stake at the upper end; None where unknown.
        scope: what it was measured on, in words.
        caveat: a sentence to add to the reason, with a space before it; empty for none.
        refusal: why the numbers say nothing; empty where they do.
    """

    coefficient: float | None
    low: float | None
    high: float | None
    surely_low: float | None
    surely_high: float | None
    n: int
    f_statistic: float | None = None
    gain_bound: float | None = None
    scope: str = ""
    caveat: str = ""
    refusal: str = ""


def refused(n: int, reason: str, *, f_statistic: float | None = None) -> Measurement:
    """No numbers, and why."""
    return Measurement(None, None, None, None, None, n, f_statistic, refusal=reason)


def measured(estimate: float, error: float, blocks: int, n: int, to: Callable[[float], float] = float) -> Measurement:
    """An estimate with its 95 % and its surer interval.

    Args:
        error: standard error, from this many blocks.
        n: what it was measured on.
        to: turns the estimate and each end into what is said.
    """
    levels = (CONFIDENCE, thresholds.SURE_CONFIDENCE)
    ends = [to(estimate + side * critical(blocks, level) * error) for level in levels for side in (-1, 1)]
    low, high, surely_low, surely_high = ends
    return Measurement(to(estimate), low, high, surely_low, surely_high, n)


def critical(blocks: int, level: float) -> float:
    """What |t| over this many blocks exceeds by chance with probability 1 - level."""
    return float(t_quantile(blocks - 1, level))


def first_stage(exposure: Amounts, instrument: Amounts, block: Numbers) -> float:
    """Cluster-robust F of the regression of what slows on the instrument; 0 where it moves the wrong way or not at all.

    Args:
        exposure: shape (rows,), as all.
        block: see `block_of`.
    """
    power = float(instrument @ instrument)
    if power <= 1e-9 * len(instrument):
        return 0.0
    slope = float(instrument @ exposure) / power
    left = sums(instrument * (exposure - slope * instrument), block)
    variance = float(np.sum(left**2)) * len(left) / (len(left) - 1) / power**2
    return float(slope**2 / max(variance, 1e-18)) if slope > 0 else 0.0


def mean_iteration_ns(store: Store, run_id: int) -> float:
    """Mean duration of the whole iterations of a run."""
    return float(store.value(_STEP, [run_id]))


def block_of(iteration: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the block of each row, from 0.

    Blocks hold equally many consecutive iterations, at least three; there are 6 to 12 of them.

    Args:
        iteration: iteration of each row, any order; at least `thresholds.LEAST_ITERATIONS` different ones.
    """
    distinct, place = np.unique(iteration, return_inverse=True)
    blocks = min(len(distinct) // _SHORTEST_BLOCK, _MOST_BLOCKS)
    result: NDArray[np.int64] = place * blocks // len(distinct)
    return result


def sums(values: Amounts, block: NDArray[np.int64]) -> Amounts:
    """Sums of values, shape (rows,) or (rows, K), over blocks, shape (blocks,) or (blocks, K)."""
    total: Amounts = np.zeros((int(block.max()) + 1, *values.shape[1:]))
    np.add.at(total, block, values)
    return total


def t_statistic(by_block: Amounts) -> Amounts:
    """Mean over its standard error along the first axis; 0 where nothing varies and the mean is 0."""
    count = len(by_block)
    mean, error = by_block.mean(axis=0), by_block.std(axis=0, ddof=1) / np.sqrt(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Amounts = np.nan_to_num(mean / error, nan=0.0, posinf=np.inf, neginf=-np.inf)
        return result
