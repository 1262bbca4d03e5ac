"""What each frame of a `.et` file is. In: the fields of its messages. Out: node, metadata, empty or damaged.

Idea: nothing marks the kind of a frame, so it is judged as a whole: a number may only come with the wire types that the
schema gives it. A frame of fields 1 and 2 alone is metadata if these read as a version or as attributes, else it is a
node whose id and type are zero and therefore left out.
Seen: the schema since 2023-08 (0.0.4 and 1.0.0). Not handled: earlier ones, which use the same numbers for other
things; a file of these is refused.
"""

import numpy as np

from traceforge.errors import InputUnusableError
from traceforge.reading.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    Bools,
    Bytes,
    Fields,
    Int64s,
    read_fields,
    read_varints,
)
from traceforge.sources.chakra.schema import (
    ATTRIBUTE,
    ATTRIBUTE_NAME,
    CONTROL,
    DATA,
    DURATION,
    ID,
    INPUTS,
    NAME,
    OUTPUTS,
    START,
    TYPE,
)

NODE, METADATA, EMPTY, DAMAGED = 0, 1, 2, 3
_HIGHEST_NUMBER = 31
_HIGHEST_TYPE = 63
_OLD_NUMBERS = range(11, 21)
_FIRST_BYTES = (0x08, 0x12)  # a node begins with its id, or with its name if the id is zero
_LONGEST_HEADER = 4


def _allowed_wires() -> Bools:
    """Whether a node may hold a field number (row) with a wire type (column)."""
    allowed = np.zeros((_HIGHEST_NUMBER + 2, 8), np.bool_)
    for number in (ID, TYPE, CONTROL, DATA, START, DURATION):
        allowed[number, VARINT] = True
    for number in (NAME, CONTROL, DATA, INPUTS, OUTPUTS, ATTRIBUTE):
        allowed[number, LENGTH] = True
    allowed[ATTRIBUTE + 1 : _HIGHEST_NUMBER + 1, [VARINT, FIXED64, LENGTH, FIXED32]] = True
    return allowed


_ALLOWED = _allowed_wires()


def judge_frames(buffer: Bytes, starts: Int64s, ends: Int64s, fields: Fields) -> Int64s:
    """`NODE`, `METADATA`, `EMPTY` or `DAMAGED` for each frame."""
    kinds = np.where(fields.damaged, DAMAGED, NODE)
    number = np.minimum(fields.number, _HIGHEST_NUMBER + 1)
    odd = ~_ALLOWED[number, fields.wire] | ((number == TYPE) & (fields.value > _HIGHEST_TYPE))
    kinds[fields.owner[odd]] = DAMAGED
    kinds[starts == ends] = EMPTY
    for frame in _of_metadata_fields(fields, kinds).tolist():
        kinds[frame] = _kind_of_short(buffer, fields.where(fields.owner == frame))
    return kinds


def _of_metadata_fields(fields: Fields, kinds: Int64s) -> Int64s:
    """Frames that hold nothing but fields 1 and 2, each with a length."""
    other = (fields.number > NAME) | (fields.wire != LENGTH)
    candidate = (kinds != EMPTY) & ~fields.damaged
    candidate[fields.owner[other]] = False
    return np.flatnonzero(candidate)


def _kind_of_short(buffer: Bytes, fields: Fields) -> int:
    """Metadata, if all fields 2 are attributes; else a node with nothing but a name, or damage."""
    second = fields.number == NAME
    attributes = read_fields(buffer, fields.start[second], fields.end[second])
    named = np.zeros(int(second.sum()), np.bool_)
    named[attributes.owner[(attributes.number == ATTRIBUTE_NAME) & (attributes.wire == LENGTH)]] = True
    if named.all() and not attributes.damaged.any():
        return METADATA
    return NODE if second.all() else DAMAGED


