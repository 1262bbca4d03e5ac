"""Protobuf's wire format, many messages in step. In: bytes and the places of messages in them. Out: columns of fields.

Idea: messages of a trace are alike, so the first field of all of them is read by a few operations on arrays, then the
second of all, and so on: a field costs some ten nanoseconds and makes no Python object. A message of many fields, such
as a list, is walked instead (`walk`). No library and no schema are needed; what a number means is for those who ask.
Seen: what C++, Python and upb write. Not handled: groups (wire types 3 and 4), which count as damage.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]
Wires = npt.NDArray[np.uint8]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
PADDING = 32
"""Zero bytes that must follow the text, so that reading across its end does no harm."""
_LONGEST_VARINT = 10
_FAR = 1 << 40  # longer than any buffer, and safe to add to a position
_MOST_FIELDS = 20_000


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of many messages; all arrays but `damaged` have one element a field.

    Attributes:
        owner: which message the field belongs to.
        number: field number.
        wire: wire type: `VARINT`, `FIXED64`, `LENGTH` or `FIXED32`.
        value: of a varint, as unsigned number.
        start: where the payload begins, of all but varints.
        end: behind the payload.
        damaged: one element a message: it does not end where its last field ends.
    """

    owner: Int64s
    number: Int64s
    wire: Wires
    value: UInt64s
    start: Int64s
    end: Int64s
    damaged: Bools

    def where(self, chosen: Bools) -> "Fields":
        """Those fields for which `chosen` is true; `damaged` stays as it is."""
        return Fields(
            self.owner[chosen],
            self.number[chosen],
            self.wire[chosen],
            self.value[chosen],
            self.start[chosen],
            self.end[chosen],
            self.damaged,
        )

    def of_messages(self, kept: Bools) -> "Fields":
        """The fields of some messages only, which are numbered anew."""
        chosen = self.where(kept[self.owner])
        renumbered = np.cumsum(kept) - 1
        return Fields(
            renumbered[chosen.owner],
            chosen.number,
            chosen.wire,
            chosen.value,
            chosen.start,
            chosen.end,
            self.damaged[kept],
        )


def padded(data: bytes) -> Bytes:
    """Bytes as an array that may be read across its end."""
    return np.frombuffer(data + bytes(PADDING), np.uint8)


def read_varints(buffer: Bytes, places: Int64s) -> tuple[UInt64s, Int64s]:
    """The varints at some places, and where each ends (far away where it has no end)."""
    byte = buffer[places]
    values = (byte & 0x7F).astype(np.uint64)
    ends = places + 1
    open_ones = np.flatnonzero(byte >= 0x80)
    for index in range(1, _LONGEST_VARINT):
        if not len(open_ones):
            return values, ends
        byte = buffer[ends[open_ones]]
        values[open_ones] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
        ends[open_ones] += 1
        open_ones = open_ones[byte >= 0x80]
    ends[open_ones] += _FAR
    return values, ends


def read_fields(buffer: Bytes, starts: Int64s, ends: Int64s) -> Fields:
    """All fields of the messages at some places, those of one message in their order.

    Args:
        buffer: bytes, padded.
        starts: where each message begins.
        ends: behind each message.
    """
    damaged = np.zeros(len(starts), np.bool_)
    steps: list[tuple[Int64s, Int64s, Wires, UInt64s, Int64s, Int64s]] = []
    owner = np.flatnonzero(starts < ends)
    position, limit = starts[owner], ends[owner]
    while len(owner):
        if len(steps) == _MOST_FIELDS:
            damaged[owner] = True
            break
        tag, behind_tag = read_varints(buffer, position)
        wire = (tag & np.uint64(7)).astype(np.uint8)
        number = np.minimum(tag >> np.uint64(3), np.uint64(_FAR)).astype(np.int64)
        value, start, end = _read_payloads(buffer, np.minimum(behind_tag, limit), wire)
        sound = (end <= limit) & (behind_tag < limit) & (number > 0) & ((wire < 3) | (wire == FIXED32))
        if not sound.all():
            damaged[owner[~sound]] = True
            owner, number, wire, value = owner[sound], number[sound], wire[sound], value[sound]
            start, end, limit = start[sound], end[sound], limit[sound]
        steps.append((owner, number, wire, value, start, end))
        more = end < limit
        owner, position, limit = owner[more], end[more], limit[more]
    return _joined(steps, damaged)


