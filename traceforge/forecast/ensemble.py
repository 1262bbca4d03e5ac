"""The models together. In: points at several scales. Out: a value and a band at any number of ranks, or a refusal.

The error of a forecast comes from the form of the model, not from noise. So every model is fitted to the scales that
use the same links as the largest (see `regime`), made to meet its points (see `anchored`), and judged by how well it
predicts the largest scales from the smaller ones; those far worse than the best are left out. The value is their mean,
weighted by that error. The 90 % band joins what the models differ by, what the noise of the points makes of them, and
the error that they showed, which grows with every doubling beyond the largest scale.

    one scale        no curve
    two scales       Amdahl's line, without a band: two points test no model
    beyond 4 times   the band alone
    all in one host  nothing beyond them: no run shows the links between hosts
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.forecast.anchored import AnchoredFit, anchored
from traceforge.forecast.fitting import log_error
from traceforge.forecast.model import ScalingModel, models
from traceforge.forecast.regime import SPANS_HOSTS, Boundary, boundary_of, of_largest, with_regimes
from traceforge.forecast.scale_point import ScalePoint, merged, ranks_of, steps_of
from traceforge.forecast.waiting import fit_beside_waiting, seen_by_slowest
from traceforge.thresholds import forecast as thresholds

Array = NDArray[np.float64]
Models = Mapping[str, ScalingModel]

_DRAWS = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A fitted model.

    Attributes:
        model: what was fitted.
        fit: to the measured values; a set of one.
        drawn: to bootstrap draws of them; None where two scales leave nothing to draw.
        residual: root mean square of the log residuals at the points it was fitted to.
        backtest: predicted over measured throughput of the largest scale, less 1, from those below it that use the same
            links; None where they are too few.
        weight: its part of the value, 0 where it is no member of the band.
    """

    model: ScalingModel
    fit: AnchoredFit
    drawn: AnchoredFit | None
    residual: float
    backtest: float | None
    weight: float

    @property
    def is_used(self) -> bool:
        """Whether it is part of the band."""
        return self.weight > 0


@dataclass(frozen=True, slots=True)
class ThroughputBand:
    """Throughput at numbers of ranks, shape (Q,) each.

    Attributes:
        value: NaN where only a band is given.
        low, high: the band; NaN where two scales allow none.
        extrapolated: beyond the measured scales.
    """

    ranks: Array
    value: Array
    low: Array
    high: Array
    extrapolated: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Fitted models.

    Attributes:
        points: by ascending ranks, one a scale.
        members: all models that could be fitted.
        noise: largest relative error of a point.
        doubling_error: relative error that the models showed in a doubling of the ranks.
        boundary: where links within a host end.
    """

    points: tuple[ScalePoint, ...]
    members: tuple[Member, ...]
    noise: float
    doubling_error: float
    boundary: Boundary

    @property
    def smallest(self) -> ScalePoint:
        """The point that efficiency is measured against."""
        return self.points[0]

    @property
    def largest(self) -> ScalePoint:
        """The point beyond which is extrapolation."""
        return self.points[-1]

    @property
    def furthest(self) -> int:
        """The largest number of ranks that a value is given for."""
        return int(thresholds.FURTHEST_VALUE * self.largest.ranks)

    @property
    def base_per_rank(self) -> float:
        """Throughput per rank at the smallest scale."""
        return self.smallest.throughput / self.smallest.ranks

    @property
    def used(self) -> list[Member]:
        """Members of the band."""
        return [member for member in self.members if member.is_used]

    @property
    def is_tested(self) -> bool:
        """Whether a model of the band has predicted a scale that it was not fitted to."""
        return any(member.backtest is not None for member in self.used)

    @property
    def worst_backtest(self) -> float | None:
        """Error of the best model at the largest scale, where it is large; None where it is not, or none was tested."""
        found = [member.backtest for member in self.used if member.backtest is not None]
        best = min(found, key=abs, default=0.0)
        return best if abs(best) > thresholds.LARGE_BACKTEST else None

    def value(self, ranks: Array) -> Array:
        """Throughput, the weighted mean of the members' logs, shape (Q,); at any distance."""
        result: Array = np.exp(self._weights() @ self._logs(ranks))
        return result

    def predict(self, ranks: Array) -> ThroughputBand:
        """Throughput with its band; NaN where no run shows the links that so many ranks use."""
        outside = (ranks > self.largest.ranks) | (ranks < self.smallest.ranks)
        is_refused = np.array([self.boundary.refusal(float(one)) is not None for one in ranks])
        middle = np.where(is_refused, np.nan, self.value(ranks))
        half = self._half_width(ranks)
        value = np.where(ranks > self.furthest, np.nan, middle)
        return ThroughputBand(ranks, value, middle * np.exp(-half), middle * np.exp(half), outside)

    def _weights(self) -> Array:
        return np.array([member.weight for member in self.used])

    def _logs(self, ranks: Array) -> Array:
        """Log throughput of each member, shape (M, Q)."""
        result: Array = np.log(ranks / np.stack([member.fit.step_s(ranks)[0] for member in self.used]))
        return result

    def _half_width(self, ranks: Array) -> Array:
        """Half of the band, as a logarithm."""
        if any(member.drawn is None for member in self.used):
            return np.full(len(ranks), np.nan)
        logs, weights = self._logs(ranks), self._weights()
        apart = weights @ (logs - weights @ logs) ** 2
        drawn = [np.log(member.drawn.step_s(ranks)).var(axis=0) for member in self.used if member.drawn]
        beyond = np.maximum(np.log2(ranks / self.largest.ranks), np.log2(self.smallest.ranks / ranks))
        terms = self.largest.terms
        waiting = terms.waiting_s / self.largest.step_s if terms else 0.0
        model = np.hypot(self.doubling_error, thresholds.WAITING_DOUBLING_ERROR * waiting) * np.maximum(beyond, 0)
        result: Array = thresholds.BAND_DEVIATIONS * np.sqrt(apart + weights @ np.array(drawn) + model**2)
        return result


