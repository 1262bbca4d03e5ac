"""Sums of known shapes with weights that are not negative. In: shapes and times. Out: the weights, fitted on logs.

Amdahl's law, the USL, the power law at a given exponent and the structural terms are all such sums: time grows by
parts, and no part is negative. Fitting logs makes every scale count alike, as relative errors do. The weights are
found exactly: all subsets of at most four shapes are tried, and Gauss-Newton steps turn plain into log residuals.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_GAUSS_NEWTON_STEPS = 4
_TINY = 1e-12
# Keeps the normal equations solvable where two shapes are alike; far below any error of measurement.
_RIDGE = 1e-12


def fit_nonnegative(shapes: Array, times: Array) -> Array:
    """Weights of the shapes, all >= 0, with the least sum of squared log residuals.

    Args:
        shapes: value of each shape at each point, >= 0, shape (P, K) for all sets or (B, P, K), K <= 5.
        times: positive times, several sets at once, shape (B, P).

    Returns:
        Weights, shape (B, K); shapes that would need a negative weight have 0.
    """
    of_set = np.broadcast_to(shapes, (len(times), *shapes.shape[-2:]))
    scale = np.maximum(of_set.max(axis=1, keepdims=True), _TINY)
    unit = of_set / scale
    model = times
    weights = np.zeros(scale.shape)
    for _ in range(_GAUSS_NEWTON_STEPS):
        # log(new) is about log(model) + new / model - 1, which is linear in the weights.
        weights = _best_subset(unit / model[:, :, None], 1 + np.log(times / model))[:, None, :]
        model = np.maximum((unit * weights).sum(axis=2), _TINY * times)
    result: Array = (weights / scale)[:, 0, :]
    return result


def log_error(times: Array, model: Array) -> Array:
    """Root mean square of the log residuals of each set, shape (B,)."""
    result: Array = np.sqrt(np.mean(np.log(times / model) ** 2, axis=-1))
    return result


def _best_subset(design: Array, target: Array) -> Array:
    sets, _, count = design.shape
    best = np.zeros((sets, count))
    least = np.full(sets, np.inf)
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            part = design[:, :, chosen]
            normal = part.transpose(0, 2, 1) @ part
            ridge = _RIDGE * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(size)
            found = np.linalg.solve(normal + ridge, (part * target[:, :, None]).sum(axis=1)[:, :, None])
            residual = ((part @ found)[:, :, 0] - target) ** 2
            squares = np.where((found[:, :, 0] >= 0).all(axis=1), residual.sum(axis=1), np.inf)
            # A larger subset must earn its place: equal residuals keep the smaller one.
            better = squares < least * (1 - 1e-9) - 1e-15
            least = np.where(better, squares, least)
            best[better] = 0
            best[np.ix_(better, np.array(chosen))] = found[better, :, 0]
    return best
