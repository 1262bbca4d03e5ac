"""One dump. In: a path. Out: batches of raw.flight_recorder_* rows, and a summary.

Idea: every field is taken only if it is of the type it should be; a dump is a stranger's file. The rank is not stated
inside, but it is a member of every group that the dump describes: often only one rank is in all of them. The JSON
that PyTorch writes holds progress as texts, 0 for moments that are not known, and calls every operation a collective.
Not handled: dumps above 512 MiB; which group a progress counter belongs to (`fabric.group_progress` says).
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.json_values import UNDECODABLE
from traceforge.reading.stream import read_whole
from traceforge.records import Batch, Issue, ReadOptions, SourceSummary
from traceforge.sources.flight_recorder.plain_pickle import load_plain

_LARGEST_BYTES = 512 * 1024 * 1024
_MILLISECOND_NS = 1_000_000
_MOST_FRAMES = 24
_LONGEST_FRAME = 300
_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII)
_MESSAGE = re.compile(r"\w+:(?:send|recv) \d+(?:->|<-)\d+", re.ASCII)
_COUNTED = ("enqueued", "started", "completed")

_GROUP: dict[str, pl.DataType] = {
    "process_group_name": pl.String(),
    "description": pl.String(),
    "ranks": pl.String(),
}
_PROGRESS: dict[str, pl.DataType] = {
    "process_group_id": pl.Int32(),
    "last_enqueued": pl.Int64(),
    "last_started": pl.Int64(),
    "last_completed": pl.Int64(),
}
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
Dump = Mapping[object, object]


def read_dump(path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read a dump.

    Raises:
        InputUnusableError: it is damaged, too large, or no dump.
    """
    data = read_whole(path, _LARGEST_BYTES, options.report_progress)
    dump = _json(data, path) if data.lstrip()[:1] == b"{" else load_plain(data, where=str(path))
    if not isinstance(dump, dict) or not isinstance(dump.get("entries", []), list):
        raise InputUnusableError("no flight recorder dump: it has no list of entries", where=str(path))
    entries = dump.get("entries", [])
    rows = [_entry(number, entry) for number, entry in enumerate(entries) if isinstance(entry, dict)]
    groups = _groups(dump.get("pg_config"))
    for name, found, schema in (
        ("entry", rows, _ENTRY),
        ("group", groups, _GROUP),
        ("progress", _progress(dump.get("pg_status")), _PROGRESS),
    ):
        if found:
            emit(Batch(f"raw.flight_recorder_{name}", pl.DataFrame(found, schema=schema)))
    lost = len(entries) - len(rows)
    detail = "entries of a dump that are no objects were left out"
    issues = (Issue("flight_recorder_unreadable_entry", "warning", lost, None, detail, lost),) if lost else ()
    members = [_members(group["ranks"]) for group in groups]
    rank = _integer(dump.get("rank"))
    rank = _only_common_member(members) if rank is None else rank
    return SourceSummary("flight_recorder", rank, None, _world_size(members), len(entries), len(rows), issues)


def _json(data: bytes, path: Path) -> object:
    try:
        return msgspec.json.decode(data)
    except UNDECODABLE as error:
        raise InputUnusableError(f"the JSON is not well-formed: {error}", where=str(path)) from error


