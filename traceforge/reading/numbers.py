"""Numbers as any writer of JSON spells them. In: decoded values. Out: exact integers, or nothing.

Idea: an integer may be a text (protobuf's JSON writes 64-bit ones so), a float without a fraction, or true and false.
Not handled: numbers of more than 40 digits.
"""

import re

LIMIT = 2**63
_INTEGER = re.compile(r"[+-]?\d{1,40}")


def integer_of(value: object) -> int | None:
    """A value as an integer of any size; None where it is none."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    return None


def int64_of(value: object, factor: int = 1) -> int | None:
    """A value times a factor; None where it is no integer or does not fit 64 bits with a sign."""
    number = integer_of(value)
    return number * factor if number is not None and -LIMIT <= number * factor < LIMIT else None


def text_of(value: object) -> str | None:
    """A value as text; None where it is missing or empty."""
    return None if value is None or value == "" else str(value)
