"""Do transfers grow with the spread of arrivals? In: collectives as arrays. Out: kappa with its interval, or a refusal.

    transfer = own level of its place + kappa x mean wait + whatever else

A plain regression is biased: what slows the fabric may also delay arrivals, and an error in the time of the last
arrival moves waits up and transfers down alike (slope -1). So only that part of the spread is used which follows from
how much work each rank had of its own (the instrument): the fabric has no part in it, nor have clocks. Kappa is
the value at which transfer - kappa x wait no longer moves with the instrument (an Anderson-Rubin test, inverted), by a
score that outliers cannot rule (Huber), judged over blocks of iterations (`measurement`).
Not handled: a kappa that differs between communicators; they are pooled, each with the weight of its precision.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.calibration.measurement import (
    Amounts,
    Measurement,
    Numbers,
    block_of,
    critical,
    first_stage,
    refused,
    sums,
    t_statistic,
)
from traceforge.stats import CONFIDENCE, mad_sd
from traceforge.thresholds import replay as thresholds
from traceforge.thresholds.align import RESOLUTION_RESIDUALS
from traceforge.units import format_ns

_GRID = 121
_UNTESTED = " No collective is free of spread, so that it was not tested whether something else slows both."


@dataclass(frozen=True, slots=True)
class Collectives:
    """Collectives of regular iterations, one row each; times in ns.

    Attributes:
        iteration: iteration number.
        place: number of the place in the program: same communicator, operation, size and position.
        transfer_ns: from the last arrival to the last end.
        wait_ns: mean over ranks of the time between their arrival and the last one.
        local_ns: what that mean would be if ranks differed by their own work only.
        error_ns: how unsure the ranks' clocks are against one another.
    """

    iteration: Numbers
    place: Numbers
    transfer_ns: Amounts
    wait_ns: Amounts
    local_ns: Amounts
    error_ns: Amounts

    def rows(self, chosen: NDArray[np.bool_]) -> "Collectives":
        """Some of the rows."""
        columns = (getattr(self, name)[chosen] for name in self.__dataclass_fields__)
        return Collectives(*columns)


def spread_coupling(collectives: Collectives) -> Measurement:
    """Measure kappa."""
    iterations = len(np.unique(collectives.iteration))
    if iterations < thresholds.LEAST_ITERATIONS:
        return refused(
            iterations,
            f"Too few iterations to tell whether more work on a rank spreads arrivals further: {iterations}, and "
            f"{thresholds.LEAST_ITERATIONS} are needed.",
        )
    deviation = _without_level(collectives.wait_ns, collectives.place)
    spread = _by_place(collectives.place, deviation, lambda values: np.sqrt(np.mean(values**2)))
    resolved = (spread >= RESOLUTION_RESIDUALS * collectives.error_ns) & (spread > 0)
    sample = collectives.rows(resolved)
    if len(np.unique(sample.iteration)) < thresholds.LEAST_ITERATIONS:
        return refused(
            len(sample.iteration),
            f"Mean waits vary by {format_ns(float(np.median(spread)))}, less than three times the uncertainty of "
            f"the clocks ({format_ns(float(np.median(collectives.error_ns)))}).",
        )
    return _measured(sample, collectives.rows(~resolved))


def _measured(sample: Collectives, control: Collectives) -> Measurement:
    score = _Score(sample)
    if score.strength < thresholds.LEAST_F:
        reason = (
            "Whether more work on a rank spreads arrivals further cannot be determined: the two hardly move together."
        )
        return _bounded(score, np.inf, reason)
    at_95, at_99 = score.interval(CONFIDENCE), score.interval(thresholds.SURE_CONFIDENCE)
    reason = _doubt(score, at_95, control)
    if reason:
        return _bounded(score, at_95[1], reason)
    caveat = "" if _is_testable(score, control) else _UNTESTED
    return Measurement(score.kappa, *at_95, *at_99, score.count, score.strength, caveat=caveat)


def _bounded(score: "_Score", high: float, reason: str) -> Measurement:
    """No number, but what of a growth the data do not rule out."""
    refusal = refused(score.count, reason, f_statistic=score.strength)
    return replace(refusal, high=min(high, thresholds.LARGEST_COUPLING))


def _doubt(score: "_Score", interval: tuple[float, float], control: Collectives) -> str:
    """Why the numbers say nothing; empty where they do."""
    if not np.isfinite(score.kappa):
        return "No coupling fits: a few collectives outweigh all others, whatever its strength."
    if not np.isfinite(interval).all() or interval[1] - interval[0] > thresholds.MOST_WIDTH:
        return "The interval is wider than 1 to either side; nothing follows from it."
    if interval[1] < 0 and interval[0] <= thresholds.CLOCK_ERROR_SLOPE:
        return (
            "Transfers shrink by as much as the last arrival is late, which is what an error in the time of that "
            "arrival makes."
        )
    if _is_testable(score, control) and _control_moves(score, control):
        return "Transfers whose arrivals hardly spread move with the ranks' own work too: something else slows both."
    return ""


class _Score:
    """The score of transfer - kappa x wait against the instrument, by block of iterations."""

    def __init__(self, sample: Collectives) -> None:
        self.count = len(sample.iteration)
        self.iteration, self.block = sample.iteration, block_of(sample.iteration)
        # The instrument is centred, so that the level of a place, whatever it is, cancels.
        self.instrument = clipped(_without_mean(sample.local_ns, sample.place), sample.place)
        self._wait = _without_level(sample.wait_ns, sample.place)
        self._transfer = _without_level(sample.transfer_ns, sample.place)
        self._place, self._error = sample.place, np.maximum(sample.error_ns, 1.0)
        self._scale = np.ones(self.count)
        self.strength = first_stage(self._wait, self.instrument, self.block)
        self.kappa = 0.0
        if self.strength >= thresholds.LEAST_F:
            self._solve()

    def statistic(self, kappas: Amounts) -> Amounts:
        """t of the score for each kappa, shape as given."""
        residual = self._transfer[:, None] - kappas[None, :] * self._wait[:, None]
        bounded = _held(residual / self._scale[:, None])
        return t_statistic(sums(bounded * (self.instrument / self._scale)[:, None], self.block))

    def interval(self, level: float) -> tuple[float, float]:
        """Kappas that the data do not reject; infinite where there is no end to them."""
        if not np.isfinite(self.kappa):
            return -np.inf, np.inf
        bound = critical(int(self.block.max()) + 1, level)
        return self._end(-1, bound), self._end(1, bound)

    def _solve(self) -> None:
        """Kappa at which the score is 0, and the scale of what is left, each from the other, twice."""
        weight = self.instrument
        self.kappa = float(np.dot(weight, self._transfer) / np.dot(weight, self._wait))
        for _ in range(2):
            if not np.isfinite(self.kappa):
                return
            residual = self._transfer - self.kappa * self._wait
            self._scale = np.maximum(_by_place(self._place, residual, mad_sd), self._error)
            self._step = self._standard_error()
            self.kappa = self._root()

    def _standard_error(self) -> float:
        weight = self.instrument / self._scale**2
        left = sums(weight * self._bounded(self.kappa) * self._scale, self.block)
        return float(np.sqrt(np.sum(left**2)) / abs(np.dot(weight, self._wait)))

    def _bounded(self, kappa: float) -> Amounts:
        return _held((self._transfer - kappa * self._wait) / self._scale)

    def _root(self) -> float:
        """Where the summed score changes its sign next to the present kappa; NaN where it keeps its sign.

        Outliers are held, so that a strong kappa need not turn the score around.
        """
        weight = self.instrument / self._scale
        near, far = self.kappa, self.kappa
        value = float(np.dot(weight, self._bounded(near)))
        step = max(self._step, 1e-9) * (1 if value > 0 else -1)
        for _ in range(30):
            far = near + step
            if np.dot(weight, self._bounded(far)) * value <= 0:
                break
            near, step = far, 2 * step
        else:
            return np.nan
        for _ in range(40):
            middle = (near + far) / 2
            if np.dot(weight, self._bounded(middle)) * value > 0:
                near = middle
            else:
                far = middle
        return (near + far) / 2

    def _end(self, side: int, bound: float) -> float:
        reach = max(self._step, 1e-9)
        for _ in range(4):
            kappas = self.kappa + side * np.linspace(0, 8 * reach, _GRID)
            beyond = np.flatnonzero(np.abs(self.statistic(kappas)) > bound)
            if len(beyond):
                first = int(beyond[0])
                return float(kappas[first])
            reach *= 8
        return side * np.inf


def _held(residual: Amounts) -> Amounts:
    """Huber's score: residuals, in deviations, of which no outlier counts for more than a few."""
    return np.asarray(np.clip(residual, -thresholds.LARGEST_RESIDUAL, thresholds.LARGEST_RESIDUAL))


