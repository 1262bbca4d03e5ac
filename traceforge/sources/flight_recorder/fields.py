"""Fields of a dump. In: values as a stranger's file states them. Out: numbers and texts of the type expected, or None.

Idea: most values of a dump are of the type that they should be, and are told so at once; many are repeated, and are
written as text once. Not handled: what a field means (`entries`, `dump`).
"""

import json
import re
from collections.abc import Iterable

_MILLISECOND_NS = 1_000_000
_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII)
_LONGEST_KEY = 200


def integer(value: object, bits: int = 63) -> int | None:
    """A number, perhaps written as text, of so many bits beside its sign; None where it is none."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and -(2**bits) <= value < 2**bits else None


def integers(values: Iterable[object], bits: int = 63) -> list[int | None]:
    """Each value as `integer` has it."""
    least, beyond = -(2**bits), 2**bits
    return [
        value if value is None or (type(value) is int and least <= value < beyond) else integer(value, bits)
        for value in values
    ]


def milliseconds(value: object) -> int | None:
    """Milliseconds in ns; None where it is no number, or one that no time is."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        return None
    return value * _MILLISECOND_NS if isinstance(value, int) else round(value * _MILLISECOND_NS)


def text(value: object) -> str | None:
    """A text as valid Unicode: half a surrogate pair, which Python's texts may hold, is none."""
    if not isinstance(value, str):
        return None
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def as_json(value: object) -> str | None:
    """A value of plain containers as JSON text; None where it is none."""
    try:
        return None if value is None else json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None


class JsonTexts:
    """JSON texts of values, of which many are the same."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def of(self, value: object) -> str | None:
        """As `as_json`."""
        if value is None:
            return None
        try:
            # Values that Python writes alike are alike; to write JSON takes four times as long.
            key = repr(value)
        except (ValueError, RecursionError):
            return as_json(value)
        if len(key) > _LONGEST_KEY:
            return as_json(value)
        if key not in self._known:
            self._known[key] = as_json(value)
        return self._known[key]
