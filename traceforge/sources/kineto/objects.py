"""One event out of damaged text. In: bytes, and where an object begins. Out: the event, and where the object ends.

Idea: msgspec reads one object and complains about what follows it, and its complaint says where that is. Where the
object itself is damaged, its end is guessed: the first closing brace before a separator for which the text from its
beginning can be repaired. Not handled: damaged objects of more than 256 KiB.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from msgspec import Raw

from traceforge.sources.kineto.decode import NO_TOKEN, UNDECODABLE, Event, is_incomplete
from traceforge.sources.kineto.issues import IssueLog
from traceforge.sources.kineto.lenient import read_event
from traceforge.sources.kineto.text_repair import repairs

_LARGEST_REPAIR = 256 * 1024
_MOST_ENDS = 64
_MOST_RESUMES = 1000
_OBJECT_END = re.compile(rb"\}(?=[ \t\r\n,]*(?:\{|\]|\Z))")
_RESUME = re.compile(rb'\{(?=[ \t\r\n]*"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s)"[ \t\r\n]*:)')
_BLANK = b" \t\r\n"


class _NoFields(msgspec.Struct, gc=False):
    pass


_skip = msgspec.json.Decoder(_NoFields)


class DamagedError(ValueError):
    """An object is no JSON, even after repair."""


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """An event, the raw text of its arguments, and the place behind it."""

    event: Event
    args: Raw
    end: int


def trailing_place(error: Exception) -> int | None:
    """Where the bytes behind a sound value begin, if that is what decoding complains about."""
    match = re.search(r"trailing characters \(byte (\d+)\)", str(error))
    return int(match[1]) - 1 if match else None


def decode_repaired(data: bytes, place: str, issues: IssueLog) -> tuple[Event, Raw]:
    """An event and the raw text of its arguments, repaired where that suffices.

    Raises:
        NotAnObjectError: it is sound JSON, but no object.
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is no JSON, even after repair.
    """
    try:
        return read_event(data, place, issues)
    except RecursionError:
        raise
    except UNDECODABLE as error:
        damage = error
    for repaired in repairs(data):
        try:
            event = read_event(repaired.text, place, issues)
        except UNDECODABLE as error:
            damage = error
            continue
        for code, count in repaired.counts.items():
            issues.add(code, count, at=place)
        return event
    raise damage


def find_event(data: bytes, start: int, place: str, issues: IssueLog) -> FoundEvent | None:
    """The event that begins at `start`; None if its end is missing.

    Raises:
        DamagedError: it is no JSON, even after repair.
    """
    try:
        _skip.decode(memoryview(data)[start:])
        end: int | None = len(data)
    except RecursionError as error:
        raise DamagedError(str(error)) from error
    except UNDECODABLE as error:
        behind = trailing_place(error)
        end = None if behind is None else start + behind
        if is_incomplete(error) and b"\\u" not in data[start : start + _LARGEST_REPAIR]:
            return None
    if end is not None:
        try:
            return FoundEvent(*read_event(data[start:end], place, issues), end)
        except UNDECODABLE:
            pass
    return _find_damaged(data, start, place, issues)


def _find_damaged(data: bytes, start: int, place: str, issues: IssueLog) -> FoundEvent | None:
    for end in _ends(data, start):
        try:
            return FoundEvent(*decode_repaired(data[start:end], place, issues), end)
        except UNDECODABLE as error:
            if not is_incomplete(error):
                raise DamagedError(str(error)) from error
    return None


def _ends(data: bytes, start: int) -> Iterator[int]:
    """Where a damaged object that begins at `start` may end.

    Raises:
        DamagedError: at too many places.
    """
    for number, match in enumerate(_OBJECT_END.finditer(data, start, start + _LARGEST_REPAIR)):
        if number == _MOST_ENDS:
            raise DamagedError("no end fits")
        yield match.end()


def next_event(data: bytes, start: int) -> int | None:
    """Where the next object begins that can be read and looks like an event, and is no value of another object."""
    for number, match in enumerate(_RESUME.finditer(data, start)):
        if number == _MOST_RESUMES:
            return None
        before = data[max(0, match.start() - 64) : match.start()].rstrip(_BLANK)
        if not before.endswith(b":") and _is_event(data, match.start()):
            return match.start()
    return None


def _is_event(data: bytes, start: int) -> bool:
    try:
        found = find_event(data, start, "", IssueLog())
    except DamagedError:
        return False
    if found is None:
        return False
    event = found.event
    return event.ph is not None or (event.name is not None and event.ts is not NO_TOKEN)
