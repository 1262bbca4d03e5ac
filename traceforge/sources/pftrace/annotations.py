"""Arguments of slices and stages. In: the places of annotations. Out: a mapping of texts to values, one a slice.

Idea: an annotation is a name and a value; names and values of all are found at once, and only nested ones are walked.
The keys are those of the Chrome JSON, so that the mapping, written as JSON, reads like its args.
Not handled: names by number, which the writer does not use; nesting deeper than 16.
"""

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from traceforge.reading.wire import FIXED64, LENGTH, VARINT, Fields, WireDamageError, read_fields, walk
from traceforge.sources.pftrace.packets import Int64s, Packets

Arguments = dict[str, Any]
_BOOL, _UINT, _INT, _DOUBLE, _TEXT, _NAME, _DICT, _ARRAY = 2, 3, 4, 5, 6, 10, 11, 12
_DEEPEST = 16
_EXTRA_NAME, _EXTRA_VALUE = 1, 2


def annotations_of(packets: Packets, fields: Fields, number: int, count: int) -> list[Arguments | None]:
    """Arguments of messages whose annotations stand in a field; None where there are none.

    Args:
        fields: of the messages.
        number: of the field.
        count: of the messages.
    """
    found: list[Arguments | None] = [None] * count
    for owner, start, end in _places(fields, number):
        name, value = _annotation(packets.data, start, end, 0)
        own = found[owner]
        if own is None:
            found[owner] = {name: value}
        else:
            own[name] = value
    return found


def extra_data_of(packets: Packets, fields: Fields, number: int, count: int) -> list[Arguments | None]:
    """Likewise of stages, whose names and values are texts."""
    owners, starts, ends = _arrays(fields, number)
    found: list[Arguments | None] = [None] * count
    inner = read_fields(packets.buffer, starts, ends)
    texts: list[list[bytes]] = [[b""] * len(owners) for _ in range(2)]
    for place, wanted in enumerate((_EXTRA_NAME, _EXTRA_VALUE)):
        chosen = (inner.number == wanted) & (inner.wire == LENGTH)
        rows = zip(inner.owner[chosen].tolist(), inner.start[chosen].tolist(), inner.end[chosen].tolist(), strict=True)
        for owner, start, end in rows:
            texts[place][owner] = packets.data[start:end]
    for owner, name, value in zip(owners.tolist(), *texts, strict=True):
        own = found[owner]
        if own is None:
            own = found[owner] = {}
        own[name.decode("utf-8", "replace")] = value.decode("utf-8", "replace")
    return found


def _arrays(fields: Fields, number: int) -> tuple[Int64s, Int64s, Int64s]:
    chosen = (fields.number == number) & (fields.wire == LENGTH)
    order = np.argsort(fields.owner[chosen], kind="stable")
    return fields.owner[chosen][order], fields.start[chosen][order], fields.end[chosen][order]


def _places(fields: Fields, number: int) -> Iterator[tuple[int, int, int]]:
    yield from zip(*(column.tolist() for column in _arrays(fields, number)), strict=True)


def _annotation(data: bytes, start: int, end: int, depth: int) -> tuple[str, Any]:
    """Name and value of an annotation; of a damaged one what precedes the damage."""
    name = ""
    value: Any = None
    if depth > _DEEPEST:
        return name, value
    try:
        for number, wire, said, first, last in walk(data, start, end):
            if wire == LENGTH:
                if number == _NAME:
                    name = data[first:last].decode("utf-8", "replace")
                elif number == _TEXT:
                    value = data[first:last].decode("utf-8", "replace")
                elif number == _DICT:
                    key, inner = _annotation(data, first, last, depth + 1)
                    value = value if isinstance(value, dict) else {}
                    value[key] = inner
                elif number == _ARRAY:
                    value = value if isinstance(value, list) else []
                    value.append(_annotation(data, first, last, depth + 1)[1])
            elif number == _BOOL and wire == VARINT:
                value = bool(said)
            elif number in (_UINT, _INT) and wire == VARINT:
                value = said - 2**64 if number == _INT and said >= 2**63 else said
            elif number == _DOUBLE and wire == FIXED64:
                value = struct.unpack("<d", data[first:last])[0]
    except WireDamageError:
        pass
    return name, value