def _entry(number: int, entry: Dump) -> dict[str, object]:
    group = entry.get("process_group")
    first = group[0] if isinstance(group, list | tuple) and group else group
    is_p2p, name = entry.get("is_p2p"), _text(entry.get("profiling_name"))
    is_message = name is not None and _MESSAGE.match(name) is not None
    retired = entry.get("retired")
    return {
        "entry_id": number,
        "record_number": _integer(entry.get("record_id", entry.get("id"))),
        "process_group_id": _integer(entry.get("pg_id"), 31),
        "process_group_name": _text(first),
        "collective_sequence": _integer(entry.get("collective_seq_id", None if is_message else entry.get("seq_id"))),
        "p2p_sequence": _integer(entry.get("p2p_seq_id")),
        "name": name,
        "is_p2p": is_message or (is_p2p if isinstance(is_p2p, bool) else None),
        "state": _text(entry.get("state")),
        "raw_created_ns": _integer(entry.get("time_created_ns")),
        "raw_noticed_start_ns": _integer(entry.get("time_discovered_started_ns")) or None,
        "raw_noticed_end_ns": _integer(entry.get("time_discovered_completed_ns")) or None,
        "duration_ns": _milliseconds(entry.get("duration_ms")),
        "timeout_ns": _milliseconds(entry.get("timeout_ms")),
        "in_shapes": _as_json(entry.get("input_sizes")),
        "out_shapes": _as_json(entry.get("output_sizes")),
        "in_dtypes": _as_json(entry.get("input_dtypes")),
        "out_dtypes": _as_json(entry.get("output_dtypes")),
        "is_retired": retired if isinstance(retired, bool) else None,
        "stack": _stack(entry.get("frames")),
    }


def _groups(config: object) -> list[dict[str, object]]:
    """The process groups that a dump describes, by name."""
    found: list[dict[str, object]] = []
    for key, own in config.items() if isinstance(config, dict) else ():
        facts = own if isinstance(own, dict) else {}
        ranks = facts.get("ranks")
        found.append(
            {
                "process_group_name": _text(facts.get("name")) or _key_text(key),
                "description": _text(facts.get("desc")),
                "ranks": _text(ranks) or _as_json(ranks),
            }
        )
    return found


def _progress(status: object) -> list[dict[str, object]]:
    """How far the process got in each group, by the group's number in the process: that is no group's name."""
    found: list[dict[str, object]] = []
    for key, stated in status.items() if isinstance(status, dict) else ():
        number = _integer(key, 31)
        if number is not None and isinstance(stated, dict):
            counts = {f"last_{name}": _integer(stated.get(f"last_{name}_collective")) for name in _COUNTED}
            found.append({"process_group_id": number, **counts})
    return found


def _members(ranks: object) -> frozenset[int]:
    """Ranks of a group from the JSON text of a list; none where it is something else."""
    try:
        found = json.loads(ranks) if isinstance(ranks, str) else None
    except (ValueError, RecursionError):
        return frozenset()
    numbers = [_integer(rank, 31) for rank in found] if isinstance(found, list) else []
    members = frozenset(number for number in numbers if number is not None and number >= 0)
    return members if len(members) == len(numbers) else frozenset()


def _only_common_member(groups: list[frozenset[int]]) -> int | None:
    """The only rank that is in every group whose members are known; None where there are several, or none."""
    known = [members for members in groups if members]
    common = frozenset.intersection(*known) if known else frozenset()
    return next(iter(common)) if len(common) == 1 else None


def _world_size(groups: list[frozenset[int]]) -> int | None:
    """Size of the largest group, if it counts from 0 without a hole."""
    largest = max(groups, key=len, default=frozenset())
    return len(largest) if largest and max(largest) == len(largest) - 1 else None


def _stack(frames: object) -> str | None:
    if not isinstance(frames, list) or not frames:
        return None
    known = [frame for frame in frames[:_MOST_FRAMES] if isinstance(frame, dict)]
    lines = (
        f"{_text(frame.get('name'))} at {_text(frame.get('filename'))}:{_integer(frame.get('line'))}"[:_LONGEST_FRAME]
        for frame in known
    )
    return "\n".join(lines) or None


def _integer(value: object, bits: int = 63) -> int | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and -(2**bits) <= value < 2**bits else None


def _milliseconds(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        return None
    return value * _MILLISECOND_NS if isinstance(value, int) else round(value * _MILLISECOND_NS)


def _text(value: object) -> str | None:
    # Half a surrogate pair, which Python's texts may hold, is no Unicode.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _key_text(key: object) -> str:
    return (_text(key) or _as_json(key) or "")[:_LONGEST_FRAME]


def _as_json(value: object) -> str | None:
    """A value of plain containers as JSON text; None where it is none."""
    try:
        return None if value is None else json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None
