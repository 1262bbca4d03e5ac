"""The models together. In: points at several scales. Out: a value and a band at any number of ranks, or a refusal.

The error of a forecast comes from the form of the model, not from noise. So every model is fitted to all scales but
the largest and judged by how well it predicts that one; those within twice the best error stay. The value is their mean
weighted by that error, and the band is the envelope of their 95 % bootstrap intervals. Models that have too few
points for this test stay too.

    one scale        no curve
    two scales       Amdahl's line, without a band: two points test no model
    beyond 4 times   the band alone
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.forecast.fitting import log_error
from traceforge.forecast.model import FittedModel, ScalingModel, models
from traceforge.forecast.scale_point import ScalePoint, merged, ranks_of, steps_of
from traceforge.stats import percentile_band
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
        backtest: predicted over measured throughput of the largest scale, less 1; None where the rest is too little.
        weight: its part of the value, 0 where it is no member of the band.
    """

    model: ScalingModel
    fit: FittedModel
    drawn: FittedModel | None
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
        noise: relative error of a point that draws are made with.
    """

    points: tuple[ScalePoint, ...]
    members: tuple[Member, ...]
    noise: float

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

    def value(self, ranks: Array) -> Array:
        """Throughput, the weighted mean of the members' logs, shape (Q,); at any distance."""
        logs = [member.weight * np.log(ranks / member.fit.step_s(ranks)[0]) for member in self.used]
        result: Array = np.exp(np.sum(logs, axis=0))
        return result

    def predict(self, ranks: Array) -> ThroughputBand:
        """Throughput with its band."""
        value = np.where(ranks > self.furthest, np.nan, self.value(ranks))
        lows, highs = [], []
        for member in self.used:
            middle = ranks / member.fit.step_s(ranks)[0]
            if member.drawn is None:
                lows, highs = [np.full_like(ranks, np.nan)], [np.full_like(ranks, np.nan)]
                break
            low, high = percentile_band(ranks / member.drawn.step_s(ranks))
            lows.append(np.minimum(low, middle))
            highs.append(np.maximum(high, middle))
        outside = (ranks > self.largest.ranks) | (ranks < self.smallest.ranks)
        return ThroughputBand(ranks, value, np.min(lows, axis=0), np.max(highs, axis=0), outside)


def fit_ensemble(points: Sequence[ScalePoint]) -> Ensemble | None:
    """All models fitted to points at two scales or more, with the same draws every time; None at one scale."""
    scales = merged(points)
    if len(scales) < 2:
        return None
    candidates = dict(models()) if len(scales) >= thresholds.LEAST_SCALES else {"amdahl": models()["amdahl"]}
    fits = _fits(candidates, scales, steps_of(scales)[None, :])
    residuals = {
        name: float(log_error(steps_of(scales)[None], fit.step_s(ranks_of(scales)))[0]) for name, fit in fits.items()
    }
    noise = _noise(scales, candidates, residuals)
    drawn = _drawn(candidates, scales, noise)
    errors = {name: _backtest(candidates[name], scales) for name in fits}
    weights = _weights(errors)
    members = [
        Member(candidates[name], fit, drawn.get(name), residuals[name], errors[name], weights[name])
        for name, fit in fits.items()
    ]
    return Ensemble(tuple(scales), tuple(members), noise)


def _fits(candidates: Models, scales: Sequence[ScalePoint], steps_s: Array) -> dict[str, FittedModel]:
    return {
        name: model.fit(scales, steps_s)
        for name, model in candidates.items()
        if model.points_needed(scales) <= len(scales)
    }


def _backtest(model: ScalingModel, scales: Sequence[ScalePoint]) -> float | None:
    """Predicted over measured throughput at the largest scale, from all others, less 1."""
    rest, last = scales[:-1], scales[-1]
    if model.points_needed(rest) > len(rest):
        return None
    fit = model.fit(rest, steps_of(rest)[None, :])
    predicted = float(fit.step_s(np.array([float(last.ranks)]))[0, 0])
    return last.step_s / predicted - 1


def _weights(errors: Mapping[str, float | None]) -> dict[str, float]:
    """Weights that add up to 1: the square of the inverse error, 0 beyond twice the best error.

    A model without an error weighs as much as the weakest that was tested, whether or not that one stays.
    """
    known = {
        name: max(abs(float(np.log1p(error))), thresholds.LEAST_MODEL_ERROR)
        for name, error in errors.items()
        if error is not None
    }
    best = min(known.values(), default=1.0)
    raw = {name: error**-2 for name, error in known.items() if error <= thresholds.MOST_TIMES_BEST_ERROR * best}
    least = min((error**-2 for error in known.values()), default=1.0)
    raw |= dict.fromkeys((name for name, error in errors.items() if error is None), least)
    total = sum(raw.values())
    return {name: raw.get(name, 0.0) / total for name in errors}


def _noise(scales: Sequence[ScalePoint], candidates: Models, residuals: Mapping[str, float]) -> float:
    """Relative error of a point: what was measured, else what the best fit leaves; a per cent at least."""
    measured = [point.error for point in scales if point.error is not None]
    if len(measured) == len(scales):
        return max(thresholds.LEAST_MODEL_ERROR, *measured)
    left = [
        residual * (len(scales) / (len(scales) - candidates[name].points_needed(scales))) ** 0.5
        for name, residual in residuals.items()
        if len(scales) > candidates[name].points_needed(scales)
    ]
    return max([thresholds.LEAST_MODEL_ERROR, min(left, default=0.0), *measured])


def _drawn(candidates: Models, scales: Sequence[ScalePoint], noise: float) -> dict[str, FittedModel]:
    if len(scales) < thresholds.LEAST_SCALES:
        return {}
    errors = np.random.default_rng(0).standard_normal((_DRAWS, len(scales)))
    draws = steps_of(scales) * np.exp(noise * errors)
    return _fits(candidates, scales, draws)
