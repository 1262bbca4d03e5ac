"""Which iterations show a rank's usual pace. In: its work by iteration. Out: those that its reference is made from.

A rank, a host or a stage that gets slower for good in mid-run is slow in most iterations, and a median would take that
for usual. So are all transfers over a network that does; their sum is looked at like the work of one rank.
Idea: work by iteration is one level or several; where the level rises, what was before the rise is usual, and later
iterations are as far as they are nearer to that than to what it rose to. A level that falls tells nothing: slow first
iterations are what warming up looks like. Not handled: a pace that drifts, of which no iteration begins it; what was
slow from the first iteration on.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.stats import LevelStep, clearest_step, lasting_count, mad_sd, step_p_value
from traceforge.thresholds import replay as thresholds

Amounts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _RunNoise:
    """How a rank's work varies by itself.

    Attributes:
        share: standard deviation over its level, of all ranks together.
        lasting: how many iterations depart together.
        degrees: of freedom that these rest on.
        ranks: that are looked at.
    """

    share: float
    lasting: int
    degrees: float
    ranks: int


def usual_iterations(work_ns: NDArray[np.int64], calls: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Iterations that show the usual pace of each rank, shape (I, R); None where all do.

    Args:
        work_ns: own work of all kinds, shape (I, R).
        calls: number of collectives, shape (I,): iterations of other lengths are other programs.
    """
    usual = np.ones(work_ns.shape, dtype=np.bool_)
    for length in np.unique(calls).tolist():
        alike = np.flatnonzero(calls == length)
        own = work_ns[alike].astype(np.float64)
        ranks = _may_rise(own).tolist()
        if ranks:
            noise = _noise(own)
            usual[alike[:, None], ranks] = np.stack([_usual(own[:, rank], noise) for rank in ranks], axis=1)
    return None if usual.all() else usual


def _may_rise(work_ns: Amounts) -> NDArray[np.int64]:
    """Ranks that work longer in some stretch than in one before it by as much as counts."""
    count, least = len(work_ns), thresholds.STEP_ITERATIONS
    if count < 2 * least:
        return np.zeros(0, dtype=np.int64)
    level = np.median(np.lib.stride_tricks.sliding_window_view(work_ns, least, axis=0), axis=2)
    rise = level[least:] - np.minimum.accumulate(level, axis=0)[:-least]
    result: NDArray[np.int64] = np.flatnonzero(rise.max(axis=0) >= thresholds.STEP_SHARE * work_ns.mean(axis=0))
    return result


def _noise(work_ns: Amounts) -> _RunNoise:
    """Of work of shape (I, R), each rank with its clearest step taken out."""
    count, ranks = work_ns.shape
    left = np.stack([clearest_step(own, thresholds.STEP_ITERATIONS).left for own in work_ns.T], axis=1)
    # What lies at yet another level is no noise that lasts.
    farthest = thresholds.STEP_SPREADS * np.array([mad_sd(own) for own in left.T])
    share = left / np.maximum(1.0, np.median(work_ns, axis=0))
    lasting = lasting_count(np.where(np.abs(left) > farthest, 0.0, share))
    return _RunNoise(mad_sd(share.ravel()), lasting, ranks * (count / lasting - 2), ranks)


def _usual(work_ns: Amounts, noise: _RunNoise) -> NDArray[np.bool_]:
    """Of one rank, shape (I,)."""
    starts = _levels(work_ns, noise)
    level = [float(np.median(part)) for part in np.split(work_ns, starts)]
    rises = [n for n in range(len(starts)) if level[n + 1] > level[n]]
    if not rises:
        return np.ones(len(work_ns), dtype=np.bool_)
    first = rises[0]
    middle = (level[first] + level[first + 1]) / 2
    return np.repeat(np.array(level) < middle, np.diff([0, *starts, len(work_ns)]))


def _levels(work_ns: Amounts, noise: _RunNoise, first: int = 0) -> list[int]:
    """Places at which the level changes, ascending: the clearest step, then those on either side of it."""
    if len(work_ns) < 2 * thresholds.STEP_ITERATIONS:
        return []
    step = clearest_step(work_ns, thresholds.STEP_ITERATIONS)
    if not _is_clear(step, work_ns, noise):
        return []
    before, after, place = work_ns[: step.place], work_ns[step.place :], first + step.place
    return [*_levels(before, noise, first), place, *_levels(after, noise, place)]


def _is_clear(step: LevelStep, work_ns: Amounts, noise: _RunNoise) -> bool:
    """Whether it is no chance among so many ranks, no drift, and large enough to matter."""
    size, usual_ns = abs(step.rise), float(np.median(work_ns))
    spread = max(mad_sd(step.left), noise.share * usual_ns)
    chance = noise.ranks * step_p_value(step, spread, noise.lasting, noise.degrees)
    return (
        size >= thresholds.STEP_SHARE * usual_ns
        and size >= thresholds.STEP_SPREADS * spread
        and chance <= thresholds.STEP_P_VALUE
    )
