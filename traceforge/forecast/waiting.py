"""How waiting for the slowest rank grows. In: points with terms. Out: waiting at any number of ranks.

The slowest of more ranks is later: that is order statistics, not the form of a curve. Where the largest run says by
how much (`forecast.outlook`), its ranks set the growth and the run itself the level; a power law through all scales
would take a rank that is slow at one of them for growth. Models that know only throughputs are fitted to what is left
without the waiting, and get it back at other scales.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceforge.forecast.model import FittedModel, ScalingModel
from traceforge.forecast.scale_point import Array, ScalePoint, ranks_of, steps_of
from traceforge.thresholds import forecast as thresholds


@dataclass(frozen=True, slots=True)
class WaitingFit:
    """Waiting that grows as a power of the ranks; shape (B,) each.

    Attributes:
        level_s: at one rank.
        growth: exponent, 0..1.
    """

    level_s: Array
    growth: Array

    def waiting_s(self, ranks: Array) -> Array:
        """Waiting at each number of ranks, shape (B, Q)."""
        result: Array = self.level_s[:, None] * ranks[None, :] ** self.growth[:, None] * (ranks > 1)
        return result


@dataclass(frozen=True, slots=True)
class BesideWaiting:
    """A model of what is left without waiting, and the waiting."""

    fit: FittedModel
    waiting: WaitingFit

    def step_s(self, ranks: Array) -> Array:
        """See `traceforge.forecast.model.FittedModel`."""
        return self.fit.step_s(ranks) + self.waiting.waiting_s(ranks)

    def parameters(self) -> dict[str, float]:
        """See `traceforge.forecast.model.FittedModel`."""
        return self.fit.parameters()

    def parts(self, ranks: Array) -> dict[str, Array]:
        """See `traceforge.forecast.model.FittedModel`."""
        return {**self.fit.parts(ranks), "straggling": self.waiting.waiting_s(ranks)[0]}


def seen_by_slowest(point: ScalePoint) -> ScalePoint:
    """The point with the terms of the rank that all wait for; as it is where its lateness is not known.

    A slow rank shows on the others as waiting, and as communication that their work, done long since, no longer
    hides. On the slow rank itself it is work. So waiting is how late the slowest rank is, what ranks wait beyond that
    (as in a pipeline, for one another's turns) is local, and exposed communication is the rest of the step.
    """
    terms, late = point.terms, point.lateness.get(1)
    if terms is None or late is None:
        return point
    beyond_s = max(0.0, terms.waiting_s - late.value_s)
    communication_s = terms.exposed_s + terms.hidden_s
    waiting_s = min(late.value_s, point.step_s)
    left_s = point.step_s - waiting_s
    exposed_s = min(max(0.0, left_s - terms.local_s - beyond_s), communication_s)
    seen = replace(
        terms,
        local_s=left_s - exposed_s,
        exposed_s=exposed_s,
        hidden_s=communication_s - exposed_s,
        waiting_s=waiting_s,
        contention_s=0.0,
    )
    return replace(point, terms=seen)


def waiting_of(points: Sequence[ScalePoint]) -> Array | None:
    """Measured waiting, s, shape (P,); None where a point does not know it."""
    known = [point.terms.waiting_s for point in points if point.terms]
    return np.array(known) if len(known) == len(points) else None


def fit_waiting(points: Sequence[ScalePoint], waiting_s: Array, off: Array) -> WaitingFit:
    """The waiting of several sets of times.

    Args:
        off: each set's times over the measured ones, shape (B, P).
    """
    ranks, last = ranks_of(points), points[-1]
    together = ranks > 1
    later, here = last.lateness.get(thresholds.FURTHEST_BLOCKS), last.lateness.get(1)
    if later is None or here is None or here.value_s <= 0 or waiting_s[-1] <= 0:
        return _power(ranks[together], waiting_s[together], off[:, together])
    log_growth = np.log(max(later.value_s, here.value_s) / here.value_s) / np.log(thresholds.FURTHEST_BLOCKS)
    growth = np.full(len(off), float(np.clip(log_growth, 0, 1)))
    return WaitingFit(waiting_s[-1] * off[:, -1] / last.ranks**growth, growth)


def fit_beside_waiting(model: ScalingModel, points: Sequence[ScalePoint], steps_s: Array) -> FittedModel:
    """A model of throughputs, fitted without the waiting where the points know it."""
    waiting_s = waiting_of(points)
    if waiting_s is None:
        return model.fit(points, steps_s)
    off = steps_s / steps_of(points)
    left = steps_s - waiting_s * off
    return BesideWaiting(model.fit(points, left), fit_waiting(points, waiting_s, off))


def _power(ranks: Array, values: Array, off: Array) -> WaitingFit:
    """A power law through values > 0; the exponent stays in 0..1."""
    known = values > 0
    if not known.any():
        return WaitingFit(np.zeros(len(off)), np.zeros(len(off)))
    logs = np.log(values[known] * off[:, known])
    distance = np.log(ranks[known]) - np.log(ranks[known]).mean()
    width = float((distance**2).sum())
    exponent = (logs @ distance) / width if width > 0 else np.zeros(len(off))
    exponent = np.clip(exponent, 0, 1)
    return WaitingFit(np.exp(logs.mean(axis=1) - exponent * np.log(ranks[known]).mean()), exponent)
