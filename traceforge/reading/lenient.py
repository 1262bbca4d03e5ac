"""JSON objects whose values have unexpected types. In: the text of one object. Out: a struct, as far as it can be read.

Idea: every value is first taken as raw text and then read on its own, by what the struct's field is annotated with, so
that a bad value costs only itself. Integers may stand in quotes (decimal or 0x) or carry a zero fraction.
Not handled: text that is no object.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

import msgspec
from msgspec import Raw

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import ABSENT, UNDECODABLE

_INTEGER = re.compile(rb'("?)\s*([+-]?[0-9]{1,40})(?:\.0{0,20})?\s*\1')
_HEXADECIMAL = re.compile(rb'"\s*0[xX]([0-9a-fA-F]{1,40})\s*"')
BEYOND_RANKS = re.compile(rb"[0-9]{10}")
"""Found in a list of ranks, one of which is larger than any job."""
_fields = msgspec.json.Decoder(dict[str, Raw])
_text = msgspec.json.Decoder(str)

Struct = TypeVar("Struct", bound=msgspec.Struct)
ReadValue = Callable[[bytes], object]


class LenientReader:
    """Reads values one by one and counts those of unexpected types.

    Args:
        issues: knows the code `wrong_type`.
        place: of the object, for `issues`.
    """

    def __init__(self, issues: IssueLog, place: str | None = None) -> None:
        self._issues = issues
        self._place = place
        self._readers: dict[object, ReadValue] = {int: self.integer, str | None: self.text, Raw: Raw}

    def struct(self, kind: type[Struct], text: bytes, readers: Mapping[object, ReadValue]) -> Struct:
        """An object as a struct; what it does not state keeps its default.

        Args:
            kind: its fields are read by their annotations.
            text: of the object.
            readers: how to read annotations other than integers, texts and raw text.

        Raises:
            msgspec.DecodeError, UnicodeDecodeError, RecursionError: the text is no sound JSON object.
        """
        stated = _fields.decode(text)
        known = {**self._readers, **readers}
        return kind(
            **{
                name: known[annotation](bytes(stated[key]))
                for name, key, annotation in _fields_of(kind)
                if key in stated
            }
        )

    def integer(self, token: bytes) -> int:
        """An integer of any size; `ABSENT` where it is none."""
        if token == b"null":
            return ABSENT
        number = integer_of(token)
        if number is None:
            self.count_wrong_type()
            return ABSENT
        return number

    def text(self, token: bytes) -> str | None:
        """A text, or anything else as it is written."""
        if token != b"null" and token[:1] != b'"':
            self.count_wrong_type()
        return text_of(token)

    def count_wrong_type(self, count: int = 1) -> None:
        """Count values of unexpected types."""
        self._issues.add("wrong_type", count, at=self._place)


@cache
def _fields_of(kind: type[msgspec.Struct]) -> list[tuple[str, str, object]]:
    return [(field.name, field.encode_name, field.type) for field in msgspec.structs.fields(kind)]


def text_of(token: bytes) -> str | None:
    """A JSON value as text: a string's content, anything else as written; None for null and absent values."""
    if token in (b"", b"null"):
        return None
    try:
        return _text.decode(token)
    except UNDECODABLE:
        return token.decode("utf-8", "replace").strip('"')


def integer_of(token: bytes) -> int | None:
    """A JSON value as an integer of any size; None where it is none.

    Accepts a number with or without a zero fraction, in quotes or not, and 0x numbers in quotes.
    """
    if match := _INTEGER.fullmatch(token):
        return int(match[2])
    if match := _HEXADECIMAL.fullmatch(token):
        return int(match[1], 16)
    return None
