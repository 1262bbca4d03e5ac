"""One Chakra file. In: a path. Out: batches of raw.chakra_* rows, and a summary.

Idea: the first bytes show which of the three forms it is; each form yields frames of the same tables, block by block.
Not handled: archives; the rank, unless the metadata states it (writers put it into the file's name).
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.batches import BATCH_ROWS, Batches
from traceforge.reading.chakra_file import nothing_there
from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.reading.collection import no_garbage_collection
from traceforge.reading.stream import ByteStream
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.chakra.binary import BinaryTrace
from traceforge.sources.chakra.issues import new_log
from traceforge.sources.chakra.json_trace import JsonTrace
from traceforge.sources.chakra.recognition import BINARY, form_of_json

KIND = "chakra"
_HEAD_BYTES = 256 * 1024
_BOM = b"\xef\xbb\xbf"


def read_file(
    path: Path,
    emit: Callable[[Batch], None],
    options: ReadOptions,
    *,
    unit_bytes: int | None = None,
    batch_rows: int = BATCH_ROWS,
) -> SourceSummary:
    """Read a file, handing over batches of at least `batch_rows` rows.

    Args:
        path: plain or gzip.
        emit: takes each batch.
        options: what to keep, and what to call as it goes on.
        unit_bytes: how much is decoded in one step; the result does not depend on it. None takes what is fastest.
        batch_rows: how many rows a batch holds, up to one unit more.

    Raises:
        InputUnusableError: nothing of the file can be used.
    """
    with no_garbage_collection():
        return _ChakraReading(path, emit, options, batch_rows).run(unit_bytes)


class _ChakraReading:
    """What is gathered while one file is read."""

    def __init__(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions, batch_rows: int) -> None:
        self._path = path
        self._options = options
        self._batches = Batches(emit, batch_rows)
        self._issues = new_log()
        self._ids: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        self._stored = 0

    def run(self, unit_bytes: int | None) -> SourceSummary:
        with ByteStream(self._path, self._options.report_progress) as stream:
            head = stream.read(_HEAD_BYTES)
            if not head:
                raise nothing_there(stream, self._path)
            form = form_of_json(head) or BINARY
            trace = self._trace(stream, head, form, unit_bytes)
            for frames in trace.frames():
                for table, rows in frames:
                    self._take(table, rows)
            if stream.damage is not None:
                self._issues.add("damaged_compression", at=f"byte {stream.position}", because=stream.damage)
        return self._finish(trace, form, trace.is_complete and stream.damage is None)

    def _trace(self, stream: ByteStream, head: bytes, form: str, unit_bytes: int | None) -> BinaryTrace | JsonTrace:
        where, keep_all = str(self._path), self._options.keep_all_args
        if form == BINARY:
            return BinaryTrace(stream, head, where, keep_all, self._issues, unit_bytes)
        text = head.removeprefix(_BOM).lstrip()
        return JsonTrace(stream, text, form, keep_all, self._issues, unit_bytes)

    def _take(self, table: str, rows: pl.DataFrame) -> None:
        if table == "raw.chakra_node":
            self._stored += rows.height
            self._ids.append((rows["part"].to_numpy(), rows["node_id"].drop_nulls().to_numpy()))
        self._batches.add(table, rows)

    def _finish(self, trace: BinaryTrace | JsonTrace, form: str, is_complete: bool) -> SourceSummary:
        if not self._stored and (self._issues.lost_events or not trace.parts):
            raise InputUnusableError(
                "no node of a Chakra trace can be read", where=str(self._path), hint="write or copy the file again"
            )
        self._count_repeated_ids()
        rows = [part.row(number, form, "us", is_complete) for number, part in enumerate(trace.parts)]
        self._batches.add("raw.chakra_file", frame_of_rows("raw.chakra_file", rows))
        self._batches.flush()
        if not self._stored:
            self._issues.add("no_nodes")
        rank = next((part.rank for part in trace.parts if part.rank is not None), None)
        event_count = self._stored + self._issues.lost_events
        return SourceSummary(KIND, rank, None, None, event_count, self._stored, tuple(self._issues))

    def _count_repeated_ids(self) -> None:
        """Ids are what edges refer to; a trace that uses one twice is ambiguous."""
        for part in np.unique(np.concatenate([np.zeros(0, np.int64), *[parts[:1] for parts, _ in self._ids]])):
            ids = np.concatenate([ids for parts, ids in self._ids if parts[0] == part])
            self._issues.add("repeated_node_id", len(ids) - len(np.unique(ids)))
