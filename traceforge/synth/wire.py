"""Protobuf's wire format, written. In: field numbers and values. Out: bytes of fields."""


def number_field(field: int, value: int) -> bytes:
    """A field that is a varint; negative numbers as their two's complement of 64 bits."""
    return _varint(field << 3) + _varint(value % 2**64)


def message_field(field: int, data: bytes) -> bytes:
    """A field that is a message, a text or bytes."""
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    rest, data = value, bytearray()
    while rest > 0x7F:
        data.append(rest & 0x7F | 0x80)
        rest >>= 7
    data.append(rest)
    return bytes(data)
