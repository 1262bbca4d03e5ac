"""Nodes of an exported Chakra trace. In: graph.node, graph.edge and calls of one trace. Out: nodes with dependencies.

In such a file a dependency means "starts after the other has ended". A linked trace is therefore flattened: an
operation lasts until its first callee begins; its remainder and the host's pauses become nodes of their own; a call
that waits for the device keeps the time after the wait and depends on what it waited for. Chained by thread, launch,
stream and wait, the nodes add up to the measured time. Other traces keep the dependencies that their file states.
Not handled: tensors; pauses of less than 1 us.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from traceforge.redaction import Redaction
from traceforge.store.database import Store

_NODES = """
SELECT n.node, n.name, n.kind, n.on_device, n.stream, n.origin, r.node_id, r.rf_id, r.thread_id, r.op_schema,
  r.exclusive_duration_ns, COALESCE(e.track_id, -1) AS thread,
  n.raw_start_ns - COALESCE(align.ahead_ns(n.raw_start_ns, k), 0) AS start_ns,
  n.duration_ns,
  COALESCE(m.op, c.op) AS op, COALESCE(m.in_bytes, c.size_bytes) AS size_bytes,
  COALESCE(m.process_group, c.process_group_name) AS process_group, m.source_rank, m.destination_rank
FROM graph.node AS n
LEFT JOIN raw.chakra_node AS r ON r.source_id = n.source_id AND r.position = n.node
LEFT JOIN raw.event AS e ON e.source_id = n.timeline_source_id AND e.event_id = n.event_id
ASOF LEFT JOIN align.clock_piece AS k ON k.run_id = n.run_id AND k.rank = n.rank AND n.raw_start_ns >= k.raw_from_ns
LEFT JOIN align.call AS c ON c.run_id = n.run_id AND c.rank = n.rank AND c.source_id = n.timeline_source_id
  AND c.event_id = n.event_id
LEFT JOIN graph.derived_edge AS l
  ON l.source_id = n.source_id AND l.part = n.part AND l.to_node = n.node AND l.kind = 'launch'
LEFT JOIN graph.derived_edge AS o
  ON o.source_id = l.source_id AND o.part = l.part AND o.to_node = l.from_node AND o.kind = 'call'
LEFT JOIN raw.chakra_node AS x ON x.source_id = o.source_id AND x.part = o.part AND x.position = o.from_node
LEFT JOIN raw.chakra_node AS y ON y.source_id = x.source_id AND y.part = x.part AND y.node_id = x.parent_id
LEFT JOIN graph.communication AS m
  ON m.source_id = n.source_id AND m.position IN (n.node, o.from_node, y.position) AND n.kind = 'communication'
WHERE n.source_id = ? AND n.part = ?
ORDER BY start_ns NULLS FIRST, CASE WHEN n.raw_start_ns IS NOT NULL THEN n.duration_ns END DESC,
  CASE WHEN r.parent_id IS NOT NULL THEN r.node_id END NULLS LAST, n.node
