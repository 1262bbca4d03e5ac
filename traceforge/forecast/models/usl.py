"""The Universal Scalability Law (Gunther 1993): contention as in Amdahl's law, and a cost of every pair of ranks.

    time per rank = t1 * (1 + sigma * (N - 1) + kappa * N * (N - 1))

The least hopeful of the models: throughput has a peak at sqrt((1 - sigma) / kappa).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceforge.forecast.fitting import Array, fit_nonnegative
from traceforge.forecast.model import SumFit
from traceforge.forecast.scale_point import ScalePoint, ranks_of


@dataclass(frozen=True, slots=True)
class UniversalScalability:
    """Contention and coherency."""

    name: str = "usl"

    def points_needed(self, points: Sequence[ScalePoint]) -> int:
        """Three parameters."""
        return 3

    def fit(self, points: Sequence[ScalePoint], steps_s: Array) -> SumFit:
        """See `traceforge.forecast.model.Model`."""
        weights = fit_nonnegative(_shapes(ranks_of(points)), steps_s)
        parallel, contention, coherency = weights[0]
        base = parallel if parallel > 0 else float("nan")
        printed = {"sigma": float(contention / base), "kappa": float(coherency / base)}
        return SumFit(("work", "contention", "coherency"), weights, _shapes, printed)


def _shapes(ranks: Array) -> Array:
    return np.stack([np.ones_like(ranks), ranks - 1, ranks * (ranks - 1)], axis=1)


MODEL = UniversalScalability()
