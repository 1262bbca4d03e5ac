"""Amdahl's law (AFIPS 1967): a share of the work does not spread over ranks.

    time per rank = t1 * (1 + sigma * (N - 1))

The most hopeful of the models: throughput rises for ever, towards 1 / (t1 * sigma).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceforge.forecast.fitting import Array, fit_nonnegative
from traceforge.forecast.model import SumFit
from traceforge.forecast.scale_point import ScalePoint, ranks_of


@dataclass(frozen=True, slots=True)
class Amdahl:
    """One serial share."""

    name: str = "amdahl"

    def points_needed(self, points: Sequence[ScalePoint]) -> int:
        """Two parameters."""
        return 2

    def fit(self, points: Sequence[ScalePoint], steps_s: Array) -> SumFit:
        """See `traceforge.forecast.model.Model`."""
        weights = fit_nonnegative(_shapes(ranks_of(points)), steps_s)
        parallel, serial = weights[0]
        share = serial / parallel if parallel > 0 else float("inf")
        return SumFit(("work", "serial"), weights, _shapes, {"sigma": float(share)})


def _shapes(ranks: Array) -> Array:
    return np.stack([np.ones_like(ranks), ranks - 1], axis=1)


MODEL = Amdahl()
