"""Events to frames. In: `EventUnit`s. Out: bounded frames of raw.occurrence, times without the base time.

Idea: each unit's fields are packed into plain bytes at once, while its Python objects are still in the processor's
cache; a batch of many units then becomes columns in a few vectorised steps.
Not handled: phases B/E are not paired; each stays an event of its own.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Raw

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import ABSENT
from traceforge.reading.lenient import integer_of
from traceforge.sources.kineto.decode import Args, Event, EventUnit
from traceforge.sources.kineto.exact_time import Times, to_nanoseconds
from traceforge.sources.kineto.kinds import FLOW_PHASES, Flag, FlagArray, Kinds

Int64Array = npt.NDArray[np.int64]
_INT32_COLUMNS = frozenset({"stream", "device"})
_ABSENT_BYTES = struct.pack("q", ABSENT)
_BLOCK_ROWS = 8_192
_NO_STREAM = 2**32 - 1  # what CUPTI writes for synchronisation without a stream
_ARGUMENTS: dict[str, Callable[[list[Args]], list[int]]] = {
    "correlation": lambda args: [a.correlation for a in args],
    "external_id": lambda args: [a.external_id for a in args],
    "old_external_id": lambda args: [a.old_external_id for a in args],
    "stream": lambda args: [a.stream for a in args],
    "device": lambda args: [a.device for a in args],
    "size_bytes": lambda args: [a.size_bytes for a in args],
    "memory_bytes": lambda args: [a.memory_bytes for a in args],
    "record_function_id": lambda args: [a.record_function_id for a in args],
}


class EventColumns:
    """Collects units until `flush` makes a frame of them.

    Attributes:
        row_count: events collected since the last flush.
    """

    def __init__(self, kinds: Kinds, issues: IssueLog) -> None:
        self._kinds = kinds
        self._issues = issues
        self.row_count = 0
        self._blocks: list[dict[str, npt.NDArray[Any]]] = []
        self._clear()

    def _clear(self) -> None:
        self._unit_rows = 0
        self._kind_ids: list[bytes] = []
        self._event_ids: list[Int64Array] = []
        self._starts: list[bytes] = []
        self._durations: list[bytes] = []
        self._flows: list[bytes] = []
        self._arguments: dict[str, list[bytes]] = {name: [] for name in _ARGUMENTS}

    def add(self, unit: EventUnit) -> FlagArray:
        """Take a unit; returns the `Flag`s of its events."""
        events = unit.events
        count = len(events)
        kind_ids = struct.pack(f"{count}i", *self._kinds.ids(events))
        self._kind_ids.append(kind_ids)
        self._event_ids.append(unit.event_ids())
        self._starts.append(_lines([e.ts for e in events]))
        self._durations.append(_lines([e.dur for e in events]))
        self._flows.append(_pack_flows(unit, self._issues))
        for name, values in _ARGUMENTS.items():
            self._arguments[name].append(_pack_arguments(values(unit.args), unit, self._issues))
        self.row_count += count
        self._unit_rows += count
        if self._unit_rows >= _BLOCK_ROWS:
            self._end_block()
        return self._kinds.flags(np.frombuffer(kind_ids, np.int32))

    def flush(self) -> pl.DataFrame:
        """The collected events as rows of raw.occurrence; the next unit begins a new batch."""
        self._end_block()
        columns = {name: np.concatenate([block[name] for block in self._blocks]) for name in self._blocks[0]}
        self._blocks, self.row_count = [], 0
        return pl.DataFrame([_series(name, values) for name, values in columns.items()])

    def _end_block(self) -> None:
        """Make columns of the units since the last block: few enough for the processor's cache."""
        kind_ids = np.frombuffer(b"".join(self._kind_ids), np.int32)
        event_ids = np.concatenate([np.zeros(0, np.int64), *self._event_ids])
        integers = self._integer_columns(event_ids, self._kinds.flags(kind_ids))
        self._blocks.append({"kind_id": kind_ids, "event_id": event_ids, **integers})
        self._clear()

    def _integer_columns(self, event_ids: Int64Array, flags: FlagArray) -> dict[str, Int64Array]:
        """All columns of integers, `ABSENT` where the file states nothing that fits."""
        values = {name: np.frombuffer(b"".join(pieces), np.int64) for name, pieces in self._arguments.items()}
        for name, other in (("external_id", "old_external_id"), ("size_bytes", "memory_bytes")):
            values[name] = np.where(values[name] == ABSENT, values.pop(other), values[name])
        columns = dict(values)
        for name in _INT32_COLUMNS:
            columns[name] = _within_int32(values[name], event_ids, self._issues)
        flows = np.frombuffer(b"".join(self._flows), np.int64)
        columns["flow_id"] = np.where(flags & Flag.FLOW, flows, ABSENT)
        columns["raw_start_ns"] = self._starts_ns(event_ids, flags)
        columns["duration_ns"] = self._durations_ns(event_ids)
        return columns

    def _starts_ns(self, event_ids: Int64Array, flags: FlagArray) -> Int64Array:
        starts = to_nanoseconds(b"".join(self._starts))
        self._count_unusable(starts, event_ids)
        nameless = np.flatnonzero(~starts.known & ((flags & Flag.METADATA) == 0))
        _count_places("event_without_timestamp", nameless, event_ids, self._issues)
        return np.where(starts.known, starts.values_ns, ABSENT)

    def _durations_ns(self, event_ids: Int64Array) -> Int64Array:
        durations = to_nanoseconds(b"".join(self._durations))
        self._count_unusable(durations, event_ids)
        negative = np.flatnonzero(durations.values_ns < 0)
        _count_places("negative_duration", negative, event_ids, self._issues)
        return np.where(durations.known, np.maximum(durations.values_ns, 0), ABSENT)

    def _count_unusable(self, times: Times, event_ids: Int64Array) -> None:
        _count_places("wrong_type", times.unreadable, event_ids, self._issues)
        _count_places("out_of_range", times.out_of_range, event_ids, self._issues)


