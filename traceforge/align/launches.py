"""Which windows of the profiler are of another launch of the job. In: files by window. Out: when each launch began.

A folder keeps what a job wrote yesterday beside what it wrote today. Windows of one launch are of the same processes;
where names state none, they follow one another within the hour. Only clocks that count from 1970 tell.
Not handled: a job that records one window every few hours, in files without processes: its latest window leads.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import polars as pl

from traceforge.thresholds import align as thresholds

_NS_PER_S = 1_000_000_000


def launches(windows: Sequence[pl.DataFrame]) -> list[int]:
    """When the launch of each window began to record, ns since 1970; 0 for all where one launch may have made all.

    Args:
        windows: columns host, process, raw_first_ns and raw_last_ns, in order of time.
    """
    starts: list[int] = []
    for place, window in enumerate(windows):
        first = window["raw_first_ns"].min()
        if not isinstance(first, int) or first < thresholds.EARLIEST_EPOCH_NS:
            return [0] * len(windows)
        starts.append(first if not place or _is_anew(windows[place - 1], window) else starts[-1])
    return starts if len(set(starts)) > 1 else [0] * len(windows)


def called(label: str, launch_ns: int, shown_ns: int) -> str:
    """What to call a run of a launch, beside the run that is shown."""
    if launch_ns == shown_ns:
        return label
    at = datetime.fromtimestamp(launch_ns // _NS_PER_S, UTC)
    return f"{'earlier' if launch_ns < shown_ns else 'later'} job of {at:%Y-%m-%d %H:%M} UTC, {label}"


def _is_anew(before: pl.DataFrame, window: pl.DataFrame) -> bool:
    if before["process"].has_nulls() or window["process"].has_nulls():
        gap = window.select(pl.col("raw_first_ns").min()).item() - before.select(pl.col("raw_last_ns").max()).item()
        return bool(gap >= thresholds.LEAST_LAUNCH_GAP_NS)
    return before.join(window, on=["host", "process"], how="semi", nulls_equal=True).is_empty()
