"""Lasting changes in a series of runs. In: one value a run, in order. Out: where the level changed, and by how much.

Idea: what is usual is the median of the runs since the last change, their spread a robust standard deviation. Several
runs in a row beyond a wide band on the same side are a change; one bad run, or two, are none (as on a control chart).
A change is reported once its last run is there and never taken back by later ones, so that what a check said stays
true. Not handled: slow drifts, which widen the band; changes of the spread alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from traceforge.stats import MEDIAN_ERROR, mad_sd
from traceforge.thresholds import history as thresholds

Values = NDArray[np.float64]

_RULES = (
    (thresholds.RUNS_OF_A_STEP, thresholds.STEP_SPREADS),
    (thresholds.RUNS_OF_A_SMALL_STEP, thresholds.SMALL_STEP_SPREADS),
)
FEWEST_RUNS = thresholds.LEAST_RUNS_BEFORE + thresholds.RUNS_OF_A_STEP
"""With fewer runs, no change can be found."""


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A lasting change.

    Attributes:
        place: of the first run of the new level.
        found: of the run with which it became certain.
        before, after: medians of what was usual, and of the runs from `place` to `found`.
        spread: standard deviation between runs before.
    """

    place: int
    found: int
    before: float
    after: float
    spread: float

    @property
    def rise(self) -> float:
        """Change of the level; above zero where it grew."""
        return self.after - self.before


def steps(values: Sequence[float]) -> list[LevelChange]:
    """The lasting changes of a series, in order."""
    series = [float(value) for value in values]
    found: list[LevelChange] = []
    start, last = 0, 0
    while last < len(series):
        step = _step_at(series, start, last)
        if step is not None:
            found.append(step)
            start = step.place
        last += 1
    return found


def smallest_step(values: Sequence[float], changes: Sequence[LevelChange]) -> float | None:
    """The smallest change from the present level that three more runs would show, if they scatter as those before.

    None where too few runs say what is usual. `changes` are those of `steps`.
    """
    usual = values[changes[-1].place if changes else 0 :][-thresholds.MOST_RUNS_BEFORE :]
    if len(usual) < thresholds.LEAST_RUNS_BEFORE:
        return None
    middle = median(usual)
    spread = _spread(np.asarray(usual), middle)
    # Each of the runs has to be beyond the band: two more spreads make that likely.
    return _band(len(usual), thresholds.STEP_SPREADS, middle, spread) + 2 * spread


def _step_at(series: Sequence[float], start: int, last: int) -> LevelChange | None:
    """The change that becomes certain with the run `last`, on the level that began at `start`."""
    for count, spreads in _RULES:
        place = last + 1 - count
        usual = series[max(start, place - thresholds.MOST_RUNS_BEFORE) : max(place, 0)]
        if place - start < thresholds.LEAST_RUNS_BEFORE:
            continue
        middle = median(usual)
        latest = series[place : last + 1]
        nearest = max(min(latest) - middle, middle - max(latest))
        if nearest <= thresholds.LEAST_CHANGE_SHARE * abs(middle):
            continue  # within the narrowest band there is, which spares the spread of nearly every run
        spread = _spread(np.asarray(usual), middle)
        if nearest > _band(len(usual), spreads, middle, spread):
            return LevelChange(place, last, middle, median(latest), spread)
    return None


def _spread(usual: Values, middle: float) -> float:
    """Robust standard deviation: the median absolute deviation's, or that of values without outliers."""
    spread = mad_sd(usual)
    furthest = thresholds.OUTLIER_SPREADS * spread
    kept = np.clip(usual, middle - furthest, middle + furthest)
    return max(spread, float(kept.std(ddof=1)))


def _band(count: int, spreads: float, middle: float, spread: float) -> float:
    """Half the width of what is usual: wider where few runs tell it, by Student's t and the error of the median."""
    quantile = float(stdtrit(count - 1, ndtr(spreads)))
    usual = quantile * spread * float(np.sqrt(1 + MEDIAN_ERROR**2 / count))
    return max(usual, thresholds.LEAST_CHANGE_SHARE * abs(middle))
