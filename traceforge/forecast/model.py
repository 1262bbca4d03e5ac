"""Models of how throughput scales, found by listing their folder. In: points. Out: times at other numbers of ranks.

A model is one file in `models/` that exposes `MODEL`. It is fitted to several sets of times at once, so that a
bootstrap is one call. A model that is a sum of shapes is a `SumModel`; any other keeps the protocol by itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import PluginError
from traceforge.forecast.fitting import fit_nonnegative
from traceforge.forecast.scale_point import ScalePoint, ranks_of
from traceforge.registry import discover

Array = NDArray[np.float64]
Shapes = Callable[[Array], Array]
"""Makes the shapes of a sum, (Q, K), for numbers of ranks of shape (Q,)."""


class FittedModel(Protocol):
    """A model with its parameters."""

    def step_s(self, ranks: Array) -> Array:
        """Ranks over throughput at each number of ranks, shape (B, Q) for ranks of shape (Q,)."""

    def parameters(self) -> dict[str, float]:
        """The first set's parameters by name, as they are printed."""

    def parts(self, ranks: Array) -> dict[str, Array]:
        """The first set's time by part at each number of ranks, shape (Q,); the parts add up to `step_s`."""


class ScalingModel(Protocol):
    """A way in which throughput may depend on the number of ranks."""

    name: str

    def points_needed(self, points: Sequence[ScalePoint]) -> int:
        """Scales below which the model cannot be fitted to points such as these."""

    def fit(self, points: Sequence[ScalePoint], steps_s: Array) -> FittedModel:
        """The model at these points' ranks, fitted to several sets of ranks over throughput, shape (B, P)."""


@dataclass(frozen=True, slots=True)
class SumFit:
    """A fit that is a sum of parts: the shapes times their weights.

    Attributes:
        names: parts of the time, one a shape; equal names are one part.
        weights: shape (B, K).
        printed: parameters as they are printed.
    """

    names: tuple[str, ...]
    weights: Array
    shapes: Shapes
    printed: Mapping[str, float]

    def step_s(self, ranks: Array) -> Array:
        """See `FittedModel`."""
        result: Array = self.weights @ self.shapes(ranks).T
        return result

    def parameters(self) -> dict[str, float]:
        """See `FittedModel`."""
        return dict(self.printed)

    def parts(self, ranks: Array) -> dict[str, Array]:
        """See `FittedModel`."""
        by_shape = self.weights[0][:, None] * self.shapes(ranks).T
        return {
            name: sum((row for other, row in zip(self.names, by_shape, strict=True) if other == name), np.zeros(()))
            for name in dict.fromkeys(self.names)
        }


@dataclass(frozen=True, slots=True)
class SumModel:
    """A model whose time per rank is a sum of shapes with weights that are not negative; it needs one scale a shape.

    Attributes:
        parts: names of the parts of the time, one a shape.
        parameters: the parameters to print, from the weights of shape (K,).
    """

    name: str
    parts: tuple[str, ...]
    shapes: Shapes
    parameters: Callable[[Array], Mapping[str, float]]

    def points_needed(self, points: Sequence[ScalePoint]) -> int:
        """As many as there are weights."""
        return len(self.parts)

    def fit(self, points: Sequence[ScalePoint], steps_s: Array) -> SumFit:
        """See `ScalingModel`."""
        weights = fit_nonnegative(self.shapes(ranks_of(points)), steps_s)
        return SumFit(self.parts, weights, self.shapes, self.parameters(weights[0]))


def models() -> Mapping[str, ScalingModel]:
    """All models by name.

    Raises:
        PluginError: a file of `models/` exposes something else.
    """
    found: dict[str, ScalingModel] = {}
    for name, plugin in discover("traceforge.forecast.models", "MODEL").items():
        if not (hasattr(plugin, "fit") and getattr(plugin, "name", None) == name):
            raise PluginError("MODEL is no model of this name", where=f"traceforge.forecast.models.{name}")
        found[name] = plugin  # type: ignore[assignment]  # checked by its name and method
    return found
