"""One debug log. In: a path. Out: batches of raw.nccl_* rows, and a summary.

Idea: block by block, the two frequent forms of lines are read many at once, all others one by one in order; what the
slow way learns makes later blocks fast, and both ways give the same rows, whatever the size of the blocks.
Not handled: several files of one job (each is read on its own; raw.nccl_communicator.comm_hash joins them).
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.nccl_log.byte_words import BoolArray, Int64Array
from traceforge.sources.nccl_log.canonical_lines import CanonicalLines, LineLayout, layout_of
from traceforge.sources.nccl_log.line_reader import LineReader
from traceforge.sources.nccl_log.many_rows import ManyRows
from traceforge.sources.nccl_log.state import LogState
from traceforge.sources.nccl_log.stream import BLOCK_BYTES, Block, LineStream
from traceforge.sources.nccl_log.tables import Tables

BATCH_ROWS = 122_880  # a row group of DuckDB


def read_file(
    path: Path,
    emit: Callable[[Batch], None],
    options: ReadOptions,
    *,
    block_bytes: int = BLOCK_BYTES,
    batch_rows: int = BATCH_ROWS,
) -> SourceSummary:
    """Read a log, handing over batches of at least `batch_rows` rows of a table.

    Args:
        path: plain or compressed text.
        emit: takes each batch.
        options: what to call as it goes on.
        block_bytes: how much text is read at a time; the rows do not depend on it.
        batch_rows: how many rows a batch holds, up to one block more.

    Raises:
        InputUnusableError: the file cannot be opened.
    """
    return _LogReading(Tables(emit, batch_rows)).run(LineStream(path, block_bytes, options.report_progress))


class _LogReading:
    """What is gathered while one log is read."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._state = LogState(tables)
        self._canonical = CanonicalLines(self._state.prefixes)
        self._line_reader = LineReader(self._state, self._canonical)
        self._many = ManyRows(self._state, self._canonical)

    def run(self, stream: LineStream) -> SourceSummary:
        for block in stream.blocks():
            stream.line_count += self._take(block, stream.line_count + 1)
            self._state.calls.finish_block()
            for handle in self._state.communicators.take_ended():
                self._tables.add("communicator", handle.row())
            self._tables.flush_full()
        return self._state.finish(stream)

    def _take(self, block: Block, first_line: int) -> int:
        """Read a block; returns its number of lines."""
        layout = layout_of(block)
        calls = self._canonical.calls(layout)
        found = {"collective_call": calls, "tuning": self._canonical.tunings(layout, calls)}
        is_fast = np.zeros(layout.starts.size, dtype=np.bool_)
        for lines in found.values():
            is_fast[lines.index] = True
        first = self._state.record_count
        slow_records = self._slow(layout, first_line, is_fast)
        # A record's number is the count of records before it, fast ones and slow ones.
        fast = np.flatnonzero(is_fast)
        ids = np.zeros(layout.starts.size, dtype=np.int64)
        ids[fast] = first + np.arange(fast.size) + np.searchsorted(slow_records, fast)
        for rule, lines in found.items():
            if lines.index.size:
                self._many.add(lines, ids[lines.index], lines.index + first_line, rule)
        self._state.record_count = first + fast.size + slow_records.size
        return layout.last.size

    def _slow(self, layout: LineLayout, first_line: int, is_fast: BoolArray) -> Int64Array:
        """Read the other lines one by one; returns the line of each record, counted from the block's first."""
        slow = np.flatnonzero(~is_fast)
        ids = (self._state.record_count + np.cumsum(is_fast)[slow]).tolist()
        starts, ends = layout.starts[slow].tolist(), layout.blanks[layout.last[slow]].tolist()
        found: list[int] = []
        for index, start, end, fast_id in zip(slow.tolist(), starts, ends, ids, strict=True):
            line = layout.text(start, end)
            if self._line_reader.may_hold_records(line):
                count = self._line_reader.read(line, first_line + index, fast_id + len(found))
                found.extend([index] * count)
        return np.array(found, dtype=np.int64)
