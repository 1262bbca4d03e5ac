"""How sure a predicted ratio is. In: steps as recorded and as replayed at the ends of the couplings. Out: an interval.

Two doubts are put together in each draw: which steps the run happened to record (blocks of them are drawn again, since
steps that follow one another are alike), and how strong the couplings are (drawn from a normal curve with different
sides, between whose ends the replays are interpolated).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Amounts = NDArray[np.float64]

_DRAWS = 400
_FEWEST_IN_BLOCK = 3
# Standard deviations from the middle of a normal curve to the end of its 95 % interval.
_TO_END = 1.96


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


def ratio_interval(recorded_ns: Amounts, replayed_ns: Amounts, seed: int = 0) -> Interval:
    """Interval of total recorded time over total replayed time.

    Args:
        recorded_ns: steps, shape (N,).
        replayed_ns: the same steps with couplings at their lower end, best value and upper end, shape (3, N).
    """
    draws = np.random.default_rng(seed)
    chosen = _blocks(len(recorded_ns), draws)
    recorded, replayed = recorded_ns[chosen].sum(axis=1), replayed_ns[:, chosen].sum(axis=2)
    strength = draws.standard_normal(_DRAWS) / _TO_END
    towards = np.where(strength < 0, replayed[0], replayed[2])
    paced = replayed[1] + np.abs(strength) * (towards - replayed[1])
    low, high = np.quantile(recorded / np.maximum(paced, 1.0), [0.025, 0.975])
    return Interval(float(low), float(high))


def cv_interval(steps_ns: Amounts, seed: int = 0) -> Interval:
    """Interval of the standard deviation over the mean of steps, shape (N,)."""
    drawn = steps_ns[_blocks(len(steps_ns), np.random.default_rng(seed))]
    low, high = np.quantile(drawn.std(axis=1, ddof=1) / drawn.mean(axis=1), [0.025, 0.975])
    return Interval(float(low), float(high))


def _blocks(steps: int, draws: np.random.Generator) -> NDArray[np.int64]:
    """Steps drawn in blocks around a circle, shape (draws, about N)."""
    length = min(max(_FEWEST_IN_BLOCK, round(steps ** (1 / 3))), steps)
    starts = draws.integers(0, steps, (_DRAWS, -(-steps // length)))
    chosen: NDArray[np.int64] = ((starts[..., None] + np.arange(length)) % steps).reshape(_DRAWS, -1)
    return chosen
