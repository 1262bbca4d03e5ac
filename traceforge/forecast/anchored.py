"""A curve through its own measured points. In: a fitted model and the points. Out: a fitted model that meets them.

What a point is off from the model beyond its own error is kept as a factor; between two points the factor goes from
one to the other with the logarithm of the ranks, and beyond them it stays. A forecast so starts from what was measured
at the largest scale, and the model only says how the time grows from there.
"""

from dataclasses import dataclass

import numpy as np

from traceforge.forecast.model import FittedModel
from traceforge.forecast.scale_point import Array


@dataclass(frozen=True, slots=True)
class AnchoredFit:
    """A fitted model that meets points.

    Attributes:
        log_ranks: of the points, ascending, shape (P,).
        log_factors: time over that of the model, shape (B, P).
    """

    fit: FittedModel
    log_ranks: Array
    log_factors: Array

    def step_s(self, ranks: Array) -> Array:
        """See `traceforge.forecast.model.FittedModel`."""
        result: Array = self.fit.step_s(ranks) * np.exp(self._log_factor(ranks))
        return result

    def parameters(self) -> dict[str, float]:
        """See `traceforge.forecast.model.FittedModel`."""
        return self.fit.parameters()

    def parts(self, ranks: Array) -> dict[str, Array]:
        """See `traceforge.forecast.model.FittedModel`."""
        factor = np.exp(self._log_factor(ranks)[0])
        return {name: factor * part for name, part in self.fit.parts(ranks).items()}

    def _log_factor(self, ranks: Array) -> Array:
        at = np.log(ranks)
        return np.stack([np.interp(at, self.log_ranks, row) for row in self.log_factors])


def anchored(fit: FittedModel, ranks: Array, steps_s: Array, errors: Array) -> AnchoredFit:
    """A fit made to meet measured times.

    Args:
        ranks: of the points, ascending, shape (P,).
        steps_s: measured times, shape (B, P).
        errors: relative error of each point, shape (P,): a distance within it is taken for noise.
    """
    off = np.log(steps_s / fit.step_s(ranks))
    kept = off**2 / (off**2 + errors**2)
    return AnchoredFit(fit, np.log(ranks), off * kept)
