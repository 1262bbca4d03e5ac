"""When the training thread of a rank without a device computes. In: its events. Out: intervals.

Idea: what has a name is work, also while communication runs on another thread; but below a name that encloses a call of
communication the thread may be blocked in it. It was not where no communication ended before its next event: whoever
waits goes on when what it waits for ends.
Not handled: a wait that has neither a name nor a call of its own inside a name without one; it counts as work.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.timeline.layers import Intervals, Times, join, subtract, union

# What blocks the thread by its name.
_WAITS = ("communication_wait", "host_communication")


@dataclass(frozen=True, slots=True)
class HostCompute:
    """Intervals of the training thread.

    Attributes:
        surely: it computes, whatever communicates.
        perhaps: it is below a name, and may be blocked there.
    """

    surely: Intervals
    perhaps: Intervals


def host_compute(
    training: Mapping[str, pl.DataFrame], communication: pl.DataFrame | None, fetching: Intervals, pauses: Intervals
) -> HostCompute:
    """When the training thread computes.

    Args:
        training: its events by class.
        communication: events of it on whatever thread.
        fetching: when it fetches data.
        pauses: when it collects garbage, saves or the like.
    """
    # Where calls were not recorded, what runs begins when it is called.
    calls = _times(training.get("communication_call", communication), "start_ns")
    operations, annotations = (_split(training.get(name), calls) for name in ("operation", "annotation"))
    enclosing = join(operations.enclosing, annotations.enclosing)
    named = join(annotations.free, _unblocked(enclosing, _signs(training), _times(communication, "end_ns")))
    calling = _union(training.get("communication_call"))
    waiting = join(*(_union(training.get(name)) for name in _WAITS))
    working = subtract(operations.free, join(fetching, calling))
    return HostCompute(join(working, subtract(named, join(fetching, pauses, calling, waiting))), enclosing)


@dataclass(frozen=True, slots=True)
class _Named:
    """Events that enclose no call of communication, and those that do."""

    free: Intervals
    enclosing: Intervals


def _split(events: pl.DataFrame | None, calls_ns: Times) -> _Named:
    if events is None:
        return _Named(_union(None), _union(None))
    starts = np.append(np.sort(calls_ns), np.iinfo(np.int64).max)
    next_call = starts[np.searchsorted(starts, events["start_ns"].to_numpy())]
    encloses = pl.Series(next_call < events["end_ns"].to_numpy())
    return _Named(_union(events.filter(~encloses)), _union(events.filter(encloses)))


def _unblocked(enclosing: Intervals, signs_ns: Times, ends_ns: Times) -> Intervals:
    """Of these intervals, all but the time between two events of the thread until communication last ends there."""
    if len(signs_ns) < 2:
        return enclosing
    since, until = signs_ns[:-1], signs_ns[1:]
    ends = np.concatenate([[np.iinfo(np.int64).min], np.sort(ends_ns)])
    last_end = ends[np.searchsorted(ends, until, side="right") - 1]
    return subtract(enclosing, union(since, np.maximum(since, last_end)))


def _signs(training: Mapping[str, pl.DataFrame]) -> Times:
    """When events of the training thread begin and end."""
    own = [_times(events, edge) for events in training.values() for edge in ("start_ns", "end_ns")]
    return np.unique(np.concatenate([_times(None, "start_ns"), *own]))


def _times(events: pl.DataFrame | None, edge: str) -> Times:
    return np.zeros(0, dtype=np.int64) if events is None else events[edge].to_numpy().astype(np.int64)


def _union(events: pl.DataFrame | None) -> Intervals:
    return union(_times(events, "start_ns"), _times(events, "end_ns"))
