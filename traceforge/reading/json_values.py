"""What readers of damaged JSON share. In: bytes, and where a value begins. Out: where it ends, if it does.

Idea: the decoder says where text goes on behind a whole value; where it stumbles over something that `json_repair`
mends, quotes and brackets tell, since no repair touches those. Not handled: repairs in a value of more than 1 MiB.
"""

import re

import msgspec
from msgspec import Raw

from traceforge.reading.json_repair import repair_text

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding damaged text raises; `msgspec.ValidationError` means sound JSON of other types."""
ABSENT = -(2**63)
"""Stands for a missing integer, until it becomes NULL."""
NO_TOKEN = Raw(b"")
"""Stands for a missing value that is taken as raw text."""

_MOST_TO_REPAIR = 1024 * 1024
_PLACE = re.compile(r"\(byte (\d+)\)")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}"]', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\[\]{}]*")

_value = msgspec.json.Decoder(Raw)


def is_incomplete(error: Exception) -> bool:
    """Whether decoding failed because the text ends too early (or holds half a surrogate pair)."""
    return "truncated" in str(error)


def trailing_place(error: Exception) -> int | None:
    """Where text goes on behind a whole value, if that is why decoding failed."""
    found = _TRAILING.search(str(error))
    return int(found[1]) - 1 if found else None


class ValueEnds:
    """Finds where the values of one text end; remembers the places that no repair mends."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._beyond_repair: set[int] = set()

    def end(self, start: int) -> int | None:
        """Where the value that begins at `start` ends, perhaps with blanks behind it; None if the text ends before.

        Raises:
            msgspec.DecodeError, RecursionError: it is no sound JSON, not even after repair.
        """
        place = None
        try:
            end = value_end(self._text, start)
            # Half a surrogate pair reads as if the text ended there.
            if end is not None or not _HALF_A_PAIR.search(self._text, start):
                return end
        except UNDECODABLE as error:
            place = _place(error, start)
            if place is None or place in self._beyond_repair or not self._may_be_mended(error, place):
                raise
        return self._repaired_end(start, place)

    def _may_be_mended(self, error: Exception, place: int) -> bool:
        """Whether the decoder stumbled over a bad character or escape."""
        return "invalid" in str(error) or "escape" in str(error) or self._text[place] < ord(" ")

    def _repaired_end(self, start: int, place: int | None) -> int | None:
        end = _end_by_brackets(self._text, start)
        repaired = repair_text(self._text[start : start + _MOST_TO_REPAIR if end is None else end]).text
        try:
            is_whole = value_end(repaired, 0) is not None
        except UNDECODABLE:
            if place is not None:
                self._beyond_repair.add(place)
            raise
        if is_whole != (end is not None):
            raise msgspec.DecodeError("brackets and quotes do not match")
        return end


def value_end(text: bytes, start: int) -> int | None:
    """Where a sound value ends, perhaps with blanks behind it; None if the text ends before.

    Raises:
        msgspec.DecodeError, RecursionError: it is no sound JSON.
    """
    try:
        _value.decode(memoryview(text)[start:])
    except UNDECODABLE as error:
        place = _place(error, start)
        if (trailing := trailing_place(error)) is not None:
            return start + trailing
        if is_incomplete(error) or (place is not None and place >= len(text)):
            return None
        raise
    return len(text)


def _place(error: Exception, start: int) -> int | None:
    """Where the decoder stumbled, if it says so."""
    found = _PLACE.search(str(error))
    return start + int(found[1]) if found else None


def _end_by_brackets(text: bytes, start: int) -> int | None:
    if text[start] not in b'"{[':
        scalar = _SCALAR.match(text, start)
        return scalar.end() if scalar else None
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text, start, start + _MOST_TO_REPAIR):
        if match[0] == b'"':
            return None
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return None
