"""Dependencies of linked traces. Reads graph.node and the timeline's ids; fills graph.derived_edge.

The idea: a host thread makes its calls in order; a call launches device work; a stream does its work in order, and
waits for another stream where the host says so; a blocking call ends when the device work it waits for has ended.
All of it follows from correlation ids, streams and times. Not handled: waits inside kernels; events that are
recorded long before they are waited for (the last work launched before the wait is taken).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.graph.operation_matching import Int64s
from traceforge.store.database import Store
from traceforge.thresholds import graph as thresholds

_TRACES = "SELECT DISTINCT run_id, source_id, part FROM graph.node WHERE origin = 'timeline' ORDER BY ALL"
_NODES = """
SELECT n.node, n.kind, n.on_device, COALESCE(n.thread_id, -1) AS thread, COALESCE(n.stream, -1) AS stream,
  n.raw_start_ns AS start_ns, n.raw_start_ns + COALESCE(n.duration_ns, 0) AS end_ns, COALESCE(e.correlation, 0) AS link
FROM graph.node AS n
JOIN raw.event AS e ON e.source_id = n.timeline_source_id AND e.event_id = n.event_id
WHERE n.source_id = ? AND n.part = ? AND n.origin = 'timeline'
ORDER BY n.raw_start_ns, n.node DESC
"""
_OPERATIONS = """
SELECT l.position AS node, e.track_id AS thread, e.raw_start_ns AS start_ns,
  e.raw_start_ns + COALESCE(e.duration_ns, 0) AS end_ns
FROM graph.linked_node AS l
JOIN raw.event AS e ON e.source_id = l.timeline_source_id AND e.event_id = l.event_id
WHERE l.source_id = ? AND l.part = ?
ORDER BY e.raw_start_ns, e.duration_ns DESC, l.position
"""


@dataclass(frozen=True, slots=True)
class HostCalls:
    """Calls of host threads, by start; one element a call.

    Attributes:
        node: number in graph.node.
        kind: launch, blocking or order.
        thread: track.
        start_ns, end_ns: on the rank's own clock.
    """

    node: Int64s
    kind: np.ndarray[tuple[int], np.dtype[np.object_]]
    thread: Int64s
    start_ns: Int64s
    end_ns: Int64s


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """Work of device streams, by start; one element a kernel or copy.

    Attributes:
        node: number in graph.node.
        stream: device stream.
        start_ns, end_ns: on the rank's own clock.
        call: place in `HostCalls` of its launch; -1 where that lies outside.
    """

    node: Int64s
    stream: Int64s
    start_ns: Int64s
    end_ns: Int64s
    call: Int64s


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a dependency."""
    for run_id, source_id, part in store.rows(_TRACES):
        calls, work = _sides(store.query(_NODES, [source_id, part]))
        made = _frame("call", *callers(store.query(_OPERATIONS, [source_id, part]), calls))
        found = pl.concat([made, derive(calls, work)])
        keys = (pl.lit(value).alias(name) for name, value in (("run_id", run_id), ("source_id", source_id)))
        yield found.with_columns(*keys, part=pl.lit(part))


def _sides(nodes: pl.DataFrame) -> tuple[HostCalls, DeviceWork]:
    host, device = nodes.filter(~pl.col("on_device")), nodes.filter("on_device")
    numbered = host.with_row_index("call").filter(pl.col("link") > 0).unique("link", keep="first")
    tied = device.join(numbered.select("link", pl.col("call").cast(pl.Int64)), on="link", how="left")
    tied = tied.sort("start_ns", "node", descending=[False, True]).with_columns(pl.col("call").fill_null(-1))
    times = ("start_ns", "end_ns")
    calls = HostCalls(*(host[name].to_numpy() for name in ("node", "kind", "thread", *times)))
    return calls, DeviceWork(*(tied[name].to_numpy() for name in ("node", "stream", *times, "call")))


def derive(calls: HostCalls, work: DeviceWork) -> pl.DataFrame:
    """All derived dependencies between calls and device work: from_node, to_node, kind."""
    launched = np.flatnonzero(work.call >= 0)
    frames = [
        _frame("launch", calls.node[work.call[launched]], work.node[launched]),
        _frame("thread", *_consecutive(calls.node, calls.thread)),
        _frame("stream", *_consecutive(work.node, work.stream)),
        _frame("handover", *_handovers(calls)),
        _frame("order", *_orders(calls, work)),
        _frame("sync", *_syncs(calls, work)),
    ]
    return pl.concat(frames)


