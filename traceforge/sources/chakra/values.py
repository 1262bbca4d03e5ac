"""Values of attributes in any of their types. In: field numbers and bits. Out: exact integers, or JSON text.

Idea: the field number gives the type; a column of integers takes every numeric type that holds a whole number.
Not handled: integers of more than 63 bits (out of range).
"""

import struct

import msgspec
import numpy as np

from traceforge.reading.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    Bools,
    Int64s,
    UInt64s,
    padded,
    read_fields,
    read_packed,
)

DOUBLE, FLOAT, INT32, INT64, UINT32, UINT64, SINT32, SINT64 = 3, 5, 7, 9, 11, 13, 15, 17
FIXED32_VALUE, FIXED64_VALUE, SFIXED32, SFIXED64, BOOL, STRING, BYTES = 19, 21, 23, 25, 27, 29, 31
"""Field numbers of single values; the number above each is a list of the same type."""

_WIRES = {
    VARINT: (INT32, INT64, UINT32, UINT64, SINT32, SINT64, BOOL),
    FIXED64: (DOUBLE, FIXED64_VALUE, SFIXED64),
    FIXED32: (FLOAT, FIXED32_VALUE, SFIXED32),
}
_SAME_BITS = {SFIXED32: INT32, FIXED32_VALUE: UINT32, SINT32: SINT64, FIXED64_VALUE: UINT64}
_LIMIT = 2.0**63


def integers_of(numbers: Int64s, bits: UInt64s) -> tuple[Int64s, Bools, Bools]:
    """Values as integers.

    Args:
        numbers: field number of each value.
        bits: the varint, or the four or eight bytes as a little-endian number.

    Returns:
        integers: 0 where there is none.
        known: whether the value is numeric and whole.
        out_of_range: whether it is whole and does not fit 64 bits with a sign.
    """
    integers = bits.view(np.int64).copy()
    known = np.isin(numbers, [INT64, SFIXED64])
    out_of_range = np.zeros(len(numbers), np.bool_)
    for number in np.flatnonzero(np.bincount(numbers[~known])).tolist():
        chosen = numbers == number
        found, fits = _as_integers(number, bits[chosen])
        integers[chosen] = np.where(fits, found, 0)
        known[chosen] = fits
        out_of_range[chosen] = ~fits if number in (UINT64, FIXED64_VALUE) else False
    return integers, known, out_of_range


def _as_integers(number: int, bits: UInt64s) -> tuple[Int64s, Bools]:
    """Values of one type as integers, and which of them are."""
    if number in (DOUBLE, FLOAT):
        return _whole(number, bits)
    low = bits & np.uint64(0xFFFF_FFFF)
    half = bits >> np.uint64(1)
    sign = bits & np.uint64(1)
    integers = {
        INT32: low.astype(np.uint32).view(np.int32).astype(np.int64),
        UINT32: low.view(np.int64),
        SINT64: half.view(np.int64) ^ -sign.view(np.int64),
        BOOL: (bits != 0).astype(np.int64),
    }
    number = _SAME_BITS.get(number, number)
    is_known = number in integers or number == UINT64
    fits = (bits < np.uint64(1 << 63)) if number == UINT64 else np.full(len(bits), is_known)
    return integers.get(number, bits.view(np.int64)), fits


def _whole(number: int, bits: UInt64s) -> tuple[Int64s, Bools]:
    """Floating-point values as integers, and which of them are whole and not too large."""
    if number == DOUBLE:
        floats = bits.view(np.float64)
    else:
        floats = (bits & np.uint64(0xFFFF_FFFF)).astype(np.uint32).view(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore"):
        fits = (np.abs(floats) < _LIMIT) & (floats == np.trunc(floats))
        return np.where(fits, floats, 0).astype(np.int64), fits


def is_of_wire(number: int, wire: int) -> bool:
    """Whether a value of that field number is written with that wire type."""
    return number in _WIRES[wire] if wire in _WIRES else number >= STRING or number % 2 == 0


def json_of(number: int, bits: int, payload: bytes) -> str:
    """A value as JSON text; arguments as for `value_of_number`."""
    return msgspec.json.encode(value_of_number(number, bits, payload)).decode()


def value_of_number(number: int, bits: int, payload: bytes) -> object:
    """A value as Python has it; bytes as hexadecimal text.

    Args:
        number: its field number.
        bits: of a value without a length.
        payload: of a value with one.
    """
    if number in (STRING, BYTES):
        return payload.decode("utf-8", "replace") if number == STRING else payload.hex()
    if number % 2 == 0:
        return _list_of(number - 1, payload)
    if number in (DOUBLE, FLOAT):
        return _float_of(number, bits)
    integers, known, _ = integers_of(np.array([number]), np.array([bits], np.uint64))
    integer = int(integers[0]) if known[0] else bits
    return bool(integer) if number == BOOL else integer


def _float_of(number: int, bits: int) -> float:
    if number == DOUBLE:
        return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
    return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFF_FFFF))[0])


def _list_of(number: int, payload: bytes) -> list[object]:
    """The values of a list message, packed or one by one."""
    buffer = padded(payload)
    fields = read_fields(buffer, np.zeros(1, np.int64), np.array([len(payload)]))
    values: list[object] = []
    for wire, value, start, end in zip(
        fields.wire.tolist(), fields.value.tolist(), fields.start.tolist(), fields.end.tolist(), strict=True
    ):
        if number in (STRING, BYTES):
            values.append(value_of_number(number, 0, payload[start:end]))
        elif wire == LENGTH:
            values.extend(value_of_number(number, bits, b"") for bits in _packed_bits(number, payload[start:end]))
        else:
            values.append(value_of_number(number, value if wire == VARINT else bits_at(payload, start, end), b""))
    return values


def bits_at(payload: bytes, start: int, end: int) -> int:
    """The bits of a value of four or eight bytes."""
    return int.from_bytes(payload[start:end], "little")


def _packed_bits(number: int, payload: bytes) -> list[int]:
    """The bits of packed values."""
    if number in _WIRES[VARINT]:
        bits, _, _ = read_packed(padded(payload), np.zeros(1, np.int64), np.array([len(payload)]))
        return [int(value) for value in bits.tolist()]
    size = 8 if number in _WIRES[FIXED64] else 4
    return [bits_at(payload, start, start + size) for start in range(0, len(payload) - size + 1, size)]