"""
_EDGES = "SELECT from_node, to_node, kind FROM graph.edge WHERE source_id = ? AND part = ? AND from_node <> to_node"
_DEVICE_EDGES = ("launch", "stream", "order")
_PAUSE = "traceforge::host_pause"
_LATENCY = "traceforge::launch_latency"
_SHORTEST_PAUSE_NS = 1_000
_HANDOVER_NS = 50_000


@dataclass(slots=True)
class ExportNode:
    """One node of an exported trace.

    Attributes:
        node_id: from 1, in order of start.
        kind: as in graph.node.
        is_cpu: whether it runs on the host.
        start_ns: aligned clock; None when unknown.
        duration_ns: what it takes once all it depends on has ended.
        data, control: ids of nodes it depends on.
        facts: further columns of graph.node and of its communication, by name.
    """

    node_id: int
    name: str
    kind: str
    is_cpu: bool
    start_ns: int | None
    duration_ns: int
    data: list[int] = field(default_factory=list)
    control: list[int] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        """When it ends, as far as known."""
        return (self.start_ns or 0) + self.duration_ns


@dataclass(slots=True)
class _ThreadState:
    """A host thread while it is flattened: its last node, and until when nodes cover its time."""

    last: ExportNode
    until_ns: int
    latest_end_ns: int


def exported_nodes(store: Store, source_id: int, part: int, redaction: Redaction | None = None) -> list[ExportNode]:
    """The nodes of one trace, each after those it depends on where times are known; names are redacted on request."""
    rows = store.query(_NODES, [source_id, part])
    if redaction:
        rows = redaction.frame(rows)
    edges = store.query(_EDGES, [source_id, part])
    nodes = {row["node"]: _node(number, row) for number, row in enumerate(rows.iter_rows(named=True), 1)}
    if (rows["origin"] == "timeline").any() or (rows["thread"] >= 0).any():
        return _flattened(rows, edges, nodes)
    for begin, end, kind in edges.iter_rows():
        own = nodes[end].data if kind in ("data", "inter_thread", "sync") else nodes[end].control
        own.append(nodes[begin].node_id)
    return _sorted_dependencies(nodes.values(), {node.node_id: node.node_id for node in nodes.values()})


def _node(number: int, row: dict[str, object]) -> ExportNode:
    own, whole = row["exclusive_duration_ns"], row["duration_ns"]
    duration = own if own is not None else whole
    names = ("stream", "rf_id", "thread_id", "op_schema", "op", "size_bytes", "process_group")
    ranks = ("source_rank", "destination_rank")
    return ExportNode(
        node_id=number,
        name=str(row["name"] or ""),
        kind=str(row["kind"]),
        is_cpu=not row["on_device"],
        start_ns=_integer(row["start_ns"]),
        duration_ns=_integer(duration) or 0,
        facts={name: row[name] for name in (*names, *ranks) if row[name] is not None},
    )


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _flattened(rows: pl.DataFrame, edges: pl.DataFrame, nodes: dict[int, ExportNode]) -> list[ExportNode]:
    """Nodes of a linked trace, whose dependencies mean "starts after the other has ended"."""
    threads = dict(rows.select("node", "thread").rows())
    host = [
        (node, threads[number], node.end_ns) for number, node in nodes.items() if node.is_cpu and threads[number] >= 0
    ]
    pauses = _Pauses(len(nodes) + 1)
    _Threads(pauses).flatten(host)
    launched: set[tuple[int, int]] = set()
    for begin, end, kind in edges.iter_rows():
        if kind in _DEVICE_EDGES:
            nodes[end].data.append(nodes[begin].node_id)
            launched.add((begin, end))
        elif kind in ("parent", "control"):
            nodes[end].control.append(nodes[begin].node_id)
    by_id = {node.node_id: node for node in nodes.values()}
    for node in nodes.values():
        if not node.is_cpu and node.data:
            _add_latency(node, by_id, pauses)
    followers: dict[int, list[ExportNode]] = {}
    for node in [*nodes.values(), *pauses.made]:
        if node.is_cpu and node.name != _LATENCY:
            for other in node.data:
                followers.setdefault(other, []).append(node)
    for begin, end in edges.filter(pl.col("kind") == "sync").select("from_node", "to_node").iter_rows():
        call = nodes[end]
        if (end, begin) in launched:
            _cut_in_two(nodes[begin], call, followers.get(call.node_id, []), pauses)
        else:
            _wait_for(nodes[begin], call)
    return _renumbered([*nodes.values(), *pauses.made])


def _add_latency(work: ExportNode, by_id: dict[int, ExportNode], pauses: "_Pauses") -> None:
    """Put a pause between device work and the last node it waits for, where it begins later than that ends."""
    last = max((by_id[other] for other in work.data), key=lambda other: other.end_ns)
    behind = pauses.behind(last.node_id, last.end_ns, work.start_ns or 0, _LATENCY)
    work.data = [behind if other == last.node_id else other for other in work.data]


def _wait_for(work: ExportNode, call: ExportNode) -> None:
    """Shorten a call to the time after the work it waits for."""
    begins, ends = call.start_ns or 0, call.end_ns
    call.start_ns = min(max(work.end_ns, begins), ends)
    call.duration_ns = ends - call.start_ns
    call.data.append(work.node_id)


def _cut_in_two(work: ExportNode, call: ExportNode, followers: list[ExportNode], pauses: "_Pauses") -> None:
    """Split a call that waits for work it launched itself: the time before the work, and a pause after it."""
    begins, ends = call.start_ns or 0, call.end_ns
    rest = pauses.add(work.node_id, min(max(work.end_ns, begins), ends), ends, _PAUSE)
    call.duration_ns = max(0, min(work.start_ns or 0, ends) - begins)
    for node in followers:
        node.data = [rest if other == call.node_id else other for other in node.data]


class _Pauses:
    """Nodes for time in which nothing that is recorded runs.

    Attributes:
        made: the pauses so far.
    """

    def __init__(self, next_id: int) -> None:
        self._next_id = next_id
        self.made: list[ExportNode] = []

    def behind(self, node_id: int, until_ns: int, start_ns: int, name: str = _PAUSE) -> int:
        """Id of a node that ends at `start_ns`: the one given, which ends at `until_ns`, or a pause after it."""
        return node_id if start_ns - until_ns < _SHORTEST_PAUSE_NS else self.add(node_id, until_ns, start_ns, name)

    def add(self, node_id: int, start_ns: int, end_ns: int, name: str) -> int:
        """Id of a new pause that depends on a node."""
        self.made.append(ExportNode(self._next_id, name, "host", True, start_ns, end_ns - start_ns, [node_id]))
        self._next_id += 1
        return self._next_id - 1


class _Threads:
    """Makes each host node last until the next one of its thread begins, and depend on the one before."""

    def __init__(self, pauses: _Pauses) -> None:
        self._threads: dict[int, _ThreadState] = {}
        self._pauses = pauses

    def flatten(self, host: list[tuple[ExportNode, int, int]]) -> None:
        """Change the nodes, given with thread and end in order of start; pauses between them are added."""
        for node, number, end_ns in host:
            start_ns = node.start_ns or 0
            thread = self._threads.get(number)
            if thread is not None:
                self._end_last(thread, start_ns)
            before = self._before(number, thread, start_ns)
            if before is not None:
                node.data.append(self._pauses.behind(before.last.node_id, before.until_ns, start_ns))
            latest = max(end_ns, thread.latest_end_ns if thread else end_ns)
            self._threads[number] = _ThreadState(node, end_ns, latest)
        for thread in self._threads.values():
            self._pauses.behind(thread.last.node_id, thread.until_ns, thread.latest_end_ns)

    def _end_last(self, thread: _ThreadState, start_ns: int) -> None:
        """A caller is cut where its callee begins; its remainder after the callee becomes a pause."""
        thread.until_ns = min(thread.until_ns, start_ns)
        thread.last.duration_ns = min(thread.last.duration_ns, thread.until_ns - (thread.last.start_ns or 0))

    def _before(self, number: int, thread: _ThreadState | None, start_ns: int) -> _ThreadState | None:
        """The thread to continue from: the node's own, or one that ended within a long pause of that thread."""
        others = [other for at, other in self._threads.items() if at != number and other.until_ns <= start_ns]
        latest = max(others, key=lambda other: other.until_ns, default=None)
        if latest is None or (
            thread is not None and (latest.until_ns <= thread.until_ns or start_ns - thread.until_ns <= _HANDOVER_NS)
        ):
            return thread
        return latest


def _renumbered(nodes: list[ExportNode]) -> list[ExportNode]:
    """Nodes in order of start, numbered from 1; a pause precedes what follows it."""
    order = sorted(nodes, key=lambda node: -1 if node.start_ns is None else node.start_ns)
    numbers = {node.node_id: number for number, node in enumerate(order, 1)}
    for number, node in enumerate(order, 1):
        node.node_id = number
    return _sorted_dependencies(order, numbers)


def _sorted_dependencies(nodes: Iterable[ExportNode], numbers: dict[int, int]) -> list[ExportNode]:
    """The nodes with sorted dependencies, each once and under its new number."""
    for node in nodes:
        node.data = sorted({numbers[other] for other in node.data})
        node.control = sorted({numbers[other] for other in node.control})
    return list(nodes)
