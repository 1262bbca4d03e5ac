"""Is a difference of means more than scatter? In: values by iteration of two runs. Out: difference, interval, chance.

Iterations follow one another, and a slow one is often followed by another: their scatter is taken from blocks of
neighbours. The variance is that of the circular block bootstrap (Politis and Romano 1992) with blocks of about the
third root of the run's length, written down in closed form, so that nothing is drawn at random; the difference is
judged by Student's t with the degrees of freedom that whole blocks leave (Welch). Many tests at once: Holm 1979.
Not handled: drift over a run, which widens the interval.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

LEAST_ITERATIONS = 3
_SHORTEST_BLOCKED = 5
_MOST_FREEDOM = 200.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)


@dataclass(frozen=True, slots=True)
class Difference:
    """Means of several quantities in two runs and their difference, each of shape (quantities,).

    `low`, `high` (95 % interval of the difference) and `chance` (probability of so great a difference if there were
    none) are NaN where a run has fewer than three iterations.
    """

    before: Values
    after: Values
    low: Values
    high: Values
    chance: Values

    @property
    def difference(self) -> Values:
        """After minus before."""
        return self.after - self.before


def differences(before: Values, after: Values) -> Difference:
    """How far the means of two runs lie apart.

    Args:
        before: shape (iterations, quantities), in order of time.
        after: the same quantities of the other run; the number of iterations may differ.
    """
    means = before.mean(axis=0), after.mean(axis=0)
    gap = means[1] - means[0]
    if min(len(before), len(after)) < LEAST_ITERATIONS:
        unknown = np.full_like(gap, np.nan)
        return Difference(*means, unknown, unknown, unknown)
    (var_a, free_a), (var_b, free_b) = _variance_of_mean(before), _variance_of_mean(after)
    variance = var_a + var_b
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.clip(variance**2 / (var_a**2 / free_a + var_b**2 / free_b), 1, _MOST_FREEDOM)
        t = np.where(gap == 0, 0.0, np.abs(gap) / np.sqrt(variance))
    freedom = np.nan_to_num(freedom, nan=_MOST_FREEDOM)
    half = student_quantile(freedom) * np.sqrt(variance)
    return Difference(*means, gap - half, gap + half, student_chance(t, freedom))


def mean_interval(values: Values) -> tuple[float, float] | None:
    """95 % interval of the mean of values in order of time, shape (iterations,); None below three iterations."""
    if len(values) < LEAST_ITERATIONS:
        return None
    variance, freedom = _variance_of_mean(values[:, None])
    half = float(student_quantile(np.array([freedom]))[0] * np.sqrt(variance[0]))
    return float(values.mean()) - half, float(values.mean()) + half


def block_length(iterations: int) -> int:
    """Neighbouring iterations that are taken together."""
    return 1 if iterations < _SHORTEST_BLOCKED else int(np.ceil(iterations ** (1 / 3)))


def _variance_of_mean(values: Values) -> tuple[Values, float]:
    """Variance of the mean of each column over its circular blocks, and the degrees of freedom it rests on."""
    count = len(values)
    length = block_length(count)
    wrapped = np.concatenate([values, values[: length - 1]]) if length > 1 else values
    sums = np.cumsum(np.concatenate([np.zeros((1, values.shape[1])), wrapped]), axis=0)
    blocks = (sums[length:] - sums[:-length]) / length
    # Blocks that overlap vary less around the mean of all than around the true one.
    unbiased = count / (count - length)
    scatter = ((blocks - values.mean(axis=0)) ** 2).mean(axis=0)
    return scatter * length / count * unbiased, max(1.0, count / length - 1)


def holm(chances: Values) -> Values:
    """Chances raised so that, of all of them, one below a level is wrong no more often than that level says."""
    order = np.argsort(chances)
    raised = np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1))
    result = np.empty_like(chances)
    result[order] = np.minimum(1, raised)
    return result


def slower_share(before: Values, after: Values) -> float:
    """Of all pairs of one iteration of each run, the share in which the later run's took longer; ties count half.

    This is Mann and Whitney's U over the number of pairs, shape (iterations,) each.
    """
    above = (after[:, None] > before[None, :]).mean()
    return float(above + (after[:, None] == before[None, :]).mean() / 2)


def student_chance(t: Values, freedom: Values) -> Values:
    """Probability that Student's t of so many degrees of freedom lies beyond ±t.

    With t = sqrt(freedom) x tan(angle) the density is a power of a cosine, and the two integrals are smooth.
    """
    start = np.arctan(t / np.sqrt(freedom))
    return _cosine_integral(start, freedom) / _cosine_integral(np.zeros_like(start), freedom)


def _cosine_integral(start: Values, freedom: Values) -> Values:
    half = (np.pi / 2 - start) / 2
    angles = start + half * (1 + _NODES[:, None])
    whole: Values = half * (_WEIGHTS[:, None] * np.cos(angles) ** (freedom - 1)).sum(axis=0)
    return whole


def student_quantile(freedom: Values, chance: float = 0.05) -> Values:
    """The t beyond ±which Student's t lies with this probability."""
    low, high = np.zeros_like(freedom), np.full_like(freedom, 1_000.0)
    for _ in range(60):
        middle = (low + high) / 2
        is_inside = student_chance(middle, freedom) > chance
        low, high = np.where(is_inside, middle, low), np.where(is_inside, high, middle)
    return (low + high) / 2