def fit_ensemble(points: Sequence[ScalePoint]) -> Ensemble | None:
    """All models fitted to points at two scales or more, with the same draws every time; None at one scale, or
    where no model fits.
    """
    scales = [seen_by_slowest(point) for point in with_regimes(merged(points))]
    if len(scales) < 2:
        return None
    candidates = dict(models()) if len(scales) >= thresholds.LEAST_SCALES else {"amdahl": models()["amdahl"]}
    errors = _errors(scales, candidates)
    fits = _fits(candidates, scales, steps_of(scales)[None, :], errors)
    drawn = _drawn(candidates, scales, errors)
    found = {name: _backtests(candidates[name], scales, errors) for name in fits}
    weights = _weights(found)
    members = [
        Member(
            candidates[name],
            fit,
            drawn.get(name),
            _residual(candidates[name], fit, scales),
            float(np.expm1(found[name][0].log_error)) if found[name] else None,
            weights[name],
        )
        for name, fit in fits.items()
    ]
    if not any(member.is_used for member in members):
        return None
    return Ensemble(
        tuple(scales), tuple(members), float(errors.max()), _doubling_error(found, weights), boundary_of(scales)
    )


@dataclass(frozen=True, slots=True)
class _Backtest:
    """A scale predicted from smaller ones.

    Attributes:
        log_error: log of predicted over measured throughput.
        log_error_of_rest: the same had the waiting been known.
        doublings: how far away the scale was.
    """

    log_error: float
    log_error_of_rest: float
    doublings: float

    @property
    def per_doubling(self) -> float:
        """The error of the model's form, as it would be in a doubling of the ranks."""
        return self.log_error_of_rest / max(self.doublings, thresholds.LEAST_DOUBLINGS)


def _own_points(model: ScalingModel, scales: Sequence[ScalePoint]) -> list[ScalePoint]:
    """What a model is fitted to: one that knows terms reads the links from those of the largest by itself."""
    return list(scales) if _knows_terms(model, scales) else of_largest(scales)


def _knows_terms(model: ScalingModel, scales: Sequence[ScalePoint]) -> bool:
    return model.points_needed(scales) != model.points_needed([replace(point, terms=None) for point in scales])


def _fits(candidates: Models, scales: Sequence[ScalePoint], steps_s: Array, errors: Array) -> dict[str, AnchoredFit]:
    found = {}
    for name, model in candidates.items():
        own = _own_points(model, scales)
        if model.points_needed(own) <= len(own):
            places = [scales.index(point) for point in own]
            knows_waiting = _knows_terms(model, scales)
            fit = (
                model.fit(own, steps_s[:, places])
                if knows_waiting
                else fit_beside_waiting(model, own, steps_s[:, places])
            )
            found[name] = anchored(fit, ranks_of(scales), steps_s, errors)
    return found


