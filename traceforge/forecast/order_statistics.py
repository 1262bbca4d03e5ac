"""How late the slowest of N ranks is. In: own time by iteration and rank. Out: its expectation at more ranks.

A step waits for its slowest rank, so what counts is the expected maximum. A rank's own time has three parts: what all
ranks share in an iteration, what is a rank's own for good (a new rank draws a new effect), and what comes and goes. The
measured ranks stay, and those that are added are drawn from them as whole blocks, each with its own series turned to a
random start, so that an episode stays an episode but does not strike two drawn ranks at once. That holds up to a few
times the measured ranks; see `tail`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.stats import percentile_interval

Array = NDArray[np.float64]

_DRAWS = 100
_FEWEST_DRAWS = 20
# Values drawn for one interval: a thousand ranks take no more than a second.
_MOST_VALUES = 20_000_000
# Values of blocks drawn at once: a thousand ranks do not fill the memory.
_MOST_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class OwnTimeParts:
    """A rank's own time, decomposed; `own = common + persistent + transient`.

    Attributes:
        common: shape (I, 1).
        persistent: shape (1, R), mean 0.
        transient: shape (I, R), mean 0 over iterations and over ranks.
        persistent_share: share of the variance between ranks that persists, 0..1, less what chance would show.
    """

    common: Array
    persistent: Array
    transient: Array
    persistent_share: float


@dataclass(frozen=True, slots=True)
class Slowest:
    """Expected lateness of the slowest rank against the mean rank, with its bootstrap interval; unit of the input."""

    mean: float
    low: float
    high: float


def step_quantile(ranks: int) -> float:
    """The quantile of one rank's time that is the median of the slowest of so many: 99.86 % at 512 ranks."""
    return float(0.5 ** (1 / ranks))


def parts_of(own: Array) -> OwnTimeParts:
    """The parts of own times of shape (I, R)."""
    common = own.mean(axis=1, keepdims=True)
    persistent = own.mean(axis=0, keepdims=True) - own.mean()
    transient = own - common - persistent
    iterations = len(own)
    within = float((transient**2).sum() / max(1, (iterations - 1) * (own.shape[1] - 1)))
    between = float((persistent**2).sum() / max(1, own.shape[1] - 1))
    lasting = max(0.0, between - within / iterations)
    total = lasting + within
    return OwnTimeParts(common, persistent, transient, lasting / total if total > 0 else 0.0)


def slowest_of(own: Array, ranks: int, rng: np.random.Generator) -> Slowest:
    """Lateness of the slowest of `ranks` ranks, drawn from own times of shape (I, R).

    The interval is that of the measured ranks taken as a sample of all ranks: each draw puts R ranks drawn from the
    measured ones in their place.
    """
    parts = parts_of(own)
    iterations, measured = own.shape
    draws = int(np.clip(_MOST_VALUES / (iterations * ranks), _FEWEST_DRAWS, _DRAWS))
    values = np.array([_one_draw(parts, ranks, rng) for _ in range(draws)])
    if ranks == measured:
        centre = float((own.max(axis=1) - own.mean(axis=1)).mean())
    else:
        centre = float(np.mean([_drawn_maximum(parts, np.arange(measured), ranks, rng) for _ in range(draws // 4)]))
    # Drawn ranks repeat one another, which makes their slowest less late than it should be: only the spread is taken.
    low, high = percentile_interval(values - values.mean())
    return Slowest(centre, max(0.0, centre + low), centre + high)


def _one_draw(parts: OwnTimeParts, ranks: int, rng: np.random.Generator) -> float:
    measured = parts.persistent.shape[1]
    return _drawn_maximum(parts, np.asarray(rng.integers(measured, size=(measured,))), ranks, rng)


def _drawn_maximum(parts: OwnTimeParts, pool: NDArray[np.int64], ranks: int, rng: np.random.Generator) -> float:
    """Mean over iterations of the latest of `ranks` ranks, above the mean rank: those of the pool, and drawn ones."""
    iterations = len(parts.transient)
    lasting = parts.persistent[0, pool] - parts.persistent[0, pool].mean()
    bandwidth = 0.9 * float(lasting.std()) * len(pool) ** -0.2
    # What all ranks share was taken from the ranks themselves, and a part of their own went with it.
    wider = (parts.transient.shape[1] / max(1, parts.transient.shape[1] - 1)) ** 0.5
    largest = (lasting + parts.transient[:, pool])[:, :ranks].max(axis=1)
    batch = max(1, _MOST_CELLS // iterations)
    for first in range(len(pool), ranks, batch):
        count = min(batch, ranks - first)
        chosen = rng.integers(len(pool), size=count)
        # A new rank is like a measured one, not the same: a smoothed draw, which keeps the spread as it is.
        effect = (lasting[chosen] + bandwidth * rng.standard_normal(count)) * (1 + 0.81 * len(pool) ** -0.4) ** -0.5
        turned = (np.arange(iterations)[:, None] + rng.integers(iterations, size=count)) % iterations
        block = effect + wider * parts.transient[turned, pool[chosen]]
        largest = np.maximum(largest, block.max(axis=1))
    return float(largest.mean())
