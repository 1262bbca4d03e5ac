"""Damaged JSON text made sound where the meaning is beyond doubt. In: bytes that no decoder takes. Out: better bytes.

Repairs invalid UTF-8, raw control characters, bad escapes and halves of surrogate pairs in texts, and the tokens NaN
and Infinity (as null). Idea: only whether a place lies inside a text matters, and that is the parity of the quotes
before it. Not handled: quotes that are not escaped (their event is lost), missing brackets.
"""

import re
from dataclasses import dataclass, field

MEANINGS = {
    "invalid_utf8": ("info", "bytes that are no UTF-8 were replaced by U+FFFD"),
    "control_characters": ("info", "raw control characters in texts were escaped"),
    "not_a_number": ("info", "NaN or infinity was read as null"),
    "bad_escape": ("info", "a backslash or half a surrogate pair in a text was repaired"),
}
"""Severity and sentence of each repair, for a source's `IssueLog`."""
_CONTROL = re.compile(rb"[\x00-\x1f]")
_NOT_A_NUMBER = re.compile(rb"(?<=[\s:,\[])[+-]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_SURROGATE_OR_BAD_ESCAPE = re.compile(
    rb"\\(?:"
    rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole surrogate pair
    rb'|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|u[0-9a-fA-F]{4}|["\\/bfnrt]|(?P<bad>))'
)
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_ESCAPES = {9: rb"\t", 10: rb"\n", 13: rb"\r"}


@dataclass(slots=True)
class RepairedText:
    """Text after repair.

    Attributes:
        text: the better bytes; the same as before if nothing was found.
        counts: number of repairs by code, which is one of `MEANINGS`.
    """

    text: bytes
    counts: dict[str, int] = field(default_factory=dict)


def repair_text(text: bytes) -> RepairedText:
    """Repair text that begins outside of any JSON string."""
    repaired = RepairedText(text)
    for step in (_repair_utf8, _repair_escapes, _repair_marks):
        step(repaired)
    return repaired


def _count(repaired: RepairedText, code: str, count: int) -> None:
    if count:
        repaired.counts[code] = repaired.counts.get(code, 0) + count


def _repair_utf8(repaired: RepairedText) -> None:
    better = repaired.text.decode("utf-8", "replace").encode()
    if better != repaired.text:
        _count(repaired, "invalid_utf8", max(1, better.count(_REPLACEMENT) - repaired.text.count(_REPLACEMENT)))
        repaired.text = better


def _repair_escapes(repaired: RepairedText) -> None:
    if b"\\" not in repaired.text:
        return
    repairs = 0

    def better(match: re.Match[bytes]) -> bytes:
        nonlocal repairs
        if match["half"] is None and match["bad"] is None:
            return match[0]
        repairs += 1
        return rb"\ufffd" if match["half"] else rb"\\"

    repaired.text = _SURROGATE_OR_BAD_ESCAPE.sub(better, repaired.text)
    _count(repaired, "bad_escape", repairs)


def _repair_marks(repaired: RepairedText) -> None:
    """Control characters inside texts (and odd ones outside), and NaN and Infinity outside of texts."""
    text = repaired.text
    places = sorted([*_CONTROL.finditer(text), *_NOT_A_NUMBER.finditer(text)], key=re.Match.start)
    pieces: list[bytes] = []
    inside, done = False, 0
    for match in places:
        between = text[done : match.start()]
        inside ^= _quotes(between) % 2 == 1
        pieces.append(between)
        pieces.append(_better_mark(match[0], inside, repaired))
        done = match.end()
    repaired.text = b"".join(pieces) + text[done:]


def _quotes(text: bytes) -> int:
    """Number of quotes that are not escaped."""
    return (_ESCAPED.sub(b"", text) if b"\\" in text else text).count(b'"')


def _better_mark(mark: bytes, inside: bool, repaired: RepairedText) -> bytes:
    if len(mark) > 1:
        if inside:
            return mark
        _count(repaired, "not_a_number", 1)
        return b"null"
    if inside:
        _count(repaired, "control_characters", 1)
        return _ESCAPES.get(mark[0], b"\\u%04x" % mark[0])
    if mark in b"\t\n\r":
        return mark
    _count(repaired, "control_characters", 1)
    return b" "
