"""The Universal Scalability Law (Gunther 1993): contention as in Amdahl's law, and a cost of every pair of ranks.

    time per rank = t1 * (1 + sigma * (N - 1) + kappa * N * (N - 1))

The most pessimistic of the models: throughput has a peak at sqrt((1 - sigma) / kappa).
"""

import numpy as np

from traceforge.forecast.fitting import Array
from traceforge.forecast.model import SumModel


def _shapes(ranks: Array) -> Array:
    return np.stack([np.ones_like(ranks), ranks - 1, ranks * (ranks - 1)], axis=1)


def _parameters(weights: Array) -> dict[str, float]:
    parallel, contention, coherency = weights
    base = parallel if parallel > 0 else float("nan")
    return {"sigma": float(contention / base), "kappa": float(coherency / base)}


MODEL = SumModel("usl", ("work", "contention", "coherency"), _shapes, _parameters)
