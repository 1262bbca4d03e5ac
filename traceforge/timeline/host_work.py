"""When a rank's host works for itself. In: its events by class. Out: intervals.

Idea: a host that launches ahead of its device is held up by nothing but its own work, so that this says how fast the
job could go at best. Only what surely is no wait for the device or for other ranks counts: stretches in which
operations and calls begin or end all the time, fetching data, saving, and collecting garbage. Fetching that ends as the
device does was a wait for it: some loaders copy ahead and wait for room.
Not handled: long stretches inside of an operation or without a name, and names that a program gives; any may hide a
wait. So may fetching data, for another rank.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.layers import Intervals, join, subtract, union
from traceforge.timeline.rank_events import NO_EVENTS, Events, RankEvents
from traceforge.vocabulary import vocabulary

_BUSY = ("operation", "launch", "communication_call")
_NAMED = ("input", "checkpoint", "garbage_collection")
_ON_DEVICE = ("compute", "copy", "communication")
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
        *(_own(name, events).union() for name in _NAMED),
    )
    # A call that waits for room in the queue of launches, or copies from pageable memory, lasts longer than a launch.
    held = launches.those(launches.ends_ns - launches.starts_ns > thresholds.LONGEST_LAUNCH_NS)
    waits = [training.get(name, NO_EVENTS) for name in _WAITS]
    waits += [held, events.wherever.get("host_communication", NO_EVENTS)]
    return subtract(working, join(*(one.union() for one in waits)))


def by_cause(events: RankEvents, working: Intervals) -> Mapping[str, Intervals]:
    """When the host does what each cause would own if its device waited for it.

    Args:
        events: of the rank.
        working: when its host surely works.
    """
    cause_of = {one.name: one.cause or "" for one in vocabulary().classes}
    named = {cause_of[name]: events.training.get(name, NO_EVENTS).union() for name in (*_NAMED, "allocator")}
    return {**named, cause_of["launch"]: subtract(working, join(*named.values()))}


def _own(name: str, events: RankEvents) -> Events:
    """What the host does of a class, without fetching that waited for the device."""
    own = events.training.get(name, NO_EVENTS)
    return own.those(~ends_with_device(own, events)) if name == "input" else own


def ends_with_device(spans: Events, events: RankEvents) -> NDArray[np.bool_]:
    """Whether the device worked until each span of its host ended, and then had no more to do, shape (spans,)."""
    busy = join(*(events.wherever.get(name, NO_EVENTS).union() for name in _ON_DEVICE))
    gap_ns = thresholds.DEVICE_LAUNCH_NS
    is_edge = np.append(True, busy.starts_ns[1:] - busy.ends_ns[:-1] > gap_ns)[: len(busy.starts_ns)]
    starts_ns, ends_ns = busy.starts_ns[is_edge], busy.ends_ns[np.append(is_edge[1:], True)[: len(is_edge)]]
    if not len(starts_ns):
        return np.zeros(len(spans.ends_ns), dtype=np.bool_)
    place = np.searchsorted(starts_ns, spans.ends_ns) - 1
    end_ns = ends_ns[np.maximum(place, 0)]
    after_ns = spans.ends_ns - end_ns
    is_wait = (-gap_ns <= after_ns) & (after_ns <= thresholds.DEVICE_WAIT_ENDS_NS) & (end_ns > spans.starts_ns)
    result: NDArray[np.bool_] = is_wait & (place >= 0)
    return result


def explained(events: RankEvents) -> Intervals:
    """When a host has an event, or its device computes or copies, for which a host without an event may wait."""
    of_host = (own.union() for name, own in events.training.items() if name not in _SPANS)
    return join(*of_host, *(events.wherever.get(name, NO_EVENTS).union() for name in ("compute", "copy")))
