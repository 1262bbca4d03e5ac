"""Which scale to measure next. In: an ensemble. Out: how far each candidate narrows the furthest band.

A measurement rules models out. For each candidate scale, each model of the band is taken for the truth in turn; those
that would show the same there within the noise stay, and their spread at the furthest scale is what is left. It is
averaged with the models' weights. Parameters are not fitted again, so that a point between others adds little.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traceforge.forecast.ensemble import Ensemble
from traceforge.thresholds import forecast as thresholds

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scale that could be measured.

    Attributes:
        ranks: its number of ranks.
        width: expected spread of the models at the furthest scale, largest over smallest throughput.
        width_now: the same without the measurement.
    """

    ranks: int
    width: float
    width_now: float


def next_measurements(ensemble: Ensemble) -> list[Candidate]:
    """Candidates by what they leave, best first: between the measured scales, and beyond; none without a band.

    Of two that leave as much the smaller, cheaper one comes first.
    """
    measured = [point.ranks for point in ensemble.points]
    if len(measured) < thresholds.LEAST_SCALES:
        return []
    between = [round((a * b) ** 0.5) for a, b in pairwise(measured)]
    beyond = [round(measured[-1] * factor) for factor in (1.5, 2)]
    at_furthest = _logs(ensemble, ensemble.furthest)
    now = float(np.exp(np.ptp(at_furthest)))
    weights = np.array([member.weight for member in ensemble.used])
    found = []
    for ranks in sorted({*between, *beyond} - set(measured)):
        here = _logs(ensemble, ranks)
        alike = np.abs(here[:, None] - here[None, :]) < thresholds.MODELS_APART * ensemble.noise
        left = [float(np.ptp(at_furthest[same])) for same in alike]
        found.append(Candidate(ranks, float(np.exp(weights @ np.array(left))), now))
    return sorted(found, key=lambda one: (round(one.width, 3), one.ranks))


def _logs(ensemble: Ensemble, ranks: int) -> Array:
    """Log of each member's time per rank, shape (members,)."""
    at = np.array([float(ranks)])
    return np.log([float(member.fit.step_s(at)[0, 0]) for member in ensemble.used])