def _series(name: str, values: npt.NDArray[Any]) -> pl.Series:
    """A column with NULL for `ABSENT`."""
    series = pl.Series(name, values)
    present = values != ABSENT
    if not present.all():
        series = series.zip_with(pl.Series(present), pl.Series([None], dtype=series.dtype))
    return series.cast(pl.Int32) if name in _INT32_COLUMNS else series


def _lines(tokens: list[Raw]) -> bytes:
    """Tokens, each ended by a newline; objects and lists, which may hold newlines, become unreadable texts."""
    joined = b"\n".join(tokens)
    if b"{" in joined or b"[" in joined:
        joined = b"\n".join([b'"?"' if bytes(token)[:1] in b"{[" else token for token in tokens])
    return joined + b"\n"


def _pack_arguments(values: list[int], unit: EventUnit, issues: IssueLog) -> bytes:
    if values.count(ABSENT) == len(values):
        return _ABSENT_BYTES * len(values)
    try:
        return struct.pack(f"{len(values)}q", *values)
    except struct.error:
        return _pack_fitting(values, unit.event_ids(), issues)


def _pack_flows(unit: EventUnit, issues: IssueLog) -> bytes:
    values = [e.id for e in unit.events]
    try:
        return struct.pack(f"{len(values)}q", *values)
    except struct.error:
        flows = [_flow_id(event, number, issues) for event, number in zip(unit.events, unit.event_ids(), strict=True)]
        return _pack_fitting(flows, unit.event_ids(), issues)


def _flow_id(event: Event, event_id: int, issues: IssueLog) -> int:
    """The id of a flow as an integer, also from a text; other phases may use ids of any kind."""
    if event.ph not in FLOW_PHASES:
        return ABSENT
    if isinstance(event.id, int):
        return event.id
    number = integer_of(b'"%s"' % event.id.encode())
    if number is None:
        issues.add("wrong_type", at=f"event {event_id}")
    return ABSENT if number is None else number


def _pack_fitting(values: list[int], event_ids: Int64Array, issues: IssueLog) -> bytes:
    fitting = [value if -(2**63) <= value < 2**63 else ABSENT for value in values]
    misfits = [index for index, value in enumerate(values) if value != fitting[index]]
    _count_places("out_of_range", misfits, event_ids, issues)
    return struct.pack(f"{len(fitting)}q", *fitting)


def _count_places(
    code: str, places: Sequence[int] | npt.NDArray[np.intp], event_ids: Int64Array, issues: IssueLog
) -> None:
    if len(places):
        issues.add(code, len(places), at=f"event {event_ids[places[0]]}")


def _within_int32(column: Int64Array, event_ids: Int64Array, issues: IssueLog) -> Int64Array:
    misfits = np.flatnonzero((column != ABSENT) & (np.abs(column) >= 2**31))
    surprising = misfits[column[misfits] != _NO_STREAM]
    _count_places("out_of_range", surprising, event_ids, issues)
    if not len(misfits):
        return column
    fitting = column.copy()
    fitting[misfits] = ABSENT
    return fitting
