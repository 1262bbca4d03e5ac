"""The structural model: compute, exposed communication, straggling and contention, each with its own growth.

    time per rank = local + exposed(alpha * steps(N) + beta * bytes * factor(N)) + waiting(N) + contention(N)

Where the points carry measured terms, each term is fitted by itself. Local work is constant. Communication follows the
alpha-beta model of its algorithm; compute hides either a share of it or up to some time, whichever fits the measured
scales better: the last bucket of gradients is always exposed, a long computation hides all. Waiting grows as a power of
N between none and linear, and contention (extra transfer by spread of arrivals, where calibration could measure it)
grows with it. Where only throughputs are known, the same shapes are fitted to them, and the spread of the steps (their
variation times their length) stands for straggling; a spread that grows faster than linearly is taken as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceforge.forecast.fitting import Array, fit_nonnegative
from traceforge.forecast.model import FittedModel, SumFit
from traceforge.forecast.regime import of_largest
from traceforge.forecast.scale_point import ScalePoint, StepTerms, ranks_of, steps_of
from traceforge.forecast.waiting import fit_waiting
from traceforge.replay.all_reduce import Algorithm, bytes_factor, steps

_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Groups:
    """Members of the groups that communicate: `members_of_one` times a power of the ranks.

    Attributes:
        growth: 1 where groups grow with the job, as data-parallel ones do; 0 where they stay, as shards of a host.
    """

    members_of_one: float = 1.0
    growth: float = 1.0

    def members(self, ranks: Array) -> Array:
        """Members of a group at each number of ranks, at most all."""
        result: Array = np.clip(self.members_of_one * ranks**self.growth, 1, ranks)
        return result


@dataclass(frozen=True, slots=True)
class TermFit:
    """Terms fitted one by one; shape (B,) unless stated otherwise.

    Attributes:
        groups: how many ranks communicate together.
        latency_s, byte_s: weights of the algorithm's steps and bytes.
        hidden_share: share of the communication that compute hides; 0 where it hides up to `overlap_s` instead.
        spread_s: waiting at one rank, growing with exponent `growth`.
        contention: contention over waiting.
        calibration: whole over the sum of the parts.
    """

    algorithm: Algorithm
    groups: Groups
    local_s: Array
    latency_s: Array
    byte_s: Array
    hidden_share: Array
    overlap_s: Array
    spread_s: Array
    growth: Array
    contention: Array
    calibration: Array

    def step_s(self, ranks: Array) -> Array:
        """See `traceforge.forecast.model.FittedModel`."""
        result: Array = self.calibration[:, None] * self._parts(ranks).sum(axis=0)
        return result

    def parts(self, ranks: Array) -> dict[str, Array]:
        """See `traceforge.forecast.model.FittedModel`."""
        names = ("work", "exposed_communication", "straggling", "contention")
        return dict(zip(names, self.calibration[0] * self._parts(ranks)[:, 0], strict=True))

    def parameters(self) -> dict[str, float]:
        """See `traceforge.forecast.model.FittedModel`."""
        values = {"local_s": self.local_s, "latency_s": self.latency_s, "byte_s": self.byte_s}
        values |= {"hidden_share": self.hidden_share, "overlap_s": self.overlap_s, "growth": self.growth}
        return {name: float(value[0]) for name, value in values.items()}

    def _parts(self, ranks: Array) -> Array:
        members = self.groups.members(ranks)
        total = self.latency_s[:, None] * steps(members, self.algorithm)
        total = total + self.byte_s[:, None] * bytes_factor(members, self.algorithm)
        exposed = np.maximum(0, total * (1 - self.hidden_share[:, None]) - self.overlap_s[:, None])
        waiting = self.spread_s[:, None] * ranks[None, :] ** self.growth[:, None] * (ranks > 1)
        local = np.repeat(self.local_s[:, None], len(ranks), axis=1)
        return np.stack([local, exposed, waiting, self.contention[:, None] * waiting])


@dataclass(frozen=True, slots=True)
class Structural:
    """Terms with their own growth."""

    name: str = "structural"

    def points_needed(self, points: Sequence[ScalePoint]) -> int:
        """Two where each term was measured; three where only the throughput was."""
        return 2 if all(point.terms for point in points) else 3

    def fit(self, points: Sequence[ScalePoint], steps_s: Array) -> FittedModel:
        """See `traceforge.forecast.model.ScalingModel`."""
        algorithm: Algorithm = "tree" if points[-1].facts.get("algorithm") == "tree" else "ring"
        terms = [point.terms for point in points if point.terms]
        if len(terms) == len(points):
            return _fit_terms(points, terms, steps_s, algorithm)
        return _fit_throughput(points, steps_s, algorithm)


def _fit_terms(
    points: Sequence[ScalePoint], terms: Sequence[StepTerms], steps_s: Array, algorithm: Algorithm
) -> TermFit:
    ranks = ranks_of(points)
    # A set of times that is off by some share has terms that are off by the same share.
    off = steps_s / steps_of(points)
    together = ranks > 1
    contention = np.array([term.contention_s for term in terms])
    communication = np.array([term.exposed_s + term.hidden_s for term in terms]) - contention
    waiting = np.array([term.waiting_s for term in terms])
    # What stays within a host runs over other links than what the largest scale uses.
    alike = np.isin(ranks, ranks_of(of_largest(points)))
    known = together & (communication > 0) & alike
    groups = _groups([point for point, is_known in zip(points, known, strict=True) if is_known])
    links = _links(groups.members(ranks[known]), communication[known] * off[:, known], algorithm)
    hides = together & alike if (together & alike).any() else together
    share, overlap = hiding(communication[hides], np.array([term.hidden_s for term in terms])[hides])
    straggling = fit_waiting(points, waiting, off)
    one = np.ones(len(steps_s))
    fit = TermFit(
        algorithm=algorithm,
        groups=groups,
        local_s=(np.array([term.local_s for term in terms]) * off).mean(axis=1),
        latency_s=links[:, 0],
        byte_s=links[:, 1],
        hidden_share=one * share,
        overlap_s=one * overlap,
        spread_s=straggling.level_s,
        growth=straggling.growth,
        contention=one * (contention.sum() / max(float(waiting.sum()), _LEAST)),
        calibration=one,
    )
    model = fit.step_s(ranks)[:, alike]
    calibration = np.exp(np.log(steps_s[:, alike] / np.maximum(model, _LEAST)).mean(axis=1))
    return TermFit(**{**{name: getattr(fit, name) for name in TermFit.__slots__}, "calibration": calibration})


def _groups(points: Sequence[ScalePoint]) -> Groups:
    """How groups grow, from the sizes that points state; all ranks where one does not."""
    sizes = [point.facts.get("group_ranks") for point in points]
    known = [float(size) for size in sizes if isinstance(size, int | float) and size > 1]
    if not points or len(known) < len(points):
        return Groups()
    logs, sizes_log = np.log(ranks_of(points)), np.log(known)
    growth = float(np.clip(np.polyfit(logs, sizes_log, 1)[0], 0, 1)) if len(points) > 1 else 1.0
    return Groups(float(np.exp(sizes_log[-1] - growth * logs[-1])), growth)


def _links(members: Array, times_s: Array, algorithm: Algorithm) -> Array:
    """Weights of the algorithm's steps and bytes, shape (B, 2)."""
    sets, count = times_s.shape
    if count == 0:
        return np.zeros((sets, 2))
    shapes = np.stack([steps(members, algorithm), bytes_factor(members, algorithm)], axis=1)
    if count > 1:
        return fit_nonnegative(shapes, times_s)
    # One scale cannot separate them; all bytes is what holds for large messages.
    return np.stack([np.zeros(sets), times_s[:, 0] / shapes[0, 1]], axis=1)


