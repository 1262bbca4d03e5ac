"""How far one JSON value reaches. In: bytes, and where the value begins. Out: where it ends, if it does.

Idea: the decoder says where text goes on behind a whole value; where it stumbles over something that `text_repair`
mends, quotes and brackets tell, since no repair touches those. Not handled: repairs in a value of more than 1 MiB.
"""

import re

import msgspec
from msgspec import Raw

from traceforge.sources.kineto.decode import UNDECODABLE, is_incomplete
from traceforge.sources.kineto.text_repair import repair_text

_MOST_TO_REPAIR = 1024 * 1024
_PLACE = re.compile(r"\(byte (\d+)\)")
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[][{}"]', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\[\]{}]*")

_value = msgspec.json.Decoder(Raw)


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
            end = _sound_end(self._text, start)
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
            is_whole = _sound_end(repaired, 0) is not None
        except UNDECODABLE:
            if place is not None:
                self._beyond_repair.add(place)
            raise
        if is_whole != (end is not None):
            raise msgspec.DecodeError("brackets and quotes do not match")
        return end


def _sound_end(text: bytes, start: int) -> int | None:
    try:
        _value.decode(memoryview(text)[start:])
    except UNDECODABLE as error:
        place = _place(error, start)
        if place is not None and "trailing characters" in str(error):
            return place - 1
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
