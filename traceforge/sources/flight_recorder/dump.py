"""One dump. In: a path. Out: batches of raw.flight_recorder_* rows, and a summary.

Idea: every field is taken only if it is of the type it should be; a dump is a stranger's file. The rank is not stated
inside, but it is a member of every group that the dump describes: often only one rank is in all of them. The JSON
that PyTorch writes holds progress as texts, 0 for moments that are not known, and calls every operation a collective.
Not handled: dumps above 512 MiB; which group a progress counter belongs to (`fabric.group_progress` says).
"""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.collection import no_garbage_collection
from traceforge.reading.json_values import UNDECODABLE
from traceforge.reading.stream import read_whole
from traceforge.records import Batch, Issue, ReadOptions, SourceSummary
from traceforge.sources.flight_recorder.entries import entry_rows
from traceforge.sources.flight_recorder.fields import as_json, integer, text
from traceforge.sources.flight_recorder.plain_pickle import load_plain

_LARGEST_BYTES = 512 * 1024 * 1024
_LONGEST_NAME = 300
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


def read_dump(path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read a dump.

    Raises:
        InputUnusableError: it is damaged, too large, or no dump.
    """
    with no_garbage_collection():
        dump = _decoded(path, options)
        if isinstance(dump, list):  # PyTorch 2.2 writes nothing but the calls.
            dump = {"entries": dump}
        if not isinstance(dump, dict) or not isinstance(dump.get("entries", []), list):
            raise InputUnusableError("no flight recorder dump: it has no list of entries", where=str(path))
        entries = dump.get("entries", [])
        readable = {number: entry for number, entry in enumerate(entries) if isinstance(entry, dict)}
        groups = _groups(dump.get("pg_config"))
        if readable:
            names = frozenset(str(group["process_group_name"]) for group in groups)
            emit(Batch("raw.flight_recorder_entry", entry_rows(list(readable), list(readable.values()), names)))
    progress = _progress(dump.get("pg_status"))
    for name, found, schema in (("group", groups, _GROUP), ("progress", progress, _PROGRESS)):
        if found:
            emit(Batch(f"raw.flight_recorder_{name}", pl.DataFrame(found, schema=schema)))
    lost = len(entries) - len(readable)
    detail = "entries of a dump that are no objects were left out"
    issues = (Issue("flight_recorder_unreadable_entry", "warning", lost, None, detail, lost),) if lost else ()
    members = [_members(group["ranks"]) for group in groups]
    rank = integer(dump.get("rank"))
    rank = _only_common_member(members) if rank is None else rank
    return SourceSummary("flight_recorder", rank, None, _world_size(members), len(entries), len(readable), issues)


def _decoded(path: Path, options: ReadOptions) -> object:
    data = read_whole(path, _LARGEST_BYTES, options.report_progress)
    return _json(data, path) if data.lstrip()[:1] == b"{" else load_plain(data, where=str(path))


def _json(data: bytes, path: Path) -> object:
    try:
        return msgspec.json.decode(data)
    except UNDECODABLE as error:
        raise InputUnusableError(f"the JSON is not well-formed: {error}", where=str(path)) from error


def _groups(config: object) -> list[dict[str, object]]:
    """The process groups that a dump describes, by name."""
    found: list[dict[str, object]] = []
    for key, own in config.items() if isinstance(config, dict) else ():
        facts = own if isinstance(own, dict) else {"ranks": own if isinstance(own, list) else None}
        ranks = facts.get("ranks")
        found.append(
            {
                "process_group_name": text(facts.get("name")) or _key_text(key),
                "description": text(facts.get("desc")),
                "ranks": text(ranks) or as_json(ranks),
            }
        )
    return found


def _progress(status: object) -> list[dict[str, object]]:
    """How far the process got in each group, by the group's number in the process: that is no group's name."""
    found: list[dict[str, object]] = []
    for key, stated in status.items() if isinstance(status, dict) else ():
        number = integer(key, 31)
        if number is not None and isinstance(stated, dict):
            counts = {f"last_{name}": integer(stated.get(f"last_{name}_collective")) for name in _COUNTED}
            found.append({"process_group_id": number, **counts})
    return found


def _members(ranks: object) -> frozenset[int]:
    """Ranks of a group from the JSON text of a list; none where it is something else."""
    try:
        found = json.loads(ranks) if isinstance(ranks, str) else None
    except (ValueError, RecursionError):
        return frozenset()
    numbers = [integer(rank, 31) for rank in found] if isinstance(found, list) else []
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


def _key_text(key: object) -> str:
    return (text(key) or as_json(key) or "")[:_LONGEST_NAME]
