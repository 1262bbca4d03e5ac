"""One Kineto file. In: a path. Out: batches of raw.* rows, and a summary.

Idea: opening, units and rest of the file pass through in order, once; only the base time may stand behind the events
that need it, and is then fetched from the end of the file before the first batch leaves.
Not handled: several files of one rank (each is read on its own).
"""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from traceforge.reading.collection import no_garbage_collection
from traceforge.reading.stream import ByteStream
from traceforge.records import Batch, Issue, ReadOptions, SourceSummary
from traceforge.sources.kineto.collectives import UnitArgs
from traceforge.sources.kineto.columns import EventColumns
from traceforge.sources.kineto.decode import NO_ARGS, EventUnit
from traceforge.sources.kineto.document import BASE_TIME_KEY, FileFacts, base_time_ns, bounded, find_base_time
from traceforge.sources.kineto.inputs import UnitInputs
from traceforge.sources.kineto.issues import new_log
from traceforge.sources.kineto.kinds import Flag, FlagArray, Kinds
from traceforge.sources.kineto.native import NativeColumns, ScannedUnit, native_columns
from traceforge.sources.kineto.opening import read_opening
from traceforge.sources.kineto.others import refuse_others
from traceforge.sources.kineto.splitter import UNIT_BYTES, AnyUnit, Splitter
from traceforge.sources.kineto.stray_times import StrayTimes
from traceforge.sources.kineto.tracks import TrackNames

BATCH_ROWS = 122_880  # a row group of DuckDB
_TAIL_BYTES = 16 * 1024 * 1024
_YEAR_2001_NS = 10**18
KIND = "kineto"


def read_file(
    path: Path,
    emit: Callable[[Batch], None],
    options: ReadOptions,
    *,
    unit_bytes: int = UNIT_BYTES,
    batch_rows: int = BATCH_ROWS,
    native: bool = True,
    of_any_tool: bool = True,
) -> SourceSummary:
    """Read a file, handing over batches of at least `batch_rows` events.

    Args:
        path: plain or gzip JSON.
        emit: takes each batch.
        options: what to keep, and what to call as it goes on.
        unit_bytes: how much text is decoded at a time; the result does not depend on it.
        batch_rows: how many events a batch holds, up to one unit more.
        native: read plain events with the scanner in C, where it is installed; the result does not depend on it.
        of_any_tool: read also what another tool than PyTorch's profiler wrote.

    Raises:
        InputUnusableError: nothing of the file can be used.
        NoRanksTraceError: another tool wrote it, or it holds several ranks.
    """
    with no_garbage_collection():
        reading = _KinetoReading(path, emit, options, batch_rows, native)
        return reading.run(unit_bytes, of_any_tool=of_any_tool)


