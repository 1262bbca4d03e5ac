"""When the training thread of a rank without a device computes. In: its events. Out: intervals.

Idea: what has a name is work, also while communication runs on another thread; but below a name that encloses a call of
communication the thread may be blocked in it. It was not where no communication ended before its next event: whoever
waits goes on when what it waits for ends.
Not handled: a wait that has neither a name nor a call of its own inside a name without one; it counts as work.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceforge.timeline.layers import Intervals, Times, join, subtract, union
from traceforge.timeline.rank_events import NO_EVENTS, Events

_AT_ONCE = 131_072
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
    training: Mapping[str, Events], communication: Events, fetching: Intervals, pauses: Intervals
) -> HostCompute:
    """When the training thread computes.

    Args:
        training: its events by class.
        communication: events of it on whatever thread.
        fetching: when it fetches data.
        pauses: when it collects garbage, saves or the like.
    """
    # Where calls were not recorded, what runs begins when it is called.
    calls = training.get("communication_call", communication).starts_ns
    operations, annotations = (_split(training.get(name, NO_EVENTS), calls) for name in ("operation", "annotation"))
    enclosing = join(operations.enclosing, annotations.enclosing)
    named = join(annotations.free, _unblocked(enclosing, training, communication.ends_ns))
    calling = training.get("communication_call", NO_EVENTS).union()
    waiting = join(*(training.get(name, NO_EVENTS).union() for name in _WAITS))
    working = subtract(operations.free, join(fetching, calling))
    return HostCompute(join(working, subtract(named, join(fetching, pauses, calling, waiting))), enclosing)


@dataclass(frozen=True, slots=True)
class _Named:
    """Events that enclose no call of communication, and those that do."""

    free: Intervals
    enclosing: Intervals


def _split(events: Events, calls_ns: Times) -> _Named:
    starts = np.append(np.sort(calls_ns), np.iinfo(np.int64).max)
    encloses = np.empty(len(events.starts_ns), dtype=np.bool_)
    for first in range(0, len(encloses), _AT_ONCE):  # there may be millions
        some = slice(first, first + _AT_ONCE)
        encloses[some] = starts[np.searchsorted(starts, events.starts_ns[some])] < events.ends_ns[some]
    return _Named(*(events.those(some).union() for some in (~encloses, encloses)))


def _unblocked(enclosing: Intervals, training: Mapping[str, Events], ends_ns: Times) -> Intervals:
    """Of these intervals, all but the time between two events of the thread until communication last ends there."""
    signs_ns = _signs(training) if len(enclosing.starts_ns) else NO_EVENTS.starts_ns
    if len(signs_ns) < 2:
        return enclosing
    since, until = signs_ns[:-1], signs_ns[1:]
    ends = np.concatenate([[np.iinfo(np.int64).min], np.sort(ends_ns)])
    last_end = ends[np.searchsorted(ends, until, side="right") - 1]
    return subtract(enclosing, union(since, np.maximum(since, last_end)))


def _signs(training: Mapping[str, Events]) -> Times:
    """When events of the training thread begin and end."""
    own = [edge for events in training.values() for edge in (events.starts_ns, events.ends_ns)]
    return np.unique(np.concatenate([NO_EVENTS.starts_ns, *own]))
