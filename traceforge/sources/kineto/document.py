"""What stands beside the events. In: the text before and behind the list of events. Out: raw.profile, process groups.

Idea: the text before the list, closed by `]}`, and the text behind it, opened by `{`, are small JSON objects of their
own; their members stay raw text until asked for. Metadata stands before the events, behind them, or both; a top-level
list of events (PyTorch 1.8) has none. Memory is bounded: process groups beyond `MOST_GROUPS`
are left out and counted. Not handled: several lists of process groups; the last one counts.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_repair import repair_text
from traceforge.reading.json_values import NO_TOKEN, UNDECODABLE, trailing_place
from traceforge.reading.lenient import BEYOND_RANKS, integer_of, text_of
from traceforge.sources.kineto.exact_time import LIMIT_NS
from traceforge.sources.kineto.issues import new_log

if TYPE_CHECKING:
    import polars as pl

Members = dict[str, Raw]
EVENTS_KEY = "traceEvents"
BASE_TIME_KEY = "baseTimeNanoseconds"
_LAST_MEMBERS = 64
_LAST_KEYS = 16
MOST_GROUPS = 65_536
MOST_METADATA_BYTES = 8 * 1024 * 1024
_WORTH_A_COPY = 1024 * 1024
_DISTRIBUTED = "distributedInfo"
_GROUPS = "pg_config"
_CLOSERS = (b"}", b"]", b",")

_members = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])


def decode_members(text: bytes | bytearray | memoryview) -> Members:
    """The members of a JSON object as raw text.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is no sound object.
    """
    return {key: _held(value) for key, value in _members.decode(text).items()}


def _held(value: Raw) -> Raw:
    """A small value alone: it would keep all text in memory. A large one is a good part of that anyway."""
    return Raw(bytes(value)) if _size(value) <= _WORTH_A_COPY else value


def _size(value: Raw) -> int:
    return memoryview(value).nbytes


def bounded(members: Members, issues: IssueLog) -> Members:
    """The members that fit `MOST_METADATA_BYTES`, in their order; of many process groups the first ones."""
    if sum(map(_size, members.values())) <= MOST_METADATA_BYTES:
        return members
    kept: Members = {}
    left_bytes = MOST_METADATA_BYTES
    for key, value in members.items():
        fitting = _first_groups(value, left_bytes) if key == _DISTRIBUTED else value
        if _size(fitting) <= left_bytes:
            kept[key] = Raw(bytes(fitting))
            left_bytes -= _size(fitting)
        issues.add("large_metadata", _size(value) - _size(kept.get(key, NO_TOKEN)))
    return kept


def _first_groups(distributed: Raw, most_bytes: int) -> Raw:
    """The facts of a job with as many of its process groups, the first ones, as fit; as it is where that is no help."""
    facts = {} if _size(distributed) <= most_bytes else _try_members(memoryview(distributed)) or {}
    groups = facts.get(_GROUPS, NO_TOKEN)
    others_bytes = _size(distributed) - _size(groups)
    end = most_bytes - others_bytes
    if groups is NO_TOKEN or end < 0:
        return distributed
    text = bytes(memoryview(groups)[:end])
    for _ in range(_LAST_MEMBERS):
        end = text.rfind(b"}", 0, end)
        if end < 0:
            break
        try:
            _list.decode(shorter := text[: end + 1] + b"]")
        except UNDECODABLE:
            continue
        return Raw(msgspec.json.encode({**facts, _GROUPS: Raw(shorter)}))
    return Raw(msgspec.json.encode({**facts, _GROUPS: Raw(b"[]")}))


def read_members(text: bytes, issues: IssueLog) -> tuple[Members, bytes | None]:
    """The members of an object that may be damaged, cut off, or followed by other bytes.

    Returns:
        members: those that can be read.
        rest: the bytes behind the object; None where the object does not end.
    """
    for attempt in (text, repair_text(text).text):
        try:
            members = decode_members(attempt)
        except UNDECODABLE as error:
            end = trailing_place(error) or 0
        else:
            if attempt is not text:
                issues.add("unreadable_metadata")
            return members, b""
        if (found := _try_members(attempt[:end])) is not None:
            return found, attempt[end:]
    return first_members(text), None


def _try_members(text: bytes | memoryview) -> Members | None:
    try:
        return decode_members(text)
    except UNDECODABLE:
        return None


def first_members(text: bytes) -> Members:
    """The complete members of an object that is cut off or damaged further on."""
    end = len(text)
    for _ in range(_LAST_MEMBERS):
        end = text.rfind(b",", 0, end)
        if end < 0:
            break
        if (members := _try_members(text[:end] + b"}")) is not None:
            return members
    return {}


def base_time_ns(members: Mapping[str, Raw]) -> int:
    """baseTimeNanoseconds, or 0 where the members state none that fits."""
    number = _integer(members.get(BASE_TIME_KEY))
    return number if number is not None and abs(number) <= LIMIT_NS else 0


def find_base_time(tail: bytes) -> int:
    """baseTimeNanoseconds among the members behind the list of events, given the end of a file; 0 without.

    What follows the key must complete one object: so a key of the same name inside an event is not taken for it.
    """
    place = len(tail)
    for _ in range(_LAST_KEYS):
        place = tail.rfind(f'"{BASE_TIME_KEY}"'.encode(), 0, place)
        if place < 0:
            break
        members, rest = read_members(b"{" + tail[place:], new_log())
        if BASE_TIME_KEY in members and (rest or b"").strip()[:1] not in _CLOSERS:
            return base_time_ns(members)
    return 0


class FileFacts:
    """What a file says about itself.

    Args:
        members: everything beside the events.
    """

    def __init__(self, members: Members) -> None:
        self._members = members
        self._distributed = _object(members.get("distributedInfo"))
        self.rank = _at_least(0, self._distributed.get("rank"))
        self.world_size = _at_least(1, self._distributed.get("world_size"))
        self.host = _text(members.get("host_name")) or None

    def file_frame(self, base_ns: int) -> "pl.DataFrame":
        """The row of raw.profile; `base_ns` is what was added to every start."""
        import polars as pl

        devices = _objects(_elements(self._members.get("deviceProperties"))[:1])
        integers = {
            "schema_version": _int32(self._members.get("schemaVersion")),
            "rank": self.rank,
            "world_size": self.world_size,
        }
        texts = {
            "backend": _text(self._distributed.get("backend")),
            "nccl_version": _text(self._distributed.get("nccl_version")),
            "host_name": self.host,
            "device_name": _text(devices[0].get("name")) if devices else None,
            "trace_id": _text(self._members.get("trace_id")),
            "metadata": msgspec.json.encode(self._members).decode("utf-8", "replace"),
        }
        return pl.DataFrame(
            [pl.Series("base_time_ns", [base_ns], pl.Int64)]
            + [pl.Series(name, [value], pl.Int32) for name, value in integers.items()]
            + [pl.Series(name, [value], pl.String) for name, value in texts.items()]
        )

    def process_groups_frame(self, issues: IssueLog) -> "pl.DataFrame":
        """The rows of raw.process_group; what is left out is counted."""
        import polars as pl

        listed = _elements(self._distributed.get("pg_config"))
        issues.add("too_many_process_groups", max(0, len(listed) - MOST_GROUPS))
        groups = _objects(listed[:MOST_GROUPS])
        columns = (
            ("process_group_name", "pg_name", _text, pl.String),
            ("description", "pg_desc", _text, pl.String),
            ("backend", "backend_config", _text, pl.String),
            ("size", "pg_size", _int32, pl.Int32),
            ("ranks", "ranks", _ranks, pl.String),
        )
        return pl.DataFrame(
            [pl.Series(name, [read(group.get(key)) for group in groups], kind) for name, key, read, kind in columns]
        )


def _text(raw: Raw | None) -> str | None:
    return None if raw is None else text_of(bytes(raw))


def _ranks(raw: Raw | None) -> str | None:
    return None if raw is None or BEYOND_RANKS.search(bytes(raw)) else _text(raw)


def _integer(raw: Raw | None) -> int | None:
    return None if raw is None else integer_of(bytes(raw))


def _int32(raw: Raw | None) -> int | None:
    number = _integer(raw)
    return number if number is not None and abs(number) < 2**31 else None


def _at_least(least: int, raw: Raw | None) -> int | None:
    """A number, unless it is less: PyTorch writes -1 for the rank of a process that is in no group."""
    number = _int32(raw)
    return number if number is not None and number >= least else None


def _object(raw: Raw | None) -> Members:
    return {} if raw is None else _try_members(bytes(raw)) or {}


def _objects(elements: list[Raw]) -> list[Members]:
    return [found for element in elements if (found := _object(element))]


def _elements(raw: Raw | None) -> list[Raw]:
    """The elements of a list, or the single value that stands in its place."""
    if raw is None:
        return []
    try:
        return _list.decode(bytes(raw))
    except UNDECODABLE:
        return [raw]
