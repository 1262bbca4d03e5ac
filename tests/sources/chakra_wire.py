"""Chakra messages for tests, written by hand. In: fields as Python values. Out: bytes of a `.et` file.

Shares no code with what reads or writes traces, so that a mistake in one of them cannot cancel itself out.
"""

import struct
from collections.abc import Sequence

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
SCALARS = {
    "double": 3,
    "float": 5,
    "int32": 7,
    "int64": 9,
    "uint32": 11,
    "uint64": 13,
    "sint32": 15,
    "sint64": 17,
    "fixed32": 19,
    "fixed64": 21,
    "sfixed32": 23,
    "sfixed64": 25,
    "bool": 27,
    "string": 29,
    "bytes": 31,
}
"""Field number of a single value in an attribute; the number above it is a list of the same type."""
_FORMATS = {"double": "<d", "float": "<f", "fixed32": "<I", "fixed64": "<Q", "sfixed32": "<i", "sfixed64": "<q"}


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def field(number: int, value: int | str | bytes) -> bytes:
    """A varint field of an integer, a length-delimited one of text or bytes."""
    if isinstance(value, int):
        return tag(number, VARINT) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return tag(number, LENGTH) + varint(len(data)) + data


def scalar(kind: str, value: float | str | bytes) -> tuple[int, bytes]:
    """Wire type and payload of a value, without its tag."""
    if kind in _FORMATS:
        packed = struct.pack(_FORMATS[kind], value)
        return FIXED64 if len(packed) == 8 else FIXED32, packed
    if isinstance(value, str | bytes):
        data = value.encode() if isinstance(value, str) else value
        return LENGTH, varint(len(data)) + data
    number = int(value)
    return VARINT, varint(2 * number if number >= 0 else -2 * number - 1) if kind.startswith("sint") else varint(number)


def attribute(name: str, kind: str, value: object) -> bytes:
    """An attribute message; a list as value makes the list of that type, packed where protobuf packs it."""
    number = SCALARS[kind]
    if isinstance(value, list):
        encoded = [scalar(kind, item) for item in value]
        if kind in ("string", "bytes"):
            inner = b"".join(tag(1, LENGTH) + payload for _, payload in encoded)
        else:
            inner = field(1, b"".join(payload for _, payload in encoded))
        return field(1, name) + field(number + 1, inner)
    wire, payload = scalar(kind, value)  # type: ignore[arg-type]
    return field(1, name) + tag(number, wire) + payload


def node(
    node_id: int,
    name: str = "",
    node_type: int = 4,
    *,
    data: Sequence[int] = (),
    control: Sequence[int] = (),
    duration_us: int = 0,
    start_us: int = 0,
    attributes: Sequence[bytes] = (),
    inputs: tuple[str, str, str] | None = None,
    packed: bool = True,
) -> bytes:
    """A node message; zeros and empty texts are left out, as proto3 does."""
    parts = [field(1, node_id) if node_id else b"", field(2, name) if name else b""]
    parts.append(field(3, node_type) if node_type else b"")
    for number, values in ((4, control), (5, data)):
        if values and packed:
            parts.append(field(number, b"".join(map(varint, values))))
        else:
            parts += [field(number, value) for value in values]
    parts += [field(6, start_us) if start_us else b"", field(7, duration_us) if duration_us else b""]
    if inputs:
        parts.append(field(8, b"".join(field(place, text) for place, text in enumerate(inputs, start=1))))
    parts += [field(10, message) for message in attributes]
    return b"".join(parts)


def metadata(version: str = "", attributes: Sequence[bytes] = ()) -> bytes:
    return (field(1, version) if version else b"") + b"".join(field(2, message) for message in attributes)


def framed(*messages: bytes) -> bytes:
    """A file: each message behind its length."""
    return b"".join(varint(len(message)) + message for message in messages)
