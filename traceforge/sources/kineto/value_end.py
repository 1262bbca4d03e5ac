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


def value_end(text: bytes, start: int) -> int | None:
    """Where the value that begins at `start` ends, perhaps with blanks behind it; None if the text ends before.

    The value decodes, at least after repair, unless it is of other types than expected.

    Raises:
        msgspec.DecodeError, RecursionError: it is damaged beyond repair.
    """
    try:
        return _sound_end(text, start)
    except UNDECODABLE as error:
        if not _can_be_mended(text, start, error):
            raise
        end = _end_by_brackets(text, start)
        if end is None and _sound_end(repair_text(text[start : start + _MOST_TO_REPAIR]).text, 0) is not None:
            raise
        return end


def _sound_end(text: bytes, start: int) -> int | None:
    try:
        _value.decode(memoryview(text)[start:])
    except UNDECODABLE as error:
        place = _PLACE.search(str(error))
        if place and "trailing" in str(error):
            return start + int(place[1]) - 1
        stops_at_end = place and start + int(place[1]) >= len(text)
        if stops_at_end or (is_incomplete(error) and not _HALF_A_PAIR.search(text, start)):
            return None
        raise
    return len(text)


def _can_be_mended(text: bytes, start: int, error: Exception) -> bool:
    """Whether the decoder stumbled over half a surrogate pair, a bad character or escape, or a control character."""
    place = _PLACE.search(str(error))
    if not place:
        return is_incomplete(error)
    return "invalid" in str(error) or "escape" in str(error) or text[start + int(place[1])] < ord(" ")


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
