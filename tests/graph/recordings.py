"""Execution traces beside the timelines of `tests.given`, row by row. In: nodes as a story. Out: rows in a store."""

from collections.abc import Mapping, Sequence

from tests.given import built
from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.store.database import Store

Row = Mapping[str, object]

_OF_RECORDINGS = (
    "graph.absent_rank",
    "graph.divergence",
    "graph.linked_node",
    "graph.message_pair",
    "graph.split_imbalance",
    "graph.stated_rank",
    "graph.traffic",
    "graph.volume",
)


def compared(store: Store) -> Store:
    """The same store with what execution traces tell: whose they are, how timelines go with them, and their calls."""
    return built(store, *_OF_RECORDINGS)


def add_execution_trace(
    store: Store,
    nodes: Sequence[Row],
    *,
    edges: Sequence[Row] = (),
    calls: Sequence[Row] = (),
    groups: Sequence[Row] = (),
    rank: int | None = 0,
    file: Row | None = None,
) -> int:
    """Add an execution trace as a source of run 0; its source_id.

    Args:
        nodes: columns of raw.chakra_node; position and node_id count from 0 where not given.
        edges: columns of raw.chakra_edge.
        calls: columns of raw.chakra_communication; `position` is that of a node.
        groups: columns of raw.chakra_process_group.
        rank: stated by the file; None where nothing states it.
        file: columns of raw.chakra_file that differ from a plain PyTorch trace.
    """
    source_id = int(store.query("SELECT COUNT(*) FROM meta.source").item())
    source = f"rank{rank}.et.json" if rank is not None else f"trace{source_id}.json"
    origin = "unknown" if rank is None else "metadata"
    known = [source_id, 0, "pytorch_et", source, rank, origin, None, "used", len(nodes), len(nodes), 1, source]
    store.execute(f"INSERT INTO meta.source VALUES ({', '.join('?' * len(known))})", known)
    plain = {"part": 0, "format": "pytorch_et", "has_metadata": True, "is_complete": True, "metadata": "{}"}
    tables: dict[str, list[Row]] = {
        "raw.chakra_file": [{**plain, "node_count": len(nodes), **(file or {})}],
        "raw.chakra_node": [
            {"part": 0, "position": place, "node_id": place, "is_cpu": True, **node} for place, node in enumerate(nodes)
        ],
        "raw.chakra_edge": [{"part": 0, "origin": "data_deps", "kind": "data", **edge} for edge in edges],
        "raw.chakra_communication": [
            {"part": 0, "node_id": call["position"], "origin": "attributes", "is_wait": False, **call} for call in calls
        ],
        "raw.chakra_process_group": [{"part": 0, "position": 0, "node_id": 0, **group} for group in groups],
    }
    for table, rows in tables.items():
        if rows:
            frame = frame_of_rows(table, rows)
            store.append(table, frame.with_columns(source_id=source_id).cast({"source_id": frame.schema["part"]}))
    return source_id


def operation(name: str, handle: int, thread: int = 1, **columns: object) -> dict[str, object]:
    """A recorded host operation."""
    return {"name": name, "rf_id": handle, "thread_id": thread, **columns}
