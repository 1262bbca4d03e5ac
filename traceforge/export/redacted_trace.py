"""One rank's timeline without names. In: a Kineto file's rows in a store. Out: Chrome trace events as JSON.

Idea: only known columns of tables are written and nothing of the file, so that no name slips through: kinds of events
with their names replaced, times exact to the ns, tracks, flows, and the numbers that join events.
Not handled: other arguments (shapes, stacks), counters, metadata beside the events; they are left out.
"""

import json
from typing import BinaryIO

from traceforge.redaction import Redaction
from traceforge.store.database import Store

_EVENTS_AT_ONCE = 100_000
_TRACKS = """
SELECT track_id, process, thread, process_name, process_labels, thread_name
FROM raw.track
WHERE source_id = ?
ORDER BY track_id
"""
_KINDS = """
SELECT kind_id, phase, category, name, track_id
FROM raw.event_kind
WHERE source_id = ? AND phase IN ('X', 'B', 'E', 'i', 'I', 's', 't', 'f')
ORDER BY kind_id
"""
_EVENTS = """
SELECT kind_id, raw_start_ns, duration_ns, flow_id, stream, device, correlation, external_id, size_bytes,
  record_function_id
FROM raw.occurrence
WHERE source_id = ? AND event_id >= ? AND event_id < ? AND raw_start_ns IS NOT NULL
ORDER BY event_id
"""
_EXTENT = "SELECT COALESCE(MAX(event_id), -1) + 1 FROM raw.occurrence WHERE source_id = ?"
_ARGUMENTS = ("stream", "device", "correlation", "External id", "bytes", "Record function id")
_INSTANTS, _FLOW_END = ("i", "I"), "f"


def write_trace(store: Store, source_id: int, base_time_ns: int, redaction: Redaction, target: BinaryIO) -> None:
    """Write the trace; times are µs since `base_time_ns`, as in the file it was read from."""
    tracks = redaction.frame(store.query(_TRACKS, [source_id])).to_dicts()
    places = {row["track_id"]: {"pid": _number(row["process"]), "tid": _number(row["thread"])} for row in tracks}
    named = [event for row in tracks for event in _named(places[row["track_id"]], row)]
    kinds: dict[int, tuple[str, str]] = {}
    for row in redaction.frame(store.query(_KINDS, [source_id])).to_dicts():
        fields = {"ph": row["phase"], "cat": row["category"], "name": row["name"], **places.get(row["track_id"], {})}
        if row["phase"] in _INSTANTS:
            fields["s"] = "t"
        elif row["phase"] == _FLOW_END:
            fields["bp"] = "e"
        known = {name: value for name, value in fields.items() if value is not None}
        kinds[row["kind_id"]] = row["phase"], json.dumps(known)[:-1]
    target.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
    target.write(",\n".join(json.dumps(event) for event in named).encode())
    separator = ",\n" if named else ""
    for first in range(0, int(store.value(_EXTENT, [source_id])), _EVENTS_AT_ONCE):
        rows = store.query(_EVENTS, [source_id, first, first + _EVENTS_AT_ONCE]).iter_rows()
        events = [_event(*kinds[row[0]], row[1] - base_time_ns, row[2:]) for row in rows if row[0] in kinds]
        if events:
            target.write((separator + ",\n".join(events)).encode())
            separator = ",\n"
    target.write(b"\n]}\n")


def _event(phase: str, fields: str, start_ns: int, numbers: tuple[int | None, ...]) -> str:
    duration_ns, flow_id, *facts = numbers
    duration = f', "dur": {_us(duration_ns)}' if phase == "X" and duration_ns is not None else ""
    flow = f', "id": {flow_id}' if flow_id is not None else ""
    args = ", ".join(f'"{name}": {fact}' for name, fact in zip(_ARGUMENTS, facts, strict=True) if fact is not None)
    return f'{fields}, "ts": {_us(start_ns)}{duration}{flow}, "args": {{{args}}}}}'


def _us(time_ns: int) -> str:
    """µs with three decimals; a double would round large times."""
    whole, rest = divmod(abs(time_ns), 1_000)
    return f"{'-' if time_ns < 0 else ''}{whole}.{rest:03d}"


def _number(text: str | None) -> int | str:
    """A pid or tid as the profiler wrote it: a number, mostly."""
    return int(text) if text and text.isascii() and text.removeprefix("-").isdigit() else text or ""


def _named(place: dict[str, int | str], row: dict[str, str | None]) -> list[dict[str, object]]:
    process, thread = row["process_labels"] or row["process_name"], row["thread_name"]
    names = {"process_name": process, "thread_name": thread}
    return [{"ph": "M", "name": kind, **place, "args": {"name": name}} for kind, name in names.items() if name]