def _residual(model: ScalingModel, fit: AnchoredFit, scales: Sequence[ScalePoint]) -> float:
    """Root mean square of the log residuals that the fit itself leaves at the points of its links."""
    own = of_largest(scales)
    return float(log_error(steps_of(own)[None], fit.fit.step_s(ranks_of(own)))[0])


def _backtests(model: ScalingModel, scales: Sequence[ScalePoint], errors: Array) -> list[_Backtest]:
    """How well each of the largest scales is predicted from those below it, the largest first."""
    result = []
    for count in range(len(scales) - 1, 1, -1):
        rest, last = scales[:count], scales[count]
        is_alike = rest[-1].facts.get(SPANS_HOSTS) == last.facts.get(SPANS_HOSTS)
        fit = _fits({"": model}, rest, steps_of(rest)[None, :], errors[:count]).get("") if is_alike else None
        if fit is None:
            break
        at = np.array([float(last.ranks)])
        predicted = float(fit.step_s(at)[0, 0])
        waited = float(fit.parts(at).get("straggling", np.zeros(1))[0]) if last.terms else 0.0
        known = predicted - waited + (last.terms.waiting_s if last.terms else 0.0)
        doublings = float(np.log2(last.ranks / rest[-1].ranks))
        result.append(_Backtest(float(np.log(last.step_s / predicted)), float(np.log(last.step_s / known)), doublings))
    return result


def _weights(found: Mapping[str, Sequence[_Backtest]]) -> dict[str, float]:
    """Weights that add up to 1: the square of the inverse error, 0 beyond a multiple of the best error.

    A model without an error weighs a part of what the weakest does that was tested, whether or not that one stays.
    """
    known = {
        name: max(_rms([one.per_doubling for one in tests]), thresholds.LEAST_MODEL_ERROR)
        for name, tests in found.items()
        if tests
    }
    best = min(known.values(), default=1.0)
    raw = {name: error**-2 for name, error in known.items() if error <= thresholds.MOST_TIMES_BEST_ERROR * best}
    least = min((error**-2 * thresholds.WEIGHT_OF_UNTESTED for error in known.values()), default=1.0)
    raw |= dict.fromkeys((name for name, tests in found.items() if not tests), least)
    total = sum(raw.values())
    return {name: raw.get(name, 0.0) / total for name in found}


def _doubling_error(found: Mapping[str, Sequence[_Backtest]], weights: Mapping[str, float]) -> float:
    """What the models of the band were off by in a doubling; of untested ones, what such models miss by."""
    tested = {name: tests for name, tests in found.items() if tests and weights[name] > 0}
    total = sum(weights[name] for name in tested)
    if not total:
        return thresholds.UNTESTED_DOUBLING_ERROR
    squares = sum(weights[name] * _rms([one.per_doubling for one in tests]) ** 2 for name, tests in tested.items())
    return float(max(thresholds.LEAST_DOUBLING_ERROR, thresholds.DOUBLING_ERROR_FACTOR * (squares / total) ** 0.5))


def _rms(values: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _errors(scales: Sequence[ScalePoint], candidates: Models) -> Array:
    """Relative error of each point: what was measured, else what the best fit leaves."""
    least, unstated = thresholds.LEAST_POINT_ERROR, thresholds.LEAST_UNSTATED_ERROR
    measured = [point.error for point in scales]
    if all(error is not None for error in measured):
        return np.array([max(least, error or 0.0) for error in measured])
    own, left = of_largest(scales), []
    for model in candidates.values():
        free = len(own) - model.points_needed(own)
        if free > 0:
            fit = model.fit(own, steps_of(own)[None])
            left.append(float(log_error(steps_of(own)[None], fit.step_s(ranks_of(own)))[0]) * (len(own) / free) ** 0.5)
    common = max(unstated, min(left, default=0.0))
    return np.array([common if error is None else max(least, error) for error in measured])


def _drawn(candidates: Models, scales: Sequence[ScalePoint], errors: Array) -> dict[str, AnchoredFit]:
    if len(scales) < thresholds.LEAST_SCALES:
        return {}
    noise = np.random.default_rng(0).standard_normal((_DRAWS, len(scales)))
    return _fits(candidates, scales, steps_of(scales) * np.exp(errors * noise), errors)
