"""Amdahl's law (AFIPS 1967): a share of the work does not spread over ranks.

    time per rank = t1 * (1 + sigma * (N - 1))

The most optimistic of the models: throughput rises for ever, towards 1 / (t1 * sigma).
"""

import numpy as np

from traceforge.forecast.fitting import Array
from traceforge.forecast.model import SumModel


def _shapes(ranks: Array) -> Array:
    return np.stack([np.ones_like(ranks), ranks - 1], axis=1)


def _parameters(weights: Array) -> dict[str, float]:
    parallel, serial = weights
    return {"sigma": float(serial / parallel) if parallel > 0 else float("inf")}


MODEL = SumModel("amdahl", ("work", "serial"), _shapes, _parameters)
