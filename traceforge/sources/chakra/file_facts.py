"""What a trace says about itself. In: metadata messages or documents. Out: rows of raw.chakra_file.

Idea: metadata is a version and named attributes; those that PyTorch's converter writes become columns, and all of them
are kept as JSON text. PyTorch counts start and finish in ms of its steady clock, which are not comparable between hosts
or with a timeline.
Not handled: attributes of the custom-collective converter (kept as text).
"""

from dataclasses import dataclass, field

import msgspec
import numpy as np

from traceforge.sources.chakra.issues import IssueLog
from traceforge.sources.chakra.schema import (
    ATTRIBUTE_NAME,
    METADATA_ATTRIBUTE,
    VALUE_NUMBERS,
    VERSION,
)
from traceforge.sources.chakra.values import bits_at, is_of_wire, value_of_number
from traceforge.sources.chakra.wire import LENGTH, VARINT, padded, read_fields

_NS_PER_MS = 1_000_000
_LIMIT = 2**63
_Field = tuple[int, int, int, int, int]


@dataclass(slots=True)
class Part:
    """One trace of a file.

    Attributes:
        has_metadata: whether it begins with metadata.
        version: stated by the metadata.
        facts: its attributes by name.
        node_count: nodes stored.
    """

    has_metadata: bool = False
    version: str | None = None
    facts: dict[str, object] = field(default_factory=dict)
    node_count: int = 0

    @property
    def rank(self) -> int | None:
        """Global rank, where the metadata states it; the known writers do not."""
        rank = self.facts.get("rank")
        return rank if isinstance(rank, int) and 0 <= rank < 2**31 else None

    def row(self, number: int, kind: str, is_complete: bool) -> dict[str, object]:
        """The row of raw.chakra_file."""
        return {
            "part": number,
            "format": kind,
            "schema_version": _text(self.facts.get("schema")),
            "wire_version": self.version,
            "has_metadata": self.has_metadata,
            "is_complete": is_complete,
            "node_count": self.node_count,
            "rank": self.rank,
            "process_id": _integer(self.facts.get("pid"), 1),
            "recorded_at": _text(self.facts.get("time")),
            "raw_start_ns": _integer(self.facts.get("start_ts"), _NS_PER_MS),
            "raw_finish_ns": _integer(self.facts.get("finish_ts"), _NS_PER_MS),
            "time_unit": "us",
            "metadata": msgspec.json.encode(self.facts).decode("utf-8", "replace"),
        }


def _text(value: object) -> str | None:
    return None if value in (None, "") else str(value)


def _integer(value: object, factor: int) -> int | None:
    """A number times a factor; texts count, as protobuf's JSON writes long integers so."""
    if isinstance(value, str) and value.isdigit() and len(value) < 20:
        value = int(value)
    return value * factor if isinstance(value, int) and abs(value * factor) < _LIMIT else None


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