def hiding(total_s: Array, hidden_s: Array) -> tuple[float, float]:
    """How compute hides communication at these scales: as a share of it, or up to a time, s; the other is 0.

    One scale cannot distinguish them; the share is taken, the more cautious one about faster links.
    """
    if not total_s.size or total_s.sum() <= 0:
        return 0.0, 0.0
    share, budget = float(hidden_s.sum() / total_s.sum()), float(hidden_s.mean())
    miss_of_share = float(((share * total_s - hidden_s) ** 2).sum())
    miss_of_budget = float(((np.minimum(budget, total_s) - hidden_s) ** 2).sum())
    return (0.0, budget) if miss_of_budget < miss_of_share else (share, 0.0)


def _fit_throughput(points: Sequence[ScalePoint], steps_s: Array, algorithm: Algorithm) -> SumFit:
    spread = _spread(points)

    def shapes(ranks: Array) -> Array:
        parts = [np.ones_like(ranks), bytes_factor(ranks, algorithm), steps(ranks, algorithm)]
        if spread is not None:
            parts.append(spread[0] * ranks ** spread[1])
        return np.stack(parts, axis=1)

    weights = fit_nonnegative(shapes(ranks_of(points)), steps_s)
    names = ("work", "exposed_communication", "exposed_communication", "straggling")
    printed = dict(zip(("work_s", "byte_s", "latency_s", "straggling"), map(float, weights[0]), strict=False))
    return SumFit(names[: weights.shape[1]], weights, shapes, printed)


def _spread(points: Sequence[ScalePoint]) -> tuple[float, float] | None:
    """Factor and exponent of the standard deviation of the step, s, by ranks; None where fewer than two are known."""
    known = [(point.ranks, point.cv * point.step_s) for point in points if point.cv]
    if len({ranks for ranks, _ in known}) < 2:
        return None
    logs = np.log(np.array(known))
    exponent, factor = np.polyfit(logs[:, 0], logs[:, 1], 1)
    return float(np.exp(factor)), float(max(0.0, exponent))


MODEL = Structural()
