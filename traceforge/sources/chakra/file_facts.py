"""What a binary trace says about itself. In: metadata messages. Out: a `Part` with its facts.

Idea: metadata is a version and named attributes; those that PyTorch's converter writes become columns.
Not handled: attributes of the custom-collective converter (kept as text).
"""

import numpy as np

from traceforge.reading.chakra_file import Part
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.wire import LENGTH, VARINT, padded, read_fields
from traceforge.sources.chakra.schema import (
    ATTRIBUTE_NAME,
    METADATA_ATTRIBUTE,
    VALUE_NUMBERS,
    VERSION,
)
from traceforge.sources.chakra.values import bits_at, is_of_wire, value_of_number

_Field = tuple[int, int, int, int, int]


def read_metadata(data: bytes, issues: IssueLog) -> Part:
    """A trace from its metadata message."""
    part = Part(has_metadata=True)
    for number, wire, _, start, end in _fields(data):
        if number == VERSION and wire == LENGTH:
            part.version = data[start:end].decode("utf-8", "replace")
        elif number == METADATA_ATTRIBUTE and wire == LENGTH:
            name, value = _attribute(data[start:end])
            if name is None:
                issues.add("unreadable_metadata")
            else:
                part.facts[name] = value
    return part


def _fields(data: bytes) -> list[_Field]:
    fields = read_fields(padded(data), np.zeros(1, np.int64), np.array([len(data)]))
    columns = (fields.number, fields.wire, fields.value, fields.start, fields.end)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _attribute(data: bytes) -> tuple[str | None, object]:
    name: str | None = None
    value: object = None
    for number, wire, bits, start, end in _fields(data):
        if number == ATTRIBUTE_NAME and wire == LENGTH:
            name = data[start:end].decode("utf-8", "replace")
        elif number in VALUE_NUMBERS and is_of_wire(number, wire):
            value = value_of_number(number, bits if wire == VARINT else bits_at(data, start, end), data[start:end])
    return name, value
