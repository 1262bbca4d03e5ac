"""Reading one execution trace in a test. In: bytes or JSON. Out: what the source said of it, table by table."""

import json
from pathlib import Path
from typing import Any

from tests.sources.reading import Reading
from traceforge.records import Batch, ReadOptions, Source
from traceforge.sources.chakra import SOURCE as CHAKRA
from traceforge.sources.pytorch_et import SOURCE as PYTORCH_ET


class TraceReading(Reading):
    """All a source said about one execution trace."""

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of a raw.chakra_* table, in the order in which they came."""
        return [row for batch in self.batches if batch.table == f"raw.chakra_{table}" for row in batch.rows.to_dicts()]

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return self.rows("node")

    @property
    def ids(self) -> list[int | None]:
        return [node["node_id"] for node in self.nodes]

    @property
    def edges(self) -> list[tuple[int, int, str]]:
        return [(edge["from_node_id"], edge["to_node_id"], edge["kind"]) for edge in self.rows("edge")]

    @property
    def is_accounted(self) -> bool:
        """Whether every node seen is a row or counted as lost."""
        lost = sum(issue.lost_events for issue in self.summary.issues)
        return len(self.nodes) == self.summary.stored_count == self.summary.event_count - lost


def read_chakra(content: bytes, folder: Path, *, keep_all_args: bool = False) -> TraceReading:
    return _read(CHAKRA, content, folder / "trace.et", keep_all_args)


def read_pytorch_et(content: object, folder: Path, *, keep_all_args: bool = False) -> TraceReading:
    """`content` is bytes, or a value to be written as JSON."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return _read(PYTORCH_ET, data, folder / "trace.json", keep_all_args)


def _read(source: Source, content: bytes, path: Path, keep_all_args: bool) -> TraceReading:
    path.write_bytes(content)
    batches: list[Batch] = []
    summary = source.read(path, batches.append, ReadOptions(keep_all_args=keep_all_args))
    return TraceReading(summary, batches)