def _is_testable(score: _Score, control: Collectives) -> bool:
    return len(np.intersect1d(score.iteration, control.iteration)) >= thresholds.LEAST_ITERATIONS


def _control_moves(score: _Score, control: Collectives) -> bool:
    """The exclusion test: whether transfers without spread move with the instrument of their iteration."""
    iterations = np.intersect1d(score.iteration, control.iteration)
    scaled = score.instrument / max(float(score.instrument.std()), 1e-9)
    instrument = _mean_over(score.iteration, scaled, iterations)
    transfer = _without_level(control.transfer_ns, control.place)
    scale = np.maximum(_by_place(control.place, transfer, mad_sd), 1.0)
    moved = _mean_over(
        control.iteration,
        _held(transfer / scale),
        iterations,
    )
    products = (instrument - instrument.mean()) * (moved - moved.mean())
    by_block = sums(products, block_of(iterations))
    return bool(abs(t_statistic(by_block)) > critical(len(by_block), thresholds.SURE_CONFIDENCE))


def _mean_over(iteration: Numbers, values: Amounts, wanted: Numbers) -> Amounts:
    inside = np.isin(iteration, wanted)
    place = np.searchsorted(wanted, iteration[inside])
    result: Amounts = np.bincount(place, values[inside], minlength=len(wanted)) / np.bincount(
        place, minlength=len(wanted)
    )
    return result


def clipped(values: Amounts, place: Numbers) -> Amounts:
    """Values held within `thresholds.LARGEST_INSTRUMENT` standard deviations of their place, centred again."""
    bound = thresholds.LARGEST_INSTRUMENT * _by_place(place, values, lambda own: np.sqrt(np.mean(own**2)))
    return _without_mean(np.clip(values, -bound, bound), place)


def _without_mean(values: Amounts, place: Numbers) -> Amounts:
    return values - _by_place(place, values, np.mean)


def _without_level(values: Amounts, place: Numbers) -> Amounts:
    return values - _by_place(place, values, np.median)


def _by_place(place: Numbers, values: Amounts, of: "np.ufunc | object") -> Amounts:
    """A number of each place's values, at each of its rows."""
    order = np.argsort(place, kind="stable")
    edges = np.flatnonzero(np.diff(place[order])) + 1
    result = np.empty(len(values))
    for rows in np.split(order, edges):
        result[rows] = of(values[rows]) if len(rows) else 0.0  # type: ignore[operator]
    return result
