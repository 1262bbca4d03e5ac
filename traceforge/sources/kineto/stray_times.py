"""Times that a device's events cannot have. In: frames of a file's events, in order. Out: the same, such times as NULL.

Idea: CUPTI writes 0 or garbage for some events, and PyTorch's profiler takes it over; times before its base become 0.
Host operations have times of their own, so what lies far outside of all of them is no time. Rows that may be such wait
until the whole of what the host recorded is known. Where most of a device's events lie outside, its clock is another
one, and they stay, but for those at 0; likewise of calls of its driver.
Not handled: events of a device before the first of the host in the file; times that are wrong and within reach.
"""

from collections import Counter

import numpy as np
import polars as pl

from traceforge.reading.issue_log import IssueLog
from traceforge.sources.kineto.kinds import Flag, FlagArray
from traceforge.thresholds import sources as thresholds

_CLOCKS = (Flag.ON_DEVICE, Flag.OF_DRIVER)
_START, _DURATION = "raw_start_ns", "duration_ns"


class StrayTimes:
    """Holds rows of one file back that may have no true time, until `finish` judges them."""

    def __init__(self, issues: IssueLog) -> None:
        self._issues = issues
        self._span: tuple[int, int] | None = None
        self._counts = Counter[int]()
        self._held: dict[int, list[pl.DataFrame]] = {clock: [] for clock in _CLOCKS}

    def passed(self, frame: pl.DataFrame, flags: FlagArray) -> pl.DataFrame:
        """The rows of a frame whose times are taken as they are.

        Args:
            frame: rows of raw.occurrence without the base time.
            flags: the `Flag`s of each.
        """
        is_host = (flags & Flag.ON_HOST) != 0
        follows_host = np.logical_or.accumulate(is_host) if self._span is None else True
        self._widen(frame.select(_START, _DURATION).filter(pl.Series(is_host)))
        if self._span is None:
            return frame
        # Of most frames the extremes tell that nothing is.
        is_outside = _any_outside(frame, self._span) and _outside(frame, self._span, 0).to_numpy() & follows_host
        are_held = np.zeros(frame.height, np.bool_)
        for clock in _CLOCKS:
            is_own = ((flags & clock) != 0) & follows_host
            self._counts[clock] += int(np.count_nonzero(is_own))
            if (is_own & is_outside).any():
                self._held[clock].append(frame.filter(pl.Series(is_own & is_outside)))
                are_held |= is_own & is_outside
        return frame.filter(pl.Series(~are_held)) if are_held.any() else frame

    def finish(self) -> pl.DataFrame | None:
        """The rows that were held back; None where there are none."""
        judged = [self._judged(pl.concat(held), self._counts[clock]) for clock, held in self._held.items() if held]
        return pl.concat(judged).sort("event_id") if judged else None

    def _judged(self, held: pl.DataFrame, count: int) -> pl.DataFrame:
        """Rows of one clock, of which the file has so many, with NULL for times that are none."""
        if self._span is None:
            return held
        is_zero = _outside(held, self._span, 0) & (held[_START] == 0).fill_null(value=False)
        is_far = _outside(held, self._span, self._span[1] - self._span[0])
        is_stray = is_zero | is_far if 2 * int(is_far.sum()) < count else is_zero
        if is_stray.any():
            first = min(held.filter(is_stray)["event_id"].to_list())
            self._issues.add("stray_time", int(is_stray.sum()), at=f"event {first}")
        return held.with_columns(pl.when(~is_stray).then(pl.col(_START)).alias(_START))

    def _widen(self, host: pl.DataFrame) -> None:
        """Take host events into what the host recorded."""
        ends = _ends(host)
        first, last = host[_START].min(), ends.max()
        if isinstance(first, int) and isinstance(last, int):
            known = self._span or (first, last)
            self._span = min(first, known[0]), max(last, known[1])


def _any_outside(frame: pl.DataFrame, span: tuple[int, int]) -> bool:
    extremes = frame.select(
        pl.col(_START).min().alias("first"),
        pl.col(_START).max().alias("last"),
        (pl.col(_START) + pl.col(_DURATION).fill_null(0)).max().alias("end"),
    )
    first, last, end = extremes.row(0)
    if first is None:
        return False
    found = pl.DataFrame({_START: [first, last, last], _DURATION: [0, 0, end - last]})
    return bool(_outside(found, span, 0).any())


def _outside(frame: pl.DataFrame, span: tuple[int, int], reach_ns: int) -> pl.Series:
    """Whether each row lies further outside of what the host recorded than that, and than any queue explains."""
    margin = max(reach_ns, thresholds.LEAST_STRAY_NS)
    is_outside = (frame[_START] < span[0] - margin) | (frame[_START] > span[1] + margin)
    is_endless = _ends(frame) > span[1] + max(reach_ns, thresholds.LEAST_STRAY_END_NS)
    return (is_outside | is_endless).fill_null(value=False)


def _ends(frame: pl.DataFrame) -> pl.Series:
    return frame[_START] + frame[_DURATION].fill_null(0)
