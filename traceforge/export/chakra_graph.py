"""Nodes of an exported Chakra trace. In: graph.node, graph.edge and calls of one trace. Out: nodes with dependencies.

In such a file a dependency means "starts after the other has ended". A linked trace is therefore flattened: an
operation lasts until its first callee begins; what it does after each callee becomes a node of the same name, and the
host's pauses nodes of their own; a call that waits for the device keeps the time after the wait and depends on what it
waited for; a caller that its callee does not wait for is no dependency. Chained by thread, launch, stream and wait, the
nodes add up to the measured time. Other traces keep the dependencies that their file states.
Not handled: tensors; pieces and pauses of less than 1 us.
"""

from collections.abc import Iterable, Iterator

import polars as pl

from traceforge.export.chakra_groups import NumberedGroups
from traceforge.export.chakra_node import ExportNode, Remainders
from traceforge.export.chakra_threads import HostCall, Threads
from traceforge.redaction import Redaction
from traceforge.store.database import Store

_NODES = """
SELECT n.node, n.name,
  CASE
    WHEN a.class = 'host_communication' AND c.op IS NOT NULL THEN 'communication'
    -- An operation of the host that does not say what it does launches a call of the device, which does.
    WHEN n.kind = 'communication' AND NOT n.on_device AND m.op IS NULL THEN 'host'
    ELSE n.kind
  END AS kind,
  n.on_device, n.stream, n.origin, r.node_id, r.rf_id, r.thread_id, r.op_schema,
  r.exclusive_duration_ns, COALESCE(e.track_id, -1) AS thread,
  n.raw_start_ns - COALESCE(align.ahead_ns(n.raw_start_ns, k), 0) AS start_ns,
  n.duration_ns, COALESCE(a.canonical_category = 'user_annotation', false) AS is_annotation,
  COALESCE(m.op, c.op) AS op, COALESCE(m.in_bytes, c.size_bytes) AS size_bytes,
  COALESCE(
    NULLIF(m.process_group, 'all'), c.process_group_name, NULLIF(u.name, ''), 'communicator ' || u.communicator_id
  ) AS process_group,
  COALESCE(m.source_rank, CASE WHEN c.op = 'recv' THEN c.peer END) AS source_rank,
  COALESCE(m.destination_rank, CASE WHEN c.op = 'send' THEN c.peer END) AS destination_rank,
  (
    SELECT MIN(w.tag) FROM raw.chakra_communication AS w WHERE w.source_id = m.source_id AND w.position = m.position
  ) AS tag
FROM graph.node AS n
LEFT JOIN raw.chakra_node AS r ON r.source_id = n.source_id AND r.position = n.node
LEFT JOIN raw.event AS e ON e.source_id = n.timeline_source_id AND e.event_id = n.event_id
LEFT JOIN align.name_class AS a ON a.category IS NOT DISTINCT FROM e.category AND a.name = e.name
ASOF LEFT JOIN align.clock_piece AS k ON k.run_id = n.run_id AND k.rank = n.rank AND n.raw_start_ns >= k.raw_from_ns
LEFT JOIN align.call AS c ON c.run_id = n.run_id AND c.rank = n.rank AND c.source_id = n.timeline_source_id
  AND c.event_id = n.event_id
LEFT JOIN (
  SELECT run_id, rank, call_id, MIN(communicator_id) AS communicator_id
  FROM align.match
  WHERE direction IS NULL
  GROUP BY ALL
) AS h ON h.run_id = c.run_id AND h.rank = c.rank AND h.call_id = c.call_id
LEFT JOIN align.communicator AS u ON u.run_id = h.run_id AND u.communicator_id = h.communicator_id
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
# A call that waits for what it launched keeps that wait here; what follows it depends on its end, not on the work.
_LINKED_EDGES = f"""
{_EDGES} AND origin = 'recorded'
UNION ALL
SELECT from_node, to_node, kind FROM graph.derived_edge WHERE source_id = ? AND part = ?
"""
_DEVICE_EDGES = ("launch", "stream", "order")
_FIRST_ID = 2
_LATENCY = "traceforge::launch_latency"


def exported_nodes(
    store: Store, source_id: int, part: int, groups: NumberedGroups, redaction: Redaction | None = None
) -> list[ExportNode]:
    """The nodes of one trace, each after those it depends on where times are known; names are redacted on request.

    Ids count from 2: the first is that of the node that lists the groups, where the trace has none.
    """
    rows = groups.numbered(store.query(_NODES, [source_id, part]))
    if redaction:
        rows = redaction.frame(rows)
    nodes = {row["node"]: _node(number, row) for number, row in enumerate(rows.iter_rows(named=True), _FIRST_ID)}
    if (rows["origin"] == "timeline").any() or (rows["thread"] >= 0).any():
        return _flattened(rows, store.query(_LINKED_EDGES, [source_id, part] * 2), nodes)
    edges = store.query(_EDGES, [source_id, part])
    for begin, end, kind in edges.iter_rows():
        own = nodes[end].data if kind in ("data", "inter_thread", "sync") else nodes[end].control
        own.append(nodes[begin].node_id)
    return _sorted_dependencies(nodes.values(), {node.node_id: node.node_id for node in nodes.values()})


def _node(number: int, row: dict[str, object]) -> ExportNode:
    own, whole = row["exclusive_duration_ns"], row["duration_ns"]
    duration = own if own is not None else whole
    names = ("stream", "rf_id", "thread_id", "op_schema", "op", "size_bytes", "process_group", "tag")
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
    callers = _callers(edges, nodes)
    remainders = Remainders(len(nodes) + _FIRST_ID)
    Threads(remainders).flatten(_host_calls(rows, nodes, callers))
    for begin, end, kind in edges.iter_rows():
        if kind in _DEVICE_EDGES:
            nodes[end].data.append(nodes[begin].node_id)
    _add_waits(edges, nodes, remainders)
    by_id = {node.node_id: node for node in nodes.values()}
    for node_id, others in callers.items():
        node = by_id[node_id]
        node.control.extend(other for other in others if _may_precede(by_id[other], node))
    return _renumbered([*nodes.values(), *remainders.made])


def _may_precede(other: ExportNode, node: ExportNode) -> bool:
    """Whether no time contradicts that a node starts after another one has ended."""
    return other.start_ns is None or node.start_ns is None or other.end_ns <= node.start_ns


def _callers(edges: pl.DataFrame, nodes: dict[int, ExportNode]) -> dict[int, list[int]]:
    """Ids of what called each node, or what it depends on in control, as its file states."""
    found: dict[int, list[int]] = {}
    for begin, end in edges.filter(pl.col("kind").is_in(["parent", "control"])).select("from_node", "to_node").rows():
        found.setdefault(nodes[end].node_id, []).append(nodes[begin].node_id)
    return found


def _host_calls(rows: pl.DataFrame, nodes: dict[int, ExportNode], callers: dict[int, list[int]]) -> Iterator[HostCall]:
    """The nodes whose thread is known, in order of start."""
    known = rows.select("node", "thread", "duration_ns", "is_annotation")
    for number, thread, duration_ns, is_annotation in known.iter_rows():
        node = nodes[number]
        if node.is_cpu and thread >= 0:
            end_ns = (node.start_ns or 0) + (duration_ns or 0)
            yield HostCall(node, thread, end_ns, is_annotation, next(iter(callers.get(node.node_id, [])), None))


def _add_waits(edges: pl.DataFrame, nodes: dict[int, ExportNode], remainders: Remainders) -> None:
    """Let device work wait for its launch, and host calls for device work."""
    by_id = {node.node_id: node for node in nodes.values()}
    followers: dict[int, list[ExportNode]] = {}
    for node in [*nodes.values(), *remainders.made]:
        if node.is_cpu:
            for other in node.data:
                followers.setdefault(other, []).append(node)
    launches = {node.node_id: set(node.data) for node in nodes.values() if not node.is_cpu}
    for node in nodes.values():
        if not node.is_cpu and node.data:
            _add_latency(node, by_id, remainders)
    for begin, end in edges.filter(pl.col("kind") == "sync").select("from_node", "to_node").iter_rows():
        work, call = nodes[begin], nodes[end]
        if call.node_id in launches.get(work.node_id, ()):
            _cut_in_two(work, call, followers.get(call.node_id, []), remainders)
        else:
            _wait_for(work, call)


def _add_latency(work: ExportNode, by_id: dict[int, ExportNode], remainders: Remainders) -> None:
    """Put a pause between device work and the last node it waits for, where it begins later than that ends."""
    last = max((by_id[other] for other in work.data), key=lambda other: other.end_ns)
    behind = remainders.behind([last.node_id], last.end_ns, work.start_ns or 0, None, _LATENCY)
    work.data = [*(other for other in work.data if other != last.node_id), *behind]


def _wait_for(work: ExportNode, call: ExportNode) -> None:
    """Shorten a call to the time after the work it waits for."""
    begins, ends = call.start_ns or 0, call.end_ns
    call.start_ns = min(max(work.end_ns, begins), ends)
    call.duration_ns = ends - call.start_ns
    call.data.append(work.node_id)


def _cut_in_two(work: ExportNode, call: ExportNode, followers: list[ExportNode], remainders: Remainders) -> None:
    """Split a call that waits for work it launched itself: the time before the work, and that after it."""
    begins, ends = call.start_ns or 0, call.end_ns
    rest = remainders.add([work.node_id], min(max(work.end_ns, begins), ends), ends, call)
    call.duration_ns = max(0, min(work.start_ns or 0, ends) - begins)
    for node in followers:
        node.data = [rest if other == call.node_id else other for other in node.data]


def _renumbered(nodes: list[ExportNode]) -> list[ExportNode]:
    """Nodes in order of start, numbered from 2; a pause precedes what follows it."""
    order = sorted(nodes, key=lambda node: -1 if node.start_ns is None else node.start_ns)
    numbers = {node.node_id: number for number, node in enumerate(order, _FIRST_ID)}
    for number, node in enumerate(order, _FIRST_ID):
        node.node_id = number
    return _sorted_dependencies(order, numbers)


def _sorted_dependencies(nodes: Iterable[ExportNode], numbers: dict[int, int]) -> list[ExportNode]:
    """The nodes with sorted dependencies, each once and under its new number."""
    for node in nodes:
        node.data = sorted({numbers[other] for other in node.data})
        node.control = sorted({numbers[other] for other in node.control})
    return list(nodes)
