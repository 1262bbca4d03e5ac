"""Protobuf's wire format, written. In: field numbers and values. Out: bytes of messages.

Idea: a message is its fields one behind the other, each a tag and a payload; zeros and empty texts are left out, as
proto3 does. Not handled: fixed-width numbers.
"""

from collections.abc import Iterable

_VARINT, _LENGTH = 0, 2
_LIMIT = 2**64


def varint(value: int) -> bytes:
    """An integer in groups of seven bits; negative ones as 64-bit two's complement."""
    rest = value % _LIMIT
    groups = bytearray()
    while rest > 0x7F:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    groups.append(rest)
    return bytes(groups)


def number(field: int, value: int | None, *, keep_zero: bool = False) -> bytes:
    """A field that holds an integer."""
    return varint(field << 3 | _VARINT) + varint(value) if value or (keep_zero and value is not None) else b""


def text(field: int, value: str | bytes | None, *, keep_empty: bool = False) -> bytes:
    """A field that holds a text, bytes or a message."""
    if not value and not (keep_empty and value is not None):
        return b""
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value or b""
    return varint(field << 3 | _LENGTH) + varint(len(data)) + data


def packed(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of integers."""
    return text(field, b"".join(map(varint, values)))


def framed(message: bytes) -> bytes:
    """A message behind its length, as files of several messages hold it."""
    return varint(len(message)) + message