class _KinetoReading:
    """What is gathered while one file is read."""

    def __init__(
        self, path: Path, emit: Callable[[Batch], None], options: ReadOptions, batch_rows: int, native: bool
    ) -> None:
        self._path = path
        self._emit = emit
        self._options = options
        self._batch_rows = batch_rows
        self._issues = new_log()
        self._tracks = TrackNames(self._issues)
        self._kinds = Kinds(self._tracks, self._issues)
        self._columns = EventColumns(self._kinds, self._issues)
        self._native = native_columns(self._kinds, self._tracks, options.keep_all_args) if native else None
        self._communication = UnitArgs(options.keep_all_args, self._issues)
        self._inputs = UnitInputs()
        self._strays = StrayTimes(self._issues)
        self._frames: list[pl.DataFrame] = []
        self._base_ns: int | None = None
        self._stored = 0

    def run(self, unit_bytes: int, *, of_any_tool: bool) -> SourceSummary:
        with ByteStream(self._path, self._options.report_progress) as stream:
            opening = read_opening(stream, unit_bytes, str(self._path), self._issues)
            if BASE_TIME_KEY in opening.members or not opening.is_object:
                self._base_ns = base_time_ns(opening.members)
            splitter = Splitter(stream, opening, self._issues, unit_bytes, self._native)
            for unit in splitter.units():
                self._take(unit)
            self._flush()
            if (held := self._strays.finish()) is not None:
                self._emit_occurrences(held)
        members = {**opening.members, **splitter.members}
        if self._stored and not of_any_tool:
            refuse_others(self._path, self._kinds, self._tracks, members)
        facts = FileFacts(bounded(members, self._issues))
        return self._finish(facts, base_time_ns(splitter.members))

    def _take(self, unit: AnyUnit) -> None:
        if isinstance(unit, ScannedUnit):
            self._end_frame(self._columns)
            for event_id, kind_id, text in unit.args:
                if self._kinds.flags_of(kind_id) & Flag.SHAPED:
                    self._inputs.add_text(event_id, text)
            self._communication.add_calls(unit.new_calls, unit.calls)
        elif unit.events:
            if self._native is not None:
                self._end_frame(self._native)
            flags = self._columns.add(unit)
            self._communication.add(unit, flags)
            self._inputs.add(unit, flags)
            self._name_tracks(unit, flags)
        if self._row_count() >= self._batch_rows:
            self._flush()

    def _end_frame(self, columns: EventColumns | NativeColumns) -> None:
        """Close the rows of one way of reading before those of the other begin, so that rows stay in order."""
        if columns.row_count:
            self._frames.append(columns.flush())

    def _row_count(self) -> int:
        native = self._native.row_count if self._native is not None else 0
        return sum(frame.height for frame in self._frames) + self._columns.row_count + native

    def _name_tracks(self, unit: EventUnit, flags: FlagArray) -> None:
        for place in (flags & Flag.NAMES_A_TRACK).nonzero()[0]:
            event, args = unit.events[place], unit.args[place]
            if args is not NO_ARGS:
                self._tracks.name(event.name, event.pid, event.tid, args)

    def _flush(self) -> None:
        self._end_frame(self._columns)
        if self._native is not None:
            self._end_frame(self._native)
        if self._frames:
            frame, self._frames = pl.concat(self._frames, rechunk=False), []
            self._stored += frame.height
            self._base_ns = self._base_for(frame)
            frame = self._strays.passed(frame, self._kinds.flags(frame["kind_id"].to_numpy()))
            self._emit(Batch("raw.event_kind", self._kinds.flush()))
            self._emit_occurrences(frame)
        texts = self._native.flush_texts() if self._native is not None else None
        for batch in (*self._communication.flush(texts), *self._inputs.flush()):
            self._emit(batch)
        if self._communication.forget_many() and self._native is not None:
            self._native.forget_calls()

    def _emit_occurrences(self, frame: pl.DataFrame) -> None:
        self._emit(Batch("raw.occurrence", frame.with_columns(pl.col("raw_start_ns") + (self._base_ns or 0))))

    def _base_for(self, frame: pl.DataFrame) -> int:
        """The base time; where the members before the events state none, those behind them are asked.

        That costs inflating the file once more, so it is left out where starts are absolute anyway.
        """
        if self._base_ns is None:
            starts = frame["raw_start_ns"].drop_nulls().sort()
            if starts.is_empty():
                return 0
            self._base_ns = 0
            if starts[len(starts) // 2] < _YEAR_2001_NS:
                with ByteStream(self._path) as stream:
                    self._base_ns = find_base_time(stream.tail(_TAIL_BYTES))
        return self._base_ns

    def _finish(self, facts: FileFacts, late_base_ns: int) -> SourceSummary:
        added_ns = self._base_ns or 0
        if late_base_ns not in (0, added_ns):
            self._issues.add("base_time_not_added")
        self._emit(Batch("raw.profile", facts.file_frame(added_ns)))
        for table, frame in (
            ("raw.process_group", facts.process_groups_frame(self._issues)),
            ("raw.track", self._tracks.frame()),
        ):
            if frame.height:
                self._emit(Batch(table, frame))
        event_count = self._stored + self._issues.lost_events
        if not event_count:
            self._issues.add("no_events")
        issues: tuple[Issue, ...] = tuple(self._issues)
        return SourceSummary(KIND, facts.rank, facts.host, facts.world_size, event_count, self._stored, issues)