def _read_payloads(buffer: Bytes, places: Int64s, wire: Wires) -> tuple[UInt64s, Int64s, Int64s]:
    """Value, beginning and end of the payloads behind some tags."""
    value, start = read_varints(buffer, places)
    length = np.minimum(value, np.uint64(_FAR)).astype(np.int64)
    end = np.where(wire == LENGTH, start + length, start)
    fixed = (wire == FIXED64) | (wire == FIXED32)
    if fixed.any():
        start = np.where(fixed, places, start)
        end = np.where(fixed, places + np.where(wire == FIXED64, 8, 4), end)
    return value, start, end


def _joined(steps: list[tuple[Int64s, Int64s, Wires, UInt64s, Int64s, Int64s]], damaged: Bools) -> Fields:
    if not steps:
        none = np.zeros(0, np.int64)
        return Fields(none, none, np.zeros(0, np.uint8), np.zeros(0, np.uint64), none, none, damaged)
    owner, number, wire, value, start, end = zip(*steps, strict=True)
    return Fields(
        np.concatenate(owner),
        np.concatenate(number),
        np.concatenate(wire),
        np.concatenate(value),
        np.concatenate(start),
        np.concatenate(end),
        damaged,
    )


def read_packed(buffer: Bytes, starts: Int64s, ends: Int64s) -> tuple[UInt64s, Int64s, Bools]:
    """Varints that stand in lists without tags.

    Args:
        buffer: bytes, padded.
        starts: where each list begins.
        ends: behind each list.

    Returns:
        values: of all lists, in order.
        owner: the list each value belongs to.
        damaged: one element a list: it ends inside a number, or holds one of more than ten bytes (its values are left
            out).
    """
    lengths = ends - starts
    damaged = np.zeros(len(starts), np.bool_)
    filled = np.flatnonzero(lengths > 0)
    damaged[filled] = buffer[ends[filled] - 1] >= 0x80
    used = filled[~damaged[filled]]
    if not len(used):
        return np.zeros(0, np.uint64), np.zeros(0, np.int64), damaged
    begins = np.cumsum(lengths[used]) - lengths[used]
    places = np.arange(int(lengths[used].sum())) + np.repeat(starts[used] - begins, lengths[used])
    byte = buffer[places]
    last = np.flatnonzero(byte < 0x80)
    first = np.concatenate([np.zeros(1, np.int64), last[:-1] + 1])
    sizes = last - first + 1
    shifts = 7 * (np.arange(len(byte)) - np.repeat(first, sizes))
    parts = (byte & 0x7F).astype(np.uint64) << np.minimum(shifts, 63).astype(np.uint64)
    owner = used[np.searchsorted(begins, first, side="right") - 1]
    damaged[owner[sizes > _LONGEST_VARINT]] = True
    values = np.bitwise_or.reduceat(parts, first)
    kept = ~damaged[owner]
    return values[kept], owner[kept], damaged


def read_words(buffer: Bytes, places: Int64s) -> UInt64s:
    """The eight bytes from some places on, as little-endian numbers."""
    words: UInt64s = np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))
    return words[places].astype(np.uint64)


class WireDamageError(ValueError):
    """Bytes that are no sound message."""


def walk(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Fields of one message that holds many, one after the other.

    Yields:
        Field number, wire type, value of a varint, beginning and end of the payload of all others.

    Raises:
        WireDamageError: a field does not end within the message, or has a wire type that nobody writes.
    """
    while start < end:
        tag, start = _varint(data, start, end)
        wire, value = tag & 7, 0
        if wire == VARINT:
            value, start = _varint(data, start, end)
            behind = start
        elif wire == LENGTH:
            length, start = _varint(data, start, end)
            behind = start + length
        elif wire in (FIXED64, FIXED32):
            behind = start + (8 if wire == FIXED64 else 4)
        else:
            raise WireDamageError(f"wire type {wire} at byte {start}")
        if behind > end or not tag >> 3:
            raise WireDamageError(f"a field at byte {start} does not end within its message")
        yield tag >> 3, wire, value, start, behind
        start = behind


def _varint(data: bytes, start: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while start < end and shift < 7 * _LONGEST_VARINT:
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, start
        shift += 7
    raise WireDamageError(f"a number at byte {start} has no end")
