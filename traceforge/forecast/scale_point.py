"""One measured scale. In: numbers of a run, or of a line of a table. Out: `ScalePoint`, what every model is fitted to.

Times are per rank and iteration: `step_s` is ranks over throughput, whatever the throughput counts. Under one batch
per rank it is the time of an iteration over the samples that a rank handles in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class StepTerms:
    """Where an iteration's time goes, mean over ranks and iterations, s.

    Attributes:
        local_s: compute, copies, input, runtime and idle time.
        exposed_s: communication after the last arrival that no compute hides.
        hidden_s: communication that compute hides.
        waiting_s: until the last rank arrives.
        contention_s: the part of the communication that spread of arrivals adds; 0 where it was not measured.
    """

    local_s: float
    exposed_s: float
    hidden_s: float
    waiting_s: float
    contention_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Lateness:
    """Own time of the slowest rank above that of the mean rank, with its bootstrap interval, s."""

    value_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class ScalePoint:
    """Throughput at one number of ranks.

    Attributes:
        name: the run, or the line of the file.
        ranks: ranks (or nodes, if that is what the user counts by).
        throughput: samples a second, or iterations a second times ranks where the batch is not known.
        error: standard error of the throughput, relative; None where it is not known.
        cv: standard deviation over mean of the iteration time; None where it is not known.
        terms: where the time goes; None where only the throughput is known.
        facts: what must be equal for two points to lie on one curve, by field; absent where it is not known.
        lateness: of the slowest rank, by multiple of these ranks (1, 2, 4), from order statistics of this run alone;
            empty where it was not measured.
    """

    name: str
    ranks: int
    throughput: float
    error: float | None = None
    cv: float | None = None
    terms: StepTerms | None = None
    facts: dict[str, str | float] = field(default_factory=dict)
    lateness: Mapping[int, Lateness] = field(default_factory=dict)

    @property
    def step_s(self) -> float:
        """Ranks over throughput."""
        return self.ranks / self.throughput


def ranks_of(points: Sequence[ScalePoint]) -> Array:
    """Numbers of ranks, shape (P,)."""
    return np.array([point.ranks for point in points], dtype=np.float64)


def steps_of(points: Sequence[ScalePoint]) -> Array:
    """Ranks over throughput, shape (P,)."""
    return np.array([point.step_s for point in points])


def merged(points: Sequence[ScalePoint]) -> list[ScalePoint]:
    """Points by ascending number of ranks, those at one scale as their geometric mean.

    Terms and facts are those of the first; where two runs at one scale differ more than their errors say, the error
    is widened to half of their distance.
    """
    result = []
    for ranks in sorted({point.ranks for point in points}):
        same = [point for point in points if point.ranks == ranks]
        if len(same) == 1:
            result.append(same[0])
            continue
        logs = np.log([point.throughput for point in same])
        known = [point.error for point in same if point.error is not None]
        error = max([float(np.ptp(logs)) / 2, *known])
        variations = [point.cv for point in same if point.cv is not None]
        cv = float(np.mean(variations)) if variations else None
        name = ", ".join(point.name for point in same)
        first = same[0]
        result.append(
            ScalePoint(name, ranks, float(np.exp(logs.mean())), error, cv, first.terms, first.facts, first.lateness)
        )
    return result
