"""When a host stands still inside of an operation. In: events of the training thread. Out: intervals.

Idea: an operation that a slow host runs begins others, and launches, all the time; one in which nothing begins or ends
for milliseconds hardly works slowly: its thread may have been stopped (garbage collection, a lock, another program).
Not handled: operations that compute on the host for as long.
"""

import numpy as np

from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.layers import Intervals, Times, intersect, union
from traceforge.timeline.rank_events import NO_EVENTS, RankEvents


def stalls(events: RankEvents) -> Intervals:
    """Long stretches inside of operations of the training thread in which it does nothing that is recorded."""
    operations = events.training.get("operation", NO_EVENTS)
    is_long = operations.ends_ns - operations.starts_ns >= thresholds.STALLED_NS
    if not is_long.any():
        return NO_EVENTS.union()
    long = operations.those(is_long).union()
    edges = np.unique(np.concatenate([_inside(one.starts_ns, one.ends_ns, long) for one in events.training.values()]))
    is_silent = np.diff(edges) >= thresholds.STALLED_NS
    return intersect(long, union(edges[:-1][is_silent], edges[1:][is_silent]))


def _inside(starts_ns: Times, ends_ns: Times, long: Intervals) -> Times:
    """Starts and ends of events that meet long operations."""
    last = np.searchsorted(long.starts_ns, ends_ns, side="right")
    first = np.searchsorted(long.ends_ns, starts_ns)
    meets = last > first
    result: Times = np.concatenate([starts_ns[meets], ends_ns[meets]])
    return result
