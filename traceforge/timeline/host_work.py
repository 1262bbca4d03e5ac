"""When a rank's host works for itself. In: its events by class. Out: intervals.

Idea: a host that launches ahead of its device is held up by nothing but its own work, so that this says how fast the
job could go at best. Only what surely is no wait for the device or for other ranks counts: operations, calls to launch,
fetching data, saving, collecting garbage, and the short stretches between them, which are the program's own.
Not handled: longer stretches without a name, and names that a program gives; either may hide a wait.
"""

from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.layers import Intervals, join, subtract, union
from traceforge.timeline.rank_events import NO_EVENTS, RankEvents

_WORK = ("operation", "launch", "communication_call", "input", "checkpoint", "garbage_collection")
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
    named = join(*(training.get(name, NO_EVENTS).union() for name in _WORK))
    bridge_ns = min(thresholds.UNNAMED_HOST_NS, int(thresholds.UNNAMED_HOST_SHARE * step_ns))
    bridged = union(named.starts_ns, named.ends_ns + bridge_ns)
    working = Intervals(bridged.starts_ns, bridged.ends_ns - bridge_ns)
    # A call that waits for room in the queue of launches, or copies from pageable memory, lasts longer than a launch.
    held = launches.those(launches.ends_ns - launches.starts_ns > thresholds.LONGEST_LAUNCH_NS)
    waits = [training.get(name, NO_EVENTS) for name in _WAITS]
    waits += [held, events.wherever.get("host_communication", NO_EVENTS)]
    return subtract(working, join(*(one.union() for one in waits)))
