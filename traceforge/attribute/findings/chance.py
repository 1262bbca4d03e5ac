"""Could it be chance? In: delays by iteration and rank. Out: the probability that so much gathers on some ranks.

If ranks were interchangeable within each stretch of iterations, the delay of a set of ranks would be a sum of draws,
one set from each stretch. The upper tail of that sum comes from its cumulants (Esscher's approximation; Daniels 1954,
Robinson 1982): what shuffling ranks ten million times would show, without shuffling. It is then multiplied by the
number of sets that could have been named. Draws are taken with replacement, which spreads sums of several ranks wider
than they are: cautious. Delays are above what is usual for a rank's own role, so that roles need not be told apart.
A few
large delays carry such a sum, so that many that always lie on the same ranks would not count beside them: the sum is
taken a second time of delays that are cut at a part of the largest one.
A small delay must also be more than devices differ by for a whole run (`level_p_value`). Delays that are evenly spaced
are unlikely for that as well (`spacing_p_value`): what takes cores away knows no steps.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, gammaln

from traceforge.stats import lasting_count, t_p_value
from traceforge.thresholds import attribute as thresholds

Delays = NDArray[np.float64]

_TILT_ERROR = 0.01
# Stands for no spread at all.
_TINY = float(np.finfo(np.float64).tiny)
# Beyond this exponent a draw's greatest value is as good as certain.
_LARGEST_TILT = 500.0


def stretches(delays_ns: Delays, ranks: NDArray[np.int64]) -> Delays:
    """Delays added up over as many iterations as noise lasts, shape (stretches, ranks).

    Noise that lasts some iterations would pass for one rank's. The other ranks show how long it lasts, since a fault
    of these ranks may last as well; the one of them that varies most is left out for the same reason.
    """
    others = np.delete(delays_ns, ranks, axis=1)
    if others.shape[1] > 2:
        others = np.delete(others, others.var(axis=0).argmax(), axis=1)
    length = lasting_count(others) if others.shape[1] else 1
    return np.add.reduceat(delays_ns, np.arange(0, len(delays_ns), length), axis=0)


def gathering_p_value(delays_ns: Delays, ranks: NDArray[np.int64], alternatives: float) -> float:
    """Probability that some set of as many ranks gathers as much by chance; 1 where there are no others.

    The less likely of two sums counts, of whole delays and of cut ones. The second one has to be unlikelier by
    `CUT_FACTOR`, so that looking twice finds chance only a fifth more often.

    Args:
        delays_ns: delays >= 0, shape (iterations, ranks).
        ranks: places of the set.
        alternatives: how many sets could have been named.
    """
    if len(ranks) >= delays_ns.shape[1]:
        return 1.0
    # What a rank always loses is its level, which shows in whole delays.
    above = np.maximum(0.0, delays_ns - np.median(delays_ns, axis=0))
    cut = np.minimum(above, thresholds.CUT_OF_LARGEST * above.max(initial=0.0))
    whole, counted = (_gathered(one, ranks) for one in (delays_ns, cut))
    return min(1.0, alternatives * min(whole, thresholds.CUT_FACTOR * counted))


def _gathered(delays_ns: Delays, ranks: NDArray[np.int64]) -> float:
    """Probability that this set gathers as much by chance."""
    blocks = stretches(delays_ns, ranks)
    largest = float(blocks.max(initial=0.0))
    return _tail(blocks / largest, len(ranks), float(blocks[:, ranks].sum()) / largest) if largest > 0 else 1.0


def even_gap(numbers: Sequence[int]) -> int | None:
    """The distance of enough numbers that are evenly spaced, and do not just follow one another; else None."""
    gaps = {later - one for one, later in pairwise(numbers)}
    is_even = len(numbers) >= thresholds.SPACED_ITERATIONS and len(gaps) == 1
    gap = gaps.pop() if is_even else 1
    return gap if gap > 1 else None


def spacing_p_value(affected: NDArray[np.int64], possible: NDArray[np.int64]) -> float:
    """Probability that as many iterations, drawn at random, are evenly spaced; 1 where they are not.

    Args:
        possible: iterations in which a delay would show, ascending: a program that communicates in every fourth alone
            makes its delays evenly spaced.
    """
    places = np.searchsorted(possible, affected)
    is_spaced = all(even_gap(numbers.tolist()) is not None for numbers in (affected, places))
    if not is_spaced or not np.isin(affected, possible).all():
        return 1.0
    count, steps = len(possible), len(affected) - 1
    ways = sum(count - steps * gap for gap in range(2, (count - 1) // steps + 1))
    return ways / comb(count, len(affected))


def level_p_value(own_ns: Delays, ranks: NDArray[np.int64], alternatives: float) -> float:
    """Probability that some such set works so much longer on average by chance, as devices differ for a whole run.

    Shuffling ranks anew in each stretch takes what lasts for evidence. Here each rank counts once: Student's t of the
    set's mean level against the others', with the spread among ranks. 0 where there are two, which show no spread.

    Args:
        own_ns: each rank's own work above the reference, shape (iterations, ranks).
        ranks, alternatives: as for `gathering_p_value`.
    """
    levels = own_ns.mean(axis=0)
    mine, others = levels[ranks], np.delete(levels, ranks)
    degrees = len(levels) - 2
    if degrees < 1 or not len(others):
        return 0.0
    variance = (len(mine) * mine.var() + len(others) * others.var()) / degrees * (1 / len(mine) + 1 / len(others))
    beyond = float(mine.mean() - others.mean())
    t = beyond / max(float(np.sqrt(variance)), _TINY)
    return min(1.0, alternatives * float(t_p_value(t, degrees)) / 2) if beyond > 0 else 1.0


def subsets(ranks: int, size: int) -> float:
    """Number of sets of so many of the ranks."""
    return float(np.exp(gammaln(ranks + 1) - gammaln(size + 1) - gammaln(ranks - size + 1)))


def _tail(blocks: Delays, draws: int, least: float) -> float:
    """P(sum of `draws` values of each row >= least), by Esscher's approximation."""
    if least <= draws * float(blocks.mean(axis=1).sum()):
        return 1.0
    low, high = 0.0, 1.0
    while high < _LARGEST_TILT and _cumulants(blocks, draws, high)[1] < least:
        low, high = high, 2 * high
    # The exponent is stationary at the tilt that is looked for, so that a rough one does.
    while high - low > _TILT_ERROR * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _cumulants(blocks, draws, middle)[1] < least else (low, middle)
    tilt = (low + high) / 2
    log, _, variance = _cumulants(blocks, draws, tilt)
    bound = float(np.exp(min(0.0, log - tilt * least)))
    width = tilt * float(np.sqrt(variance))
    return bound * float(erfcx(width / np.sqrt(2))) / 2 if width > 1 else bound


def _cumulants(blocks: Delays, draws: int, tilt: float) -> tuple[float, float, float]:
    """Logarithm of the generating function of the sum, its first and its second derivative."""
    top = blocks.max(axis=1, keepdims=True)
    weights = np.exp(tilt * (blocks - top))
    total = weights.sum(axis=1, keepdims=True)
    mean = (weights * blocks).sum(axis=1, keepdims=True) / total
    variance = (weights * (blocks - mean) ** 2).sum(axis=1) / total[:, 0]
    log = tilt * top[:, 0] + np.log(total[:, 0] / blocks.shape[1])
    return draws * float(log.sum()), draws * float(mean.sum()), draws * float(variance.sum())
