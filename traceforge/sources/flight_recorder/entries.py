"""Entries of a dump: the calls that it recorded. In: objects as decoded. Out: rows of raw.flight_recorder_entry.

Idea: one column after another; most frames are recorded again with every call from the same place, so a line of a
stack, and where a pickle shares frames also the stack, is written once. Calls of PyTorch 2.2 and 2.3 state only the
process's number of their group: 0 is the group of all ranks, which is made first; another is known only where the dump
describes groups by these numbers.
Not handled: entries that are no objects (`dump` counts them).
"""

import re
from collections.abc import Mapping, Sequence

import polars as pl

from traceforge.sources.flight_recorder.fields import JsonTexts, integer, integers, milliseconds, text

_MOST_FRAMES = 24
_LONGEST_FRAME = 300
_MESSAGE = re.compile(r"\w+:(?:send|recv) \d+(?:->|<-)\d+", re.ASCII)

_ENTRY: dict[str, pl.DataType] = {
    "entry_id": pl.Int64(),
    "record_number": pl.Int64(),
    "process_group_id": pl.Int32(),
    "process_group_name": pl.String(),
    "collective_sequence": pl.Int64(),
    "p2p_sequence": pl.Int64(),
    "name": pl.String(),
    "is_p2p": pl.Boolean(),
    "state": pl.String(),
    "raw_created_ns": pl.Int64(),
    "raw_noticed_start_ns": pl.Int64(),
    "raw_noticed_end_ns": pl.Int64(),
    "duration_ns": pl.Int64(),
    "timeout_ns": pl.Int64(),
    "in_shapes": pl.String(),
    "out_shapes": pl.String(),
    "in_dtypes": pl.String(),
    "out_dtypes": pl.String(),
    "is_retired": pl.Boolean(),
    "stack": pl.String(),
}
Entry = Mapping[object, object]


def entry_rows(
    numbers: Sequence[int], entries: Sequence[Entry], described: frozenset[str] = frozenset()
) -> pl.DataFrame:
    """The rows of entries.

    Args:
        numbers: the place of each in the dump.
        described: names of the groups that the dump describes.
    """

    def of(key: str) -> list[object]:
        return [entry.get(key) for entry in entries]

    names = list(map(text, of("profiling_name")))
    are_messages = [name is not None and _MESSAGE.match(name) is not None for name in names]
    by_entry = zip(entries, are_messages, strict=True)
    sequences = [e.get("collective_seq_id", None if is_message else e.get("seq_id")) for e, is_message in by_entry]
    json_texts, stacks = JsonTexts(), _Stacks()
    columns: dict[str, Sequence[object]] = {
        "entry_id": numbers,
        "record_number": integers(entry.get("record_id", entry.get("id")) for entry in entries),
        "process_group_id": integers(of("pg_id"), 31),
        "process_group_name": [_group_name(entry, described) for entry in entries],
        "collective_sequence": integers(sequences),
        "p2p_sequence": integers(of("p2p_seq_id")),
        "name": names,
        "is_p2p": [
            is_message or _boolean(stated) for is_message, stated in zip(are_messages, of("is_p2p"), strict=True)
        ],
        "state": list(map(text, of("state"))),
        "raw_created_ns": list(map(_created_ns, entries)),
        "raw_noticed_start_ns": [moment or None for moment in integers(of("time_discovered_started_ns"))],
        "raw_noticed_end_ns": [moment or None for moment in integers(of("time_discovered_completed_ns"))],
        "duration_ns": list(map(milliseconds, of("duration_ms"))),
        "timeout_ns": list(map(milliseconds, of("timeout_ms"))),
        "in_shapes": list(map(json_texts.of, of("input_sizes"))),
        "out_shapes": list(map(json_texts.of, of("output_sizes"))),
        "in_dtypes": list(map(json_texts.of, of("input_dtypes"))),
        "out_dtypes": list(map(json_texts.of, of("output_dtypes"))),
        "is_retired": list(map(_boolean, of("retired"))),
        "stack": list(map(stacks.of, of("frames"))),
    }
    return pl.DataFrame(columns, schema=_ENTRY)


def _group_name(entry: Entry, described: frozenset[str]) -> str | None:
    group = entry.get("process_group")
    if group is not None or "seq_id" not in entry:
        return text(group[0] if isinstance(group, list | tuple) and group else group)
    number = integer(entry.get("pg_id"), 31)
    return str(number) if number == 0 or str(number) in described else None


def _created_ns(entry: Entry) -> int | None:
    stated = integer(entry.get("time_created_ns"))
    created_us = integer(entry.get("time_created_us"), 53) if stated is None else None
    return stated if created_us is None else created_us * 1000


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


class _Stacks:
    """Stacks as text, of frames that all live as long as this."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, int], str] = {}
        self._stacks: dict[tuple[int, ...], str | None] = {}

    def of(self, frames: object) -> str | None:
        """The innermost frames, a line each; None where there are none."""
        if not isinstance(frames, list) or not frames:
            return None
        kept = frames[:_MOST_FRAMES]
        key = tuple(map(id, kept))
        if key not in self._stacks:
            self._stacks[key] = "\n".join(self._line(frame) for frame in kept if isinstance(frame, dict)) or None
        return self._stacks[key]

    def _line(self, frame: Entry) -> str:
        name, file, line = frame.get("name"), frame.get("filename"), frame.get("line")
        if not isinstance(name, str) or not isinstance(file, str) or type(line) is not int:
            return _line_of(name, file, line)
        key = name, file, line
        if key not in self._lines:
            self._lines[key] = _line_of(name, file, line)
        return self._lines[key]


def _line_of(name: object, file: object, line: object) -> str:
    return f"{text(name)} at {text(file)}:{integer(line)}"[:_LONGEST_FRAME]
