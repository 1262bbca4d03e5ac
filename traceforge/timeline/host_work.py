"""When a rank's host works for itself. In: its events by class. Out: intervals.

Idea: a host that launches ahead of its device is held up by nothing but its own work, so that this says how fast the
job could go at best. Only what surely is no wait for the device or for other ranks counts: stretches in which
operations and calls begin or end all the time, fetching data, saving, and collecting garbage.
Not handled: long stretches inside of an operation or without a name, and names that a program gives; any may hide a
wait. So may fetching data, for a prefetched batch.
"""

import numpy as np

from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.layers import Intervals, join, subtract, union
from traceforge.timeline.rank_events import NO_EVENTS, RankEvents

_BUSY = ("operation", "launch", "communication_call")
_NAMED = ("input", "checkpoint", "garbage_collection")
_SPANS = ("iteration", "annotation")
_WAITS = ("synchronisation", "allocator", "mpi_call", "communication_wait", "system_call")


def host_work(events: RankEvents, step_ns: float) -> Intervals:
    """When the host of a rank with a device surely works; nothing where no launches were recorded.

    Args:
        events: of the rank.
        step_ns: what a step takes.
    """
    training = events.training
    launches = training.get("launch", NO_EVENTS)
    if not len(launches.starts_ns):
        return NO_EVENTS.union()
    bridge_ns = min(thresholds.UNNAMED_HOST_NS, int(thresholds.UNNAMED_HOST_SHARE * step_ns))
    own = [training[name] for name in (*_BUSY, *_NAMED) if name in training]
    edges = np.unique(np.concatenate([edge for one in own for edge in (one.starts_ns, one.ends_ns)]))
    is_near = np.diff(edges) <= bridge_ns
    working = join(
        union(edges[:-1][is_near], edges[1:][is_near]),
        *(training.get(name, NO_EVENTS).union() for name in _NAMED),
    )
    # A call that waits for room in the queue of launches, or copies from pageable memory, lasts longer than a launch.
    held = launches.those(launches.ends_ns - launches.starts_ns > thresholds.LONGEST_LAUNCH_NS)
    waits = [training.get(name, NO_EVENTS) for name in _WAITS]
    waits += [held, events.wherever.get("host_communication", NO_EVENTS)]
    return subtract(working, join(*(one.union() for one in waits)))


def explained(events: RankEvents) -> Intervals:
    """When a host has an event, or its device computes or copies, for which a host without an event may wait."""
    of_host = (own.union() for name, own in events.training.items() if name not in _SPANS)
    return join(*of_host, *(events.wherever.get(name, NO_EVENTS).union() for name in ("compute", "copy")))