def callers(operations: pl.DataFrame, calls: HostCalls) -> tuple[Int64s, Int64s]:
    """The innermost operation that runs on a call's thread when the call is made, and the call.

    Args:
        operations: node, thread, start_ns, end_ns; by start, outer before inner.
        calls: by start.
    """
    begins: list[int] = []
    ends: list[int] = []
    running: dict[int, list[tuple[int, int]]] = {}
    waiting = operations.iter_rows()
    following = next(waiting, None)
    for place, (start, thread) in enumerate(zip(calls.start_ns.tolist(), calls.thread.tolist(), strict=True)):
        while following is not None and following[2] <= start:
            node, track, begin, end = following
            stack = running.setdefault(track, [])
            while stack and stack[-1][1] <= begin:
                stack.pop()
            stack.append((node, end))
            following = next(waiting, None)
        stack = running.get(thread, [])
        while stack and stack[-1][1] <= start:
            stack.pop()
        if stack:
            begins.append(stack[-1][0])
            ends.append(place)
    return np.array(begins, np.int64), calls.node[np.array(ends, np.int64)]


def _frame(kind: str, begins: Int64s, ends: Int64s) -> pl.DataFrame:
    columns = {"from_node": begins.astype(np.int64), "to_node": ends.astype(np.int64)}
    return pl.DataFrame(columns).with_columns(kind=pl.lit(kind))


def _consecutive(node: Int64s, lane: Int64s) -> tuple[Int64s, Int64s]:
    """Each node and the next one of its lane; nodes are in order of time."""
    order = np.argsort(lane, kind="stable")
    same = lane[order][1:] == lane[order][:-1]
    return node[order][:-1][same], node[order][1:][same]


def _handovers(calls: HostCalls) -> tuple[Int64s, Int64s]:
    """The last call of another thread that ended in the pause before a call."""
    order = np.argsort(calls.end_ns, kind="stable")
    last_end: dict[int, int] = {}
    begins, ends = [], []
    done = 0
    ended: dict[int, int] = {}
    for place in range(len(calls.node)):
        start, thread = int(calls.start_ns[place]), int(calls.thread[place])
        while done < len(order) and calls.end_ns[order[done]] <= start:
            ended[int(calls.thread[order[done]])] = int(order[done])
            done += 1
        before = last_end.get(thread)
        others = [other for at, other in ended.items() if at != thread]
        latest = max(others, key=lambda other: int(calls.end_ns[other]), default=None)
        paused = before is not None and start - before > thresholds.LONGEST_OWN_PAUSE_NS
        if latest is not None and (before is None or (calls.end_ns[latest] > before and paused)):
            begins.append(latest)
            ends.append(place)
        last_end[thread] = int(calls.end_ns[place])
    return calls.node[np.array(begins, np.int64)], calls.node[np.array(ends, np.int64)]


def _orders(calls: HostCalls, work: DeviceWork) -> tuple[Int64s, Int64s]:
    """Work on another stream, launched last before a stream had to wait, and the next work launched behind."""
    launched = np.flatnonzero(work.call >= 0)
    places = launched[np.argsort(work.call[launched], kind="stable")]
    call_of = work.call[places]
    own = {thread: places[calls.thread[call_of] == thread] for thread in np.unique(calls.thread[call_of]).tolist()}
    begins: list[int] = []
    ends: list[int] = []
    last_on: dict[int, int] = {}
    nearest = 0
    for wait in np.flatnonzero(calls.kind == "order").tolist():
        while nearest < len(places) and call_of[nearest] < wait:
            last_on[int(work.stream[places[nearest]])] = int(places[nearest])
            nearest += 1
        # The stream that waits is that of the next launch of the same thread.
        behind = own.get(int(calls.thread[wait]), places[:0])
        following = int(np.searchsorted(work.call[behind], wait))
        if following == len(behind):
            continue
        target = int(behind[following])
        latest_end_ns = work.start_ns[target] + thresholds.CLOCK_SLACK_NS
        for stream, source in last_on.items():
            if stream != work.stream[target] and work.end_ns[source] <= latest_end_ns:
                begins.append(source)
                ends.append(target)
    pairs = np.unique(np.array([begins, ends], np.int64).reshape(2, -1), axis=1)
    return work.node[pairs[0]], work.node[pairs[1]]


def _syncs(calls: HostCalls, work: DeviceWork) -> tuple[Int64s, Int64s]:
    """Of the work launched before a blocking call, what ended last before the call did."""
    begins, ends = [], []
    by_end = np.argsort(work.end_ns, kind="stable")
    ends_sorted = work.end_ns[by_end]
    for place in np.flatnonzero(calls.kind == "blocking").tolist():
        last = int(np.searchsorted(ends_sorted, calls.end_ns[place], side="right")) - 1
        while last >= 0 and work.call[by_end[last]] > place:
            last -= 1
        if last >= 0:
            begins.append(int(by_end[last]))
            ends.append(place)
    return work.node[np.array(begins, np.int64)], calls.node[np.array(ends, np.int64)]
