"""The statistics of every stage. In: numpy arrays. Out: intervals, p-values, robust spreads and fits.

One way to say "95 %": Student's t where a mean is judged, the circular block bootstrap (Politis and Romano 1992) where
any other statistic is. Iterations follow one another and a slow one is often followed by another, so that both work on
blocks of neighbours. The special functions are SciPy's; `scipy.stats` itself is left alone, since importing it costs a
second. Not handled: drift over a run, which widens every interval.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

Values = NDArray[np.float64]
Places = NDArray[np.int64]

CONFIDENCE = 0.95
"""Of every interval, unless its name says otherwise."""

LEAST_COUNT = 3
"""Fewer values do not show their own spread."""

NORMAL = float(ndtri(0.5 + CONFIDENCE / 2))
"""Standard deviations from the middle of a normal distribution to the end of its 95 % interval: 1.96."""

MEDIAN_ERROR = float(np.sqrt(np.pi / 2))
"""Standard error of a median over that of a mean, of normally distributed values: 1.25."""

SD_PER_MAD = float(1 / ndtri(0.75))
"""Standard deviation of normally distributed values over their median absolute deviation: 1.48."""

MAD_EFFICIENCY = 0.37
"""So many values by a standard deviation tell as much as one by a median absolute deviation, of normal values."""

_FEW = 200
_LEAST_ROBUST = 7  # of six values and fewer, the median absolute deviation is next to nothing too often
_SHORTEST_BLOCKED = 5
_MOST_DEGREES = 200.0
_LEAST_CORRELATED, _MOST_CORRELATION = 4, 0.9
_TUNING_OF_HUBER = 1.345  # 95 % efficient where errors are normal (Huber 1964)
_ROUNDS_OF_HUBER = 12


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def t_quantile(degrees: Values | float, confidence: float = CONFIDENCE) -> Values:
    """The t that Student's distribution stays within, on either side, with this probability."""
    return np.asarray(stdtrit(degrees, 0.5 + confidence / 2), dtype=np.float64)


def t_p_value(t: Values | float, degrees: Values | float) -> Values:
    """Probability that Student's t of so many degrees of freedom lies beyond ±t."""
    return np.asarray(2 * stdtr(degrees, -np.abs(t)), dtype=np.float64)


