"""Chakra files decoded by hand. In: bytes of a `.et` file. Out: its metadata and nodes as mappings.

Shares no code with what writes or reads traces in the package.
"""

from collections.abc import Iterator
from typing import Any

Field = tuple[int, int | bytes]
_LISTS = {4: "control", 5: "data"}
_NUMBERS = {1: "id", 3: "type", 6: "start_us", 7: "duration_us"}


def varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def fields(data: bytes) -> Iterator[Field]:
    place = 0
    while place < len(data):
        tag, place = varint(data, place)
        value, place = varint(data, place)
        assert tag & 7 in (0, 2)
        if tag & 7 == 2:
            assert place + value <= len(data)
            yield tag >> 3, data[place : place + value]
            place += value
        else:
            yield tag >> 3, value


def messages(data: bytes) -> list[bytes]:
    found, place = [], 0
    while place < len(data):
        length, place = varint(data, place)
        assert length
        found.append(data[place : place + length])
        place += length
    return found


def attribute(data: bytes) -> tuple[str, Any]:
    found = dict(fields(data))
    name = found.pop(1)
    ((number, value),) = found.items()
    assert isinstance(name, bytes)
    return name.decode(), {7: lambda v: v, 9: lambda v: v, 27: bool, 29: lambda v: v.decode()}[number](value)


def node(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"data": [], "control": [], "start_us": 0, "duration_us": 0, "attributes": {}}
    for number, value in fields(data):
        if number in _LISTS:
            assert isinstance(value, bytes)
            place = 0
            while place < len(value):
                other, place = varint(value, place)
                found[_LISTS[number]].append(other)
        elif number in _NUMBERS:
            found[_NUMBERS[number]] = value
        elif number == 2:
            found["name"] = value.decode() if isinstance(value, bytes) else None
        elif number == 10:
            assert isinstance(value, bytes)
            found["attributes"] |= [attribute(value)]
        elif number == 8:
            assert isinstance(value, bytes)
            found["inputs"] = dict(fields(value))[1].decode()  # type: ignore[union-attr]
    return found


def longest_path_us(nodes: list[dict[str, Any]], *, without_communication: bool = False) -> int:
    """Largest sum of durations along dependencies, by definition: start after all others have ended."""
    ends: dict[int, int] = {}
    left = list(nodes)
    while left:
        waiting = []
        for one in left:
            needs = [*one["data"], *one["control"]]
            if all(other in ends for other in needs):
                duration = 0 if without_communication and one["type"] == 7 else one["duration_us"]
                ends[one["id"]] = max((ends[other] for other in needs), default=0) + duration
            else:
                waiting.append(one)
        assert len(waiting) < len(left), "dependencies form a circle"
        left = waiting
    return max(ends.values())
