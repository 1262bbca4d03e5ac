"""The far tail of lateness. In: a sample. Out: a generalised Pareto tail with its interval, or None.

Beyond a few times the measured ranks the slowest rank is slower than any that was seen. Excesses over a high quantile
follow a generalised Pareto distribution (Pickands 1975); its shape says how fast the maximum grows. Fitted by the
estimator of Zhang and Stephens (Technometrics 2009), which needs no start and cannot fail. Where the shape may be 0.5
or more the tail may have no variance: then no number is given.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.stats import percentile_interval
from traceforge.thresholds import forecast as thresholds

Array = NDArray[np.float64]

_DRAWS = 200
_MOST_VALUES = 10_000_000


@dataclass(frozen=True, slots=True)
class Tail:
    """A tail above a threshold; unit of the sample.

    Attributes:
        shape: 0 is exponential, above 0 heavier.
        low_shape, high_shape: its 95 % interval, by drawing whole ranks.
    """

    threshold: float
    scale: float
    shape: float
    low_shape: float
    high_shape: float

    @property
    def is_bounded(self) -> bool:
        """Whether the tail surely has a variance."""
        return self.high_shape < thresholds.HEAVIEST_TAIL

    def slowest(self, ranks: int) -> float:
        """Median of the largest of so many."""
        return self._exceeded(1 - 0.5 ** (1 / ranks), self.shape)

    def slowest_between(self, ranks: int) -> tuple[float, float]:
        """The same at both ends of the shape's interval."""
        chance = 1 - 0.5 ** (1 / ranks)
        return self._exceeded(chance, self.low_shape), self._exceeded(chance, self.high_shape)

    def _exceeded(self, chance: float, shape: float) -> float:
        within = (1 - thresholds.TAIL_QUANTILE) / chance
        growth = np.log(within) if abs(shape) < 1e-6 else (within**shape - 1) / shape
        return self.threshold + self.scale * float(growth)


def fit_tail(sample: Array, rng: np.random.Generator) -> Tail | None:
    """The tail of a sample of shape (I, R), ranks as blocks; None where few values lie in it, or all are alike."""
    threshold = float(np.quantile(sample, thresholds.TAIL_QUANTILE))
    excesses = sample[sample > threshold] - threshold
    if excesses.size < thresholds.LEAST_TAIL_VALUES or float(np.ptp(excesses)) <= 0:
        return None
    shape, scale = generalised_pareto(excesses)
    shapes = []
    draws = int(np.clip(_MOST_VALUES / sample.size, _DRAWS // 8, _DRAWS))
    for _ in range(draws):
        drawn = sample[:, rng.integers(sample.shape[1], size=sample.shape[1])]
        above = drawn[drawn > threshold] - threshold
        if above.size >= thresholds.LEAST_TAIL_VALUES and float(np.ptp(above)) > 0:
            shapes.append(generalised_pareto(above)[0])
    if len(shapes) < draws // 2:
        return None
    low, high = percentile_interval(np.array(shapes))
    return Tail(threshold, scale, shape, min(low, shape), max(high, shape))


def generalised_pareto(excesses: Array) -> tuple[float, float]:
    """Shape and scale of excesses > 0, by Zhang and Stephens."""
    ordered = np.sort(excesses)
    count = ordered.size
    grid = 20 + int(count**0.5)
    quartile = max(float(ordered[int(count / 4 + 0.5) - 1]), float(ordered[-1]) * 1e-9)
    at = np.arange(1, grid + 1)
    theta = 1 / ordered[-1] + (1 - (grid / (at - 0.5)) ** 0.5) / (3 * quartile)
    shapes = np.log1p(-theta[:, None] * ordered).mean(axis=1)
    likelihood = count * (np.log(-theta / shapes) - shapes - 1)
    weights = np.exp(likelihood - likelihood.max())
    found = float((theta * weights).sum() / weights.sum())
    shape = float(np.log1p(-found * ordered).mean())
    return shape, -shape / found
