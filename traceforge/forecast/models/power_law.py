"""A power law: work that is the same for every rank, and a cost that grows as a power of the number of ranks.

    time per rank = a + b * N ** gamma,  a, b >= 0, gamma in 0.1 .. 3

The exponent is found on a grid; at each exponent the rest is a sum with weights that are not negative.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceforge.forecast.fitting import Array, fit_nonnegative, log_error
from traceforge.forecast.scale_point import ScalePoint, ranks_of

_EXPONENTS = np.arange(0.1, 3.001, 0.05)


@dataclass(frozen=True, slots=True)
class PowerFit:
    """Constant, factor and exponent of each set, shape (B,) each."""

    constant_s: Array
    factor_s: Array
    exponent: Array

    def step_s(self, ranks: Array) -> Array:
        """See `traceforge.forecast.model.FittedModel`."""
        growth = ranks[None, :] ** self.exponent[:, None]
        result: Array = self.constant_s[:, None] + self.factor_s[:, None] * growth
        return result

    def parameters(self) -> dict[str, float]:
        """See `traceforge.forecast.model.FittedModel`."""
        return {"gamma": float(self.exponent[0])}

    def parts(self, ranks: Array) -> dict[str, Array]:
        """See `traceforge.forecast.model.FittedModel`."""
        growing = self.factor_s[0] * ranks ** self.exponent[0]
        return {"work": np.full_like(ranks, self.constant_s[0]), "growing": growing}


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """Constant and power."""

    name: str = "power_law"

    def points_needed(self, points: Sequence[ScalePoint]) -> int:
        """Three parameters."""
        return 3

    def fit(self, points: Sequence[ScalePoint], steps_s: Array) -> PowerFit:
        """See `traceforge.forecast.model.ScalingModel`."""
        ranks, sets = ranks_of(points), len(steps_s)
        shapes = np.stack([np.broadcast_to(ranks, (len(_EXPONENTS), len(ranks)))] * 2, axis=2).copy()
        shapes[:, :, 0] = 1
        shapes[:, :, 1] **= _EXPONENTS[:, None]
        # Every set at every exponent is a fit of its own; all are done at once.
        each = np.repeat(shapes, sets, axis=0)
        times = np.tile(steps_s, (len(_EXPONENTS), 1))
        weights = fit_nonnegative(each, times)
        error = log_error(times, (each * weights[:, None, :]).sum(axis=2)).reshape(len(_EXPONENTS), sets)
        best = error.argmin(axis=0)
        chosen = weights.reshape(len(_EXPONENTS), sets, 2)[best, np.arange(sets)]
        return PowerFit(chosen[:, 0], chosen[:, 1], _EXPONENTS[best])


MODEL = PowerLaw()
