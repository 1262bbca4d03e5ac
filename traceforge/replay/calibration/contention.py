"""Is work slower while something else runs beside it? In: pieces of work as arrays. Out: a slow-down by each.

    duration = own level + sum over things of (eta / (1 + eta)) x time beside the thing + whatever else

The same piece of the program (a kernel by name and ordinal) is compared with itself, on the same rank, in iterations
and on ranks where it happens to run beside something and where it does not; what makes all work of a rank in an
iteration slow, or a rank slow at one kind of work, cancels. A long piece meets more by being long, so that the time
beside a thing is replaced by what it would have been had the piece taken its usual time, in which its length has no
part (instrumental variables). Intervals are over blocks of iterations (`measurement`).
Not handled: slow-downs that last beyond their cause.
"""

from dataclasses import dataclass, replace

import numpy as np

from traceforge.replay.calibration.measurement import (
    Amounts,
    Measurement,
    Numbers,
    block_of,
    first_stage,
    measured,
    refused,
    sums,
)
from traceforge.thresholds import replay as thresholds

_SWEEPS = 10
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class WorkPieces:
    """Pieces of work, one row each.

    Attributes:
        iteration: iteration number.
        rank: rank.
        name: number of the name.
        place: number of the piece of the program: name and ordinal within the rank's iteration.
        duration_ns: how long it took, > 0.
        beside_ns: time of it during which each thing went on, shape (rows, things); k-fold where k ranks do it at once.
        planned_ns: the same from its start on for as long as the piece usually takes, shape (rows, things).
        longest_extra_ns: time that a piece may take beyond its usual one before it counts as an outlier; about that
            for which a host thread can be put off its core.
    """

    iteration: Numbers
    rank: Numbers
    name: Numbers
    place: Numbers
    duration_ns: Amounts
    beside_ns: Amounts
    planned_ns: Amounts
    longest_extra_ns: float = 0.0


def slow_downs(pieces: WorkPieces, things: tuple[str, ...]) -> list[Measurement]:
    """Slow-down by each thing; `things` says in words what it is."""
    iterations, count = len(np.unique(pieces.iteration)), len(pieces.duration_ns)
    if iterations < thresholds.LEAST_ITERATIONS:
        reason = f"Too few iterations hold such work: {iterations}, and {thresholds.LEAST_ITERATIONS} are needed."
        return [refused(count, reason) for _ in things]
    effects = [pieces.place, _paired(pieces.rank, pieces.name), _paired(pieces.rank, pieces.iteration)]
    alone = pieces.duration_ns
    for _ in range(_ROUNDS):
        # Pieces are compared on the scale of their time alone, which is known once the slow-down is.
        fit = _fit(pieces, alone, effects)
        alone = np.maximum(pieces.duration_ns - pieces.beside_ns @ fit.slopes, 0)
    return [fit.measurement(number, thing) for number, thing in enumerate(things)]


def _fit(pieces: WorkPieces, alone_ns: Amounts, effects: list[Numbers]) -> "_Regression":
    level = _medians(pieces.place, alone_ns)
    held = np.minimum(pieces.duration_ns, np.maximum(thresholds.LONGEST_WORK * level, level + pieces.longest_extra_ns))
    beside = pieces.beside_ns * (held / pieces.duration_ns)[:, None]
    plain = np.column_stack([held, beside, pieces.planned_ns]) / level[:, None]
    # Time lost is what counts, so that a piece weighs by its length, and its noise with it.
    weight = level**2
    centred = _without_effects(plain, effects, weight) * level[:, None]
    things = beside.shape[1]
    return _Regression(centred[:, 0], centred[:, 1 : things + 1], centred[:, things + 1 :], block_of(pieces.iteration))


class _Regression:
    """Instrumental regression of durations on times beside things, all things at once."""

    def __init__(self, duration: Amounts, beside: Amounts, planned: Amounts, block: Numbers) -> None:
        self._beside, self._planned, self._block, self._count = beside, planned, block, len(duration)
        self.strength = [self._first_stage(number) for number in range(beside.shape[1])]
        self._strong = [number for number, f in enumerate(self.strength) if f >= thresholds.LEAST_F]
        self.slopes = np.zeros(beside.shape[1])
        if self._strong:
            chosen, instruments = beside[:, self._strong], planned[:, self._strong]
            weights = np.linalg.pinv(instruments.T @ chosen) @ instruments.T
            self.slopes[self._strong] = weights @ duration
            self._errors = sums(weights.T * (duration - beside @ self.slopes)[:, None], block)

    def measurement(self, number: int, thing: str) -> Measurement:
        """What was found of one thing."""
        strength = self.strength[number]
        if number not in self._strong:
            reason = f"Hardly any work runs now with and now without {thing} beside it."
            return refused(self._count, reason, f_statistic=strength)
        at = self._strong.index(number)
        blocks = len(self._errors)
        error = float(np.sqrt(np.sum(self._errors[:, at] ** 2) * blocks / (blocks - 1)))
        found = measured(float(self.slopes[number]), error, blocks, self._count, _slow_down)
        if found.low is None or found.high is None or not found.high - found.low < thresholds.MOST_WIDTH:
            reason = "The interval is wider than 1 to either side; nothing follows from it."
            return refused(self._count, reason, f_statistic=strength)
        return replace(found, f_statistic=strength)

    def _first_stage(self, number: int) -> float:
        """F of the time beside a thing on the time planned beside it, what the other things say taken out."""
        others = np.delete(self._planned, number, axis=1)
        own = self._planned[:, number]
        own = own - others @ (np.linalg.pinv(others) @ own)
        return first_stage(self._beside[:, number], own, self._block)


def _slow_down(share: float) -> float:
    """Extra time over the time alone, from the share of slowed time that is extra."""
    return share / (1 - share) if share < 1 else float("inf")


def _paired(first: Numbers, second: Numbers) -> Numbers:
    _, one = np.unique(first, return_inverse=True)
    _, other = np.unique(second, return_inverse=True)
    result: Numbers = one * (int(other.max(initial=0)) + 1) + other
    return result


def _without_effects(columns: Amounts, effects: list[Numbers], weight: Amounts) -> Amounts:
    """Columns less the weighted levels of several groupings at once, by sweeping one after another."""
    result = np.array(columns, order="F")
    grouped = []
    for effect in effects:
        _, place = np.unique(effect, return_inverse=True)
        grouped.append((place, np.bincount(place, weight)))
    for _ in range(_SWEEPS):
        for place, size in grouped:
            for number in range(result.shape[1]):  # in its place: of a million pieces each copy of all is large
                result[:, number] -= (np.bincount(place, weight * result[:, number]) / size)[place]
    return result


def _medians(place: Numbers, values: Amounts) -> Amounts:
    """Median of each row's place."""
    order = np.lexsort((values, place))
    _, first, size = np.unique(place[order], return_index=True, return_counts=True)
    middle = values[order][first + size // 2]
    _, at = np.unique(place, return_inverse=True)
    result: Amounts = np.maximum(middle, 1.0)[at]
    return result