def mad_sd(values: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """Standard deviation of a normal distribution that has the values' median absolute deviation."""
    centred = values - values[0]  # large integers lose nothing
    return SD_PER_MAD * median(np.abs(centred - median(centred)))


def prediction_reach(others: Values, chance: float) -> float:
    """How far from the median of others one more value of their kind lies with this probability at most.

    Of few others by their standard deviation; of more by the median absolute deviation, which some odd ones do not
    widen, but which tells as little as a standard deviation of `MAD_EFFICIENCY` as many values.
    """
    count = len(others)
    if count < _LEAST_ROBUST:
        return float(t_quantile(count - 1, 1 - chance) * np.sqrt(1 + 1 / count) * others.std(ddof=1))
    return float(t_quantile(MAD_EFFICIENCY * (count - 1), 1 - chance)) * mad_sd(others)


def median(values: NDArray[np.float64] | NDArray[np.int64]) -> float:
    """As `np.median` of one dimension, which takes ten times as long as the sorting where values are few."""
    count = len(values)
    if not 0 < count <= _FEW:
        return float(np.median(values))
    ordered = np.sort(values).tolist()  # NaN comes last
    middle = (float(ordered[(count - 1) // 2]) + float(ordered[count // 2])) / 2
    return middle if ordered[-1] == ordered[-1] else float("nan")


def block_length(count: int) -> int:
    """How many neighbouring iterations are taken together: about the cube root of their number."""
    return 1 if count < _SHORTEST_BLOCKED else int(np.ceil(count ** (1 / 3)))


def lasting_count(series: NDArray[np.float64]) -> int:
    """How many iterations a departure from the mean lasts, by the correlation of neighbours; at most a quarter of all.

    Args:
        series: shape (iterations, series), each with a mean of its own.
    """
    count = len(series)
    departures = series - series.mean(axis=0)
    variance = float((departures**2).sum())
    if count < _LEAST_CORRELATED or variance == 0:
        return 1
    correlation = float((departures[1:] * departures[:-1]).sum()) / variance
    lasting = (1 + correlation) / (1 - min(correlation, _MOST_CORRELATION))
    return int(np.clip(round(lasting), 1, count // _LEAST_CORRELATED))


def block_draws(count: int, draws: int, rng: np.random.Generator, length: int | None = None) -> Places:
    """Places of values drawn again in blocks around a circle, shape (draws, count).

    Args:
        length: of the blocks; by default `block_length(count)`.
    """
    length = length or block_length(count)
    starts = rng.integers(0, count, size=(draws, -(-count // length)))
    places: Places = (starts[:, :, None] + np.arange(length)).reshape(draws, -1)[:, :count] % count
    return places


def percentile_interval(drawn: Values) -> Interval:
    """The 95 % interval that bootstrap draws span."""
    low, high = percentile_band(drawn)
    return Interval(float(low), float(high))


def percentile_band(drawn: Values) -> tuple[Values, Values]:
    """Both ends of the 95 % intervals that bootstrap draws of shape (draws, ...) span, shape (...) each."""
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return low, high


def bootstrap_interval(
    values: Values, statistic: Callable[[Values], Values], rng: np.random.Generator, draws: int = 2_000
) -> Interval | None:
    """95 % interval of a statistic of values in order of time; None below three of them.

    Args:
        statistic: takes values of shape (draws, count), gives one number a draw.
    """
    if len(values) < LEAST_COUNT:
        return None
    return percentile_interval(statistic(values[block_draws(len(values), draws, rng)]))


def mean_interval(values: Values) -> Interval | None:
    """95 % interval of the mean of values in order of time, shape (count,); None below three of them."""
    if len(values) < LEAST_COUNT:
        return None
    variance, degrees = _variance_of_mean(values[:, None])
    half = float(t_quantile(degrees) * np.sqrt(variance[0]))
    return Interval(float(values.mean()) - half, float(values.mean()) + half)


@dataclass(frozen=True, slots=True)
class Difference:
    """Means of several quantities in two runs and their difference, each of shape (quantities,).

    `low`, `high` (95 % interval of the difference) and `p_value` (probability of so great a difference if there were
    none) are NaN where a run has fewer than three iterations.
    """

    before: Values
    after: Values
    low: Values
    high: Values
    p_value: Values

    @property
    def difference(self) -> Values:
        """After minus before."""
        return self.after - self.before


def mean_difference(before: Values, after: Values) -> Difference:
    """How far the means of two runs lie apart, by Welch's t over blocks.

    Args:
        before: shape (iterations, quantities), in order of time.
        after: the same quantities of the other run; the number of iterations may differ.
    """
    means = before.mean(axis=0), after.mean(axis=0)
    gap = means[1] - means[0]
    if min(len(before), len(after)) < LEAST_COUNT:
        unknown = np.full_like(gap, np.nan)
        return Difference(*means, unknown, unknown, unknown)
    error, degrees = _error_of_difference(before, after)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(gap == 0, 0.0, np.abs(gap) / error)
    half = t_quantile(degrees) * error
    return Difference(*means, gap - half, gap + half, t_p_value(t, degrees))


def _error_of_difference(before: Values, after: Values) -> tuple[Values, Values]:
    """Standard error of the difference of means of each column, and the degrees of freedom it rests on."""
    (var_a, free_a), (var_b, free_b) = _variance_of_mean(before), _variance_of_mean(after)
    variance = var_a + var_b
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.clip(variance**2 / (var_a**2 / free_a + var_b**2 / free_b), 1, _MOST_DEGREES)
    return np.sqrt(variance), np.nan_to_num(degrees, nan=_MOST_DEGREES)


def least_seen(before: Values, after: Values, chance: float) -> Values:
    """The true difference of means that `mean_difference` finds 19 times in 20, called one at this `p_value`.

    Such a one is found in half of all pairs where it is as large as what the p-value asks for: the error of the means
    adds to it or takes from it. NaN where a run has fewer than three iterations.
    """
    if min(len(before), len(after)) < LEAST_COUNT:
        return np.full(before.shape[1], np.nan)
    error, degrees = _error_of_difference(before, after)
    return (t_quantile(degrees, 1 - chance) + t_quantile(degrees, 2 * CONFIDENCE - 1)) * error


def _variance_of_mean(values: Values) -> tuple[Values, float]:
    """Variance of the mean of each column over its circular blocks, and the degrees of freedom it rests on.

    This is the variance of the block bootstrap in closed form, so that nothing is drawn at random.
    """
    count = len(values)
    length = block_length(count)
    wrapped = np.concatenate([values, values[: length - 1]]) if length > 1 else values
    sums = np.cumsum(np.concatenate([np.zeros((1, values.shape[1])), wrapped]), axis=0)
    blocks = (sums[length:] - sums[:-length]) / length
    # Blocks that overlap vary less around the mean of all than around the true one.
    unbiased = count / (count - length)
    scatter = ((blocks - values.mean(axis=0)) ** 2).mean(axis=0)
    return scatter * length / count * unbiased, max(1.0, count / length - 1)


def holm(p_values: Values) -> Values:
    """P-values raised so that, of all of them, one below a level is wrong no more often than it says (Holm 1979)."""
    order = np.argsort(p_values)
    raised = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    result = np.empty_like(p_values)
    result[order] = np.minimum(1, raised)
    return result


def share_above(before: Values, after: Values) -> float:
    """Of all pairs of one value of each, the share in which the later is larger; ties count half.

    This is Mann and Whitney's U over the number of pairs, shape (count,) each.
    """
    above = (after[:, None] > before[None, :]).mean()
    return float(above + (after[:, None] == before[None, :]).mean() / 2)


def huber_fit(basis: Values, level: Values, least_spread: float = 1.0) -> Values:
    """Coefficients that fit a level by Huber's loss, shape (columns of the basis,).

    Args:
        basis: shape (count, columns).
        level: shape (count,).
        least_spread: residuals below this are not outliers, in the unit of the level.
    """
    fitted: Values = np.linalg.lstsq(basis, level, rcond=None)[0].astype(np.float64)
    for _ in range(_ROUNDS_OF_HUBER):
        left = np.abs(level - basis @ fitted)
        limit = _TUNING_OF_HUBER * max(SD_PER_MAD * float(np.median(left)), least_spread)
        weight = np.sqrt(np.minimum(1.0, limit / np.maximum(left, least_spread)))
        fitted = np.linalg.lstsq(basis * weight[:, None], level * weight, rcond=None)[0].astype(np.float64)
    return fitted


class Trend(NamedTuple):
    """A slope with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


def slope(places: Values, values: Values) -> Trend:
    """Least-squares slope of three or more values over their places, shape (count,) each.

    Errors that follow one another widen the interval, by their autocorrelation at one step.
    """
    distance = places - places.mean()
    width = float((distance**2).sum())
    steepness = float(distance @ values) / width
    left = values - values.mean() - steepness * distance
    squares = float((left**2).sum())
    following = min(0.95, max(0.0, float(left[1:] @ left[:-1]) / max(squares, 1e-300)))
    variance = squares / (len(left) - 2) * (1 + following) / (1 - following) / width
    half = float(t_quantile(len(left) - 2)) * variance**0.5
    return Trend(steepness, steepness - half, steepness + half)


class LevelStep(NamedTuple):
    """A series that changes its level for good.

    Attributes:
        place: of the first value of the new level.
        rise: from the median before to the median after.
        left: the values less these medians, shape (count,).
    """

    place: int
    rise: float
    left: Values


def clearest_step(values: Values, least: int) -> LevelStep:
    """The step that divides a series best, by the greatest CUSUM (Page 1954); shape (count,), at least 2 x `least`.

    Args:
        least: so many values at either end have to be of one level.
    """
    count = len(values)
    before = np.arange(least, count - least + 1)
    sums = np.cumsum(values - values.mean())[before - 1]
    place = int(before[np.abs(sums / np.sqrt(before * (count - before))).argmax()])
    # Medians: single outliers make no step.
    low, high = float(np.median(values[:place])), float(np.median(values[place:]))
    return LevelStep(place, high - low, values - np.repeat([low, high], [place, count - place]))


def step_p_value(step: LevelStep, spread: float, lasting: int, degrees: float) -> float:
    """Probability of so large a step at some place of a series without one.

    Args:
        spread: standard deviation of a value.
        lasting: how many neighbours depart together.
        degrees: of freedom that the spread rests on.
    """
    count = len(step.left)
    if spread <= 0 or step.rise == 0:
        return float(step.rise == 0)
    error = MEDIAN_ERROR * spread * float(np.sqrt(lasting * (1 / step.place + 1 / (count - step.place))))
    return min(1.0, count * float(t_p_value(step.rise / error, min(max(degrees, 1.0), _MOST_DEGREES))))
