"""Damaged JSON text made sound where the meaning is beyond doubt. In: bytes that no decoder takes. Out: better bytes.

Repairs invalid UTF-8, bad escapes and halves of surrogate pairs, the tokens NaN and Infinity (as null), and raw control
characters in texts. Idea: only whether a place lies inside a text matters, and that is the parity of the quotes before
it. Cheap repairs come first and are offered one by one, since mostly one of them suffices.
Not handled: quotes that are not escaped (their event is lost), missing brackets.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_SURROGATE_OR_BAD_ESCAPE = re.compile(
    rb"\\(?:"
    rb"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole surrogate pair
    rb'|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|u[0-9a-fA-F]{4}|["\\/bfnrt]|(?P<bad>))'
)
_NOT_A_NUMBER = re.compile(rb"[+-]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_NOT_A_NUMBER_STARTS = (b"nan", b"NaN", b"NAN", b"inf", b"Inf", b"INF")
_BEFORE_A_VALUE = b" \t\r\n:,["
_CONTROL = re.compile(rb"[\x00-\x1f]")
_CONTROL_BUT_NEWLINE = re.compile(rb"[\x00-\x09\x0b-\x1f]")
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_ESCAPES = {9: rb"\t", 10: rb"\n", 13: rb"\r"}
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


@dataclass(frozen=True, slots=True)
class RepairedText:
    """Text after repair.

    Attributes:
        text: the better bytes.
        counts: number of repairs by issue code.
    """

    text: bytes
    counts: dict[str, int] = field(default_factory=dict)


def repairs(text: bytes) -> Iterator[RepairedText]:
    """Ever more repaired versions of a text that begins outside of any JSON string; none if nothing is to repair."""
    done = RepairedText(text)
    for step, code in (
        (_repair_utf8, "kineto_invalid_utf8"),
        (_repair_escapes, "kineto_bad_escape"),
        (_repair_not_a_number, "kineto_not_a_number"),
        (_repair_control_characters, "kineto_control_characters"),
    ):
        better, count = step(done.text)
        if count:
            done = RepairedText(better, {**done.counts, code: count})
            yield done


def repair_text(text: bytes) -> RepairedText:
    """A text with all repairs; it begins outside of any JSON string."""
    repaired = RepairedText(text)
    for further in repairs(text):
        repaired = further
    return repaired


def _repair_utf8(text: bytes) -> tuple[bytes, int]:
    better = text.decode("utf-8", "replace").encode()
    if better == text:
        return text, 0
    return better, max(1, better.count(_REPLACEMENT) - text.count(_REPLACEMENT))


def _repair_escapes(text: bytes) -> tuple[bytes, int]:
    count = 0

    def better(match: re.Match[bytes]) -> bytes:
        nonlocal count
        if match["half"] is None and match["bad"] is None:
            return match[0]
        count += 1
        return rb"\ufffd" if match["half"] else rb"\\"

    return (_SURROGATE_OR_BAD_ESCAPE.sub(better, text), count) if b"\\" in text else (text, 0)


def _repair_not_a_number(text: bytes) -> tuple[bytes, int]:
    tokens = [match for place in _not_a_number_places(text) if (match := _NOT_A_NUMBER.match(text, place))]
    return _replace(text, tokens, outside=lambda _token: b"null", inside=None)


def _not_a_number_places(text: bytes) -> list[int]:
    """Where a value may begin that is NaN or infinite, in a text or not."""
    places = []
    for start in _NOT_A_NUMBER_STARTS:
        place = text.find(start)
        while place >= 0:
            first = place - (text[place - 1 : place] in (b"+", b"-"))
            if text[first - 1 : first] and text[first - 1] in _BEFORE_A_VALUE:
                places.append(first)
            place = text.find(start, place + 1)
    return sorted(places)


def _repair_control_characters(text: bytes) -> tuple[bytes, int]:
    if not _CONTROL_BUT_NEWLINE.search(text) and not any(_quotes(line) % 2 for line in text.split(b"\n")):
        return text, 0
    characters = list(_CONTROL.finditer(text))
    return _replace(text, characters, outside=_as_blank, inside=_as_escape)


def _as_escape(character: bytes) -> bytes:
    return _ESCAPES.get(character[0], b"\\u%04x" % character[0])


def _as_blank(character: bytes) -> bytes:
    return character if character in b"\t\n\r" else b" "


def _replace(
    text: bytes,
    matches: list[re.Match[bytes]],
    outside: Callable[[bytes], bytes],
    inside: Callable[[bytes], bytes] | None,
) -> tuple[bytes, int]:
    """Replace matches by what stands outside or inside of texts, and count those that changed."""
    pieces: list[bytes] = []
    is_inside, done, count = False, 0, 0
    for match in matches:
        between = text[done : match.start()]
        is_inside ^= _quotes(between) % 2 == 1
        replace = inside if is_inside else outside
        better = replace(match[0]) if replace else match[0]
        count += better != match[0]
        pieces += (between, better)
        done = match.end()
    return b"".join(pieces) + text[done:], count


def _quotes(text: bytes) -> int:
    """Number of quotes that are not escaped."""
    return (_ESCAPED.sub(b"", text) if b"\\" in text else text).count(b'"')