def refuse_old_versions(fields: Fields, kinds: Int64s, where: str) -> None:
    """Stop at a file of a schema before 2023-08.

    Those schemas gave parents one by one (field 4), and used fields 6 to 10 with other wire types or fields from 11 on.

    Raises:
        InputUnusableError: half of the frames or more are of that kind.
    """
    number, wire = fields.number, fields.wire
    marks = ((number == START) | (number == DURATION)) & (wire == LENGTH)
    marks |= (number >= INPUTS) & (number <= ATTRIBUTE) & (wire == VARINT)
    if ((number == CONTROL) & (wire == VARINT)).any():
        marks |= (number >= _OLD_NUMBERS.start) & (number < _OLD_NUMBERS.stop)
    frames = int(np.count_nonzero((kinds == NODE) | (kinds == DAMAGED)))
    marked = len(np.unique(fields.owner[marks & ~fields.damaged[fields.owner]]))
    if marked and 2 * marked >= frames:
        raise InputUnusableError(
            "a Chakra trace of a schema before August 2023, whose fields mean other things",
            where=where,
            hint="convert it again from the original trace with mlc-chakra 0.0.4 or later",
        )


def find_frame(buffer: Bytes, first: int, size: int, is_last: bool) -> int | None:
    """Where, from `first` on, a frame with a sound node begins that another one or the end of the file follows.

    What ends with the file begins with an id: the id of a node that is cut off may fit the rest of it as a length.

    Args:
        buffer: bytes, padded.
        first: the first place to look at.
        size: number of bytes without padding.
        is_last: whether the file ends behind them.
    """
    candidates = _header_places(buffer, first, size)
    lengths, starts = read_varints(buffer, candidates)
    fitting = lengths <= np.maximum(size - starts, 0).astype(np.uint64)
    candidates, starts = candidates[fitting], starts[fitting]
    ends = starts + lengths[fitting].astype(np.int64)
    sound = _are_full_nodes(buffer, starts, ends)
    has_id = buffer[starts] == _FIRST_BYTES[0]
    for place, end, begins_with_id in zip(*(own[sound].tolist() for own in (candidates, ends, has_id)), strict=True):
        if begins_with_id if end == size else _may_follow(buffer, end, size, is_last):
            return int(place)
    return None


def _header_places(buffer: Bytes, first: int, size: int) -> Int64s:
    """Places where a length is followed by the first byte of a node."""
    places = []
    ends_here = buffer < 0x80
    begins_node = np.isin(buffer, _FIRST_BYTES)
    goes_on = np.ones(len(buffer), np.bool_)
    for header_bytes in range(1, _LONGEST_HEADER + 1):
        rest = len(buffer) - header_bytes
        here = goes_on[:rest] & ends_here[header_bytes - 1 : -1] & begins_node[header_bytes:]
        places.append(np.flatnonzero(here))
        goes_on = goes_on[:rest] & ~ends_here[header_bytes - 1 : -1]
    found = np.concatenate(places)
    return np.sort(found[(found >= first) & (found < size)])


def _are_full_nodes(buffer: Bytes, starts: Int64s, ends: Int64s) -> Bools:
    """Whether each message is a node that has a name, and a type or an attribute."""
    fields = read_fields(buffer, starts, ends)
    named, typed = (np.zeros(len(starts), np.bool_) for _ in range(2))
    named[fields.owner[fields.number == NAME]] = True
    typed[fields.owner[(fields.number == TYPE) | (fields.number == ATTRIBUTE)]] = True
    sound: Bools = named & typed & (judge_frames(buffer, starts, ends, fields) == NODE)
    return sound


def _may_follow(buffer: Bytes, place: int, size: int, is_last: bool) -> bool:
    """Whether a frame at `place` is a sound node, or too long for the bytes at hand."""
    length, start = read_varints(buffer, np.array([place]))
    end = int(start[0]) + int(min(length[0], size))
    if end > size:
        return not is_last or int(buffer[min(int(start[0]), size)]) in _FIRST_BYTES
    return bool(_are_full_nodes(buffer, start, np.array([end]))[0])
