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
        self._beyond_repair: set[int | None] = set()

    def end(self, start: int) -> int | None:
        """Where the value that begins at `start` ends, perhaps with blanks behind it; None if the text ends before.

        Raises:
            msgspec.DecodeError, RecursionError: it is no sound JSON, not even after repair.
        """
        try:
            return _sound_end(self._text, start)
        except UNDECODABLE as error:
            place = _place(error, start)
            if place in self._beyond_repair or not self._may_be_mended(error, place):
                raise
            try:
                return _repaired_end(self._text, start)
            except UNDECODABLE:
                if place is not None:
                    self._beyond_repair.add(place)
                raise

    def _may_be_mended(self, error: Exception, place: int | None) -> bool:
        """Whether the decoder stumbled over a bad character or escape; half a surrogate pair may have no place."""
        if place is None:
            return is_incomplete(error)
        return "invalid" in str(error) or "escape" in str(error) or self._text[place] < ord(" ")


def _sound_end(text: bytes, start: int) -> int | None:
    try:
        _value.decode(memoryview(text)[start:])
    except UNDECODABLE as error:
        place = _place(error, start)
        if "trailing characters" in str(error) and place is not None:
            return place - 1
        if place is not None and place >= len(text):
            return None
        if is_incomplete(error) and not _HALF_A_PAIR.search(text, start):
            return None
        raise
    return len(text)


def _place(error: Exception, start: int) -> int | None:
    """Where the decoder stumbled, if it says so."""
    found = _PLACE.search(str(error))
    return start + int(found[1]) if found else None


def _repaired_end(text: bytes, start: int) -> int | None:
    end = _end_by_brackets(text, start)
    repaired = repair_text(text[start : start + _MOST_TO_REPAIR if end is None else end]).text
    if (_sound_end(repaired, 0) is None) != (end is None):
        raise msgspec.DecodeError("brackets and quotes do not match")
    return end


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
