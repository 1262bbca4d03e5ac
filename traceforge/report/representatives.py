"""Iterations worth a look, and a lasting change of their time. In: durations. Out: `Representative`, `LastingChange`.

The change is the split of the run into two parts whose means differ most against their scatter. A single spike is no
change: each part must hold three iterations, and the difference must stand clear of the scatter around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from traceforge.report.job import Iteration
from traceforge.thresholds import report as thresholds


@dataclass(frozen=True, slots=True)
class LastingChange:
    """From `first` on, iterations take `after_ns` instead of `before_ns` on average."""

    first: Iteration
    before_ns: float
    after_ns: float


@dataclass(frozen=True, slots=True)
class Representative:
    """An iteration and why it was chosen; those that stand for all others have no reason."""

    iteration: Iteration
    reason: str = ""


def lasting_change(iterations: Sequence[Iteration]) -> LastingChange | None:
    """The clearest lasting change of iteration time, or None where the run is steady."""
    values = np.array([iteration.duration_ns for iteration in iterations], dtype=float)
    shortest, size = round(thresholds.LEAST_ITERATIONS_OF_A_LEVEL), len(values)
    if size < 2 * shortest:
        return None
    splits = np.arange(shortest, size - shortest + 1)
    sums = values.cumsum()[splits - 1]
    befores, afters = sums / splits, (values.sum() - sums) / (size - splits)
    best = int(np.argmax((befores - afters) ** 2 * splits * (size - splits)))
    split, before_ns, after_ns = int(splits[best]), float(befores[best]), float(afters[best])
    within = ((values[:split] - before_ns) ** 2).sum() + ((values[split:] - after_ns) ** 2).sum()
    error_ns = float(np.sqrt(within / (size - 2) * (1 / split + 1 / (size - split))))
    gap_ns = abs(after_ns - before_ns)
    if gap_ns <= thresholds.CLEAR_CHANGE_ERRORS * error_ns or gap_ns < thresholds.LEAST_CHANGE_SHARE * before_ns:
        return None
    return LastingChange(iterations[split], before_ns, after_ns)


def normal_iteration(iterations: Sequence[Iteration], slow: tuple[int, int] | None) -> Iteration:
    """The iteration to compare a slow one with: of median time among those outside of the slow ones, if there are any.

    Args:
        slow: the first and the last slow iteration; None where none is known.
    """
    others = [one for one in iterations if slow is None or not slow[0] <= one.number <= slow[1]]
    return median_iteration(others or iterations)


def median_iteration(iterations: Sequence[Iteration]) -> Iteration:
    """The iteration whose duration is closest to the median; the first of several."""
    middle_ns = median(iteration.duration_ns for iteration in iterations)
    return min(iterations, key=lambda one: (abs(one.duration_ns - middle_ns), one.number))


def worst_iteration(iterations: Sequence[Iteration]) -> Iteration:
    """The longest iteration; the first of several."""
    return max(iterations, key=lambda one: (one.duration_ns, -one.number))


def representatives(iterations: Sequence[Iteration]) -> list[Representative]:
    """The median, the worst and the first iteration after the largest change; each iteration once."""
    if len(iterations) < 2:
        return [Representative(iteration) for iteration in iterations]
    change = lasting_change(iterations)
    chosen = [(median_iteration(iterations), "median"), (worst_iteration(iterations), "worst")]
    if change:
        chosen.append((change.first, "first after the largest change"))
    reasons: dict[Iteration, list[str]] = {}
    for iteration, reason in chosen:
        reasons.setdefault(iteration, []).append(reason)
    return [Representative(iteration, " and ".join(texts)) for iteration, texts in reasons.items()]


def drawn_iterations(iterations: Sequence[Iteration], most: int) -> list[Representative]:
    """The iterations that can be looked at one by one: those worth a look first, then the others in order.

    Beyond `most` the others are cut into as many runs of neighbours, and the longest of each stands for it.
    """
    chosen = representatives(iterations)
    per_picture = -(-len(iterations) // most) if iterations else 1
    runs = [iterations[first : first + per_picture] for first in range(0, len(iterations), per_picture)]
    known = {representative.iteration for representative in chosen}
    longest = [worst_iteration(run) for run in runs]
    return [*chosen, *(Representative(iteration) for iteration in longest if iteration not in known)]
