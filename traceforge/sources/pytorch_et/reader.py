"""One PyTorch execution trace. In: a path. Out: batches of raw.chakra_* rows, and a summary.

Idea: units of some hundred nodes pass through in order, once; only communication waits for the end of its trace.
Not handled: archives; files of generated kernels that a trace names.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from traceforge.errors import InputUnusableError
from traceforge.reading.batches import BATCH_ROWS, Batches
from traceforge.reading.chakra_file import Part, nothing_there
from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.reading.collection import no_garbage_collection
from traceforge.reading.json_elements import UNIT_BYTES, ElementReader, Members
from traceforge.reading.json_values import ABSENT, NO_TOKEN, UNDECODABLE
from traceforge.reading.process_groups import INIT_NODE, group_rows, world_size_of
from traceforge.reading.stream import ByteStream
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.pytorch_et.arguments import inputs_of, tensor_rows
from traceforge.sources.pytorch_et.communication import TraceCommunication
from traceforge.sources.pytorch_et.decode import Node, value_of
from traceforge.sources.pytorch_et.issues import new_log
from traceforge.sources.pytorch_et.layout import layout_of
from traceforge.sources.pytorch_et.nodes import edge_rows, node_rows
from traceforge.sources.pytorch_et.schema_versions import check_schema
from traceforge.sources.pytorch_et.units import Int64s, NodeUnit

KIND = "pytorch_et"
_HEAD_BYTES = 64 * 1024
_BOM = b"\xef\xbb\xbf"
_members = msgspec.json.Decoder(dict[str, object])


def read_file(
    path: Path,
    emit: Callable[[Batch], None],
    options: ReadOptions,
    *,
    unit_bytes: int = UNIT_BYTES,
    batch_rows: int = BATCH_ROWS,
) -> SourceSummary:
    """Read a file, handing over batches of at least `batch_rows` rows.

    Args:
        path: plain or gzip JSON.
        emit: takes each batch.
        options: what to keep, and what to call as it goes on.
        unit_bytes: how much text is decoded at a time; the result does not depend on it.
        batch_rows: how many rows a batch holds, up to one unit more.

    Raises:
        InputUnusableError: nothing of the file can be used.
    """
    with no_garbage_collection():
        return _ExecutionTraceReading(path, emit, options, batch_rows).run(unit_bytes)


class _ExecutionTraceReading:
    """What is gathered while one file is read."""

    def __init__(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions, batch_rows: int) -> None:
        self._path = path
        self._options = options
        self._batches = Batches(emit, batch_rows)
        self._issues = new_log()
        self._parts: list[Part] = []
        self._communication = TraceCommunication(self._issues)
        self._ids: list[Int64s] = []
        self._timed: set[int] = set()
        self._stored = 0

    def run(self, unit_bytes: int) -> SourceSummary:
        with ByteStream(self._path, self._options.report_progress) as stream:
            head = stream.read(_HEAD_BYTES).removeprefix(_BOM)
            if not head:
                raise nothing_there(stream, self._path)
            elements = ElementReader(stream, head, layout_of(self._issues), self._issues, unit_bytes)
            for found in elements.units():
                if isinstance(found, Members):
                    self._take_members(found)
                else:
                    self._take(found)
            if stream.damage is not None:
                self._issues.add("damaged_compression", at=f"byte {stream.position}", because=stream.damage)
        return self._finish(elements.is_complete and stream.damage is None)

    def _take_members(self, members: Members) -> None:
        """Metadata before or behind a list of nodes; a second list begins a second trace."""
        try:
            facts = _members.decode(members.text)
        except UNDECODABLE:
            self._issues.add("unreadable_metadata")
            facts = {}
        for name in ("", "nodes"):
            facts.pop(name, None)
        if members.opens:
            if self._parts:
                self._issues.add("second_trace", at=f"node {self._stored}")
                self._end_part()
            self._parts.append(Part(has_metadata=bool(facts), facts=facts))
        elif self._parts:
            self._parts[-1].facts.update(facts)

    def _take(self, nodes: list[Node]) -> None:
        if not self._parts:
            self._parts.append(Part())
        part = self._parts[-1]
        unit = NodeUnit(nodes, len(self._parts) - 1, self._stored, self._issues)
        self._stored += len(nodes)
        self._ids.append(unit.ids[unit.ids != ABSENT])
        part.node_count += len(nodes)
        if any(node.ts is not NO_TOKEN for node in nodes):
            self._timed.add(len(self._parts) - 1)
        self._batches.add("raw.chakra_node", node_rows(unit, self._issues))
        for edges in edge_rows(unit):
            self._batches.add("raw.chakra_edge", edges)
        self._communication.add(unit)
        self._take_groups(unit, part)
        of_all = self._options.keep_all_args
        self._batches.add("raw.chakra_tensor", tensor_rows(unit, self._issues, of_all=of_all))
        if of_all:
            self._batches.add("raw.chakra_attribute", unit.other_attributes())

    def _take_groups(self, unit: NodeUnit, part: Part) -> None:
        for index, node in enumerate(unit.nodes):
            if node.name != INIT_NODE:
                continue
            values = inputs_of(node).values
            texts = [text for text in values if isinstance(text, str)] if isinstance(values, list) else []
            listed = [value_of(text.encode()) for text in texts]
            if not texts or not all(isinstance(groups, list) for groups in listed):
                self._issues.add("unreadable_groups", at=unit.place(index))
            rows = [row for groups in listed for row in group_rows(groups)]
            part.world_size = world_size_of(rows) or part.world_size
            frame = frame_of_rows("raw.chakra_process_group", [{**unit.key(index), **row} for row in rows])
            self._batches.add("raw.chakra_process_group", frame)

    def _end_part(self) -> None:
        part = self._parts[-1]
        part.recorded_rank = self._communication.rank
        self._batches.add("raw.chakra_communication", self._communication.frame())
        self._communication = TraceCommunication(self._issues)
        ids = np.concatenate([np.zeros(0, np.int64), *self._ids])
        self._issues.add("repeated_node_id", len(ids) - len(np.unique(ids)))
        self._ids = []

    def _finish(self, is_complete: bool) -> SourceSummary:
        if not self._stored and (self._issues.lost_events or not self._parts):
            raise InputUnusableError(
                "no node of an execution trace can be read",
                where=str(self._path),
                hint="record again; the observer must be stopped before the process ends",
            )
        self._end_part()
        for part in self._parts:
            check_schema(part.schema, self._issues)
        if not self._stored:
            self._issues.add("no_nodes")
        if not is_complete:
            self._issues.add("unfinished")
        rows = [self._file_row(number, part, is_complete) for number, part in enumerate(self._parts)]
        self._batches.add("raw.chakra_file", frame_of_rows("raw.chakra_file", rows))
        self._batches.flush()
        largest = max(self._parts, key=lambda part: part.node_count)
        event_count = self._stored + self._issues.lost_events
        issues = tuple(self._issues)
        return SourceSummary(KIND, largest.rank, None, largest.world_size, event_count, self._stored, issues)

    def _file_row(self, number: int, part: Part, is_complete: bool) -> dict[str, object]:
        """The row of a part; one whose nodes have starts is an ET+."""
        form, unit = ("pytorch_et_plus", "us") if number in self._timed else ("pytorch_et", None)
        return part.row(number, form, unit, is_complete)
