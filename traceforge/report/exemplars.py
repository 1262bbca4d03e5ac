"""Iterations worth a look, and the largest change of the run. In: iteration durations. Out: `Exemplar`s, `Change`.

The change is the split of the run into two parts whose means differ most against their scatter. A single spike is no
change: each part must hold three iterations, and the difference must stand clear of the scatter around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt

from traceforge.report.job import Iteration, quantile

_SHORTEST_PART = 3
_CLEAR_SCORE = 4.5  # in standard errors; the search over all splits makes 3 too common
_WORTH_TELLING = 0.02


@dataclass(frozen=True, slots=True)
class Change:
    """From `first` on, iterations take `after_ns` instead of `before_ns` on average."""

    first: Iteration
    before_ns: float
    after_ns: float


@dataclass(frozen=True, slots=True)
class Exemplar:
    """An iteration and why it was chosen; those that stand for all others have no reason."""

    iteration: Iteration
    reason: str = ""


def largest_change(iterations: Sequence[Iteration]) -> Change | None:
    """The clearest lasting change of iteration time, or None where the run is steady."""
    values = [float(iteration.duration_ns) for iteration in iterations]
    size = len(values)
    if size < 2 * _SHORTEST_PART:
        return None
    sums = [0.0, *accumulate(values)]
    squares = [0.0, *accumulate(value * value for value in values)]
    splits = range(_SHORTEST_PART, size - _SHORTEST_PART + 1)
    best = max(splits, key=lambda split: _gap(sums, split, size) ** 2 * split * (size - split))
    before_ns, after_ns = sums[best] / best, (sums[size] - sums[best]) / (size - best)
    within = squares[size] - best * before_ns**2 - (size - best) * after_ns**2
    error_ns = sqrt(max(within, 0.0) / (size - 2) * (1 / best + 1 / (size - best)))
    gap_ns = abs(after_ns - before_ns)
    if gap_ns <= _CLEAR_SCORE * error_ns or gap_ns < _WORTH_TELLING * before_ns:
        return None
    return Change(iterations[best], before_ns, after_ns)


def _gap(sums: Sequence[float], split: int, size: int) -> float:
    return sums[split] / split - (sums[size] - sums[split]) / (size - split)


def median_iteration(iterations: Sequence[Iteration]) -> Iteration:
    """The iteration whose duration is closest to the median; the first of several."""
    middle_ns = quantile([iteration.duration_ns for iteration in iterations], 0.5)
    return min(iterations, key=lambda one: (abs(one.duration_ns - middle_ns), one.number))


def worst_iteration(iterations: Sequence[Iteration]) -> Iteration:
    """The longest iteration; the first of several."""
    return max(iterations, key=lambda one: (one.duration_ns, -one.number))


def exemplars(iterations: Sequence[Iteration]) -> list[Exemplar]:
    """The median, the worst and the first iteration after the largest change; each iteration once."""
    if not iterations:
        return []
    change = largest_change(iterations)
    chosen = [(median_iteration(iterations), "median"), (worst_iteration(iterations), "worst")]
    if change:
        chosen.append((change.first, "first after the largest change"))
    reasons: dict[Iteration, list[str]] = {}
    for iteration, reason in chosen:
        reasons.setdefault(iteration, []).append(reason)
    return [Exemplar(iteration, " and ".join(texts)) for iteration, texts in reasons.items()]


def pictured(iterations: Sequence[Iteration], most: int) -> list[Exemplar]:
    """The iterations that can be looked at one by one: those worth a look first, then the others in order.

    Beyond `most` the others are cut into as many runs of neighbours, and the longest of each stands for it.
    """
    chosen = exemplars(iterations)
    per_picture = -(-len(iterations) // most) if iterations else 1
    runs = [iterations[first : first + per_picture] for first in range(0, len(iterations), per_picture)]
    known = {exemplar.iteration for exemplar in chosen}
    longest = [worst_iteration(run) for run in runs]
    return [*chosen, *(Exemplar(iteration) for iteration in longest if iteration not in known)]


def nearest_picture(pictures: Sequence[Exemplar], first: int, last: int) -> int | None:
    """Place of the picture for the iterations from `first` to `last`: the longest of them, else the nearest one."""
    if not pictures:
        return None
    within = [place for place, one in enumerate(pictures) if first <= one.iteration.number <= last]
    if within:
        return max(within, key=lambda place: (pictures[place].iteration.duration_ns, -place))
    return min(
        range(len(pictures)), key=lambda place: (abs(2 * pictures[place].iteration.number - first - last), place)
    )
