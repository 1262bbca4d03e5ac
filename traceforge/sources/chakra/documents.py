"""Nodes as JSON documents, in the spelling of any tool. In: decoded objects. Out: `NodeDocument`s with one spelling.

Idea: the jsonizer's camelCase (`ctrlDeps`), protobuf's own names (`ctrl_deps`) and the feeder's mixed case (`Id`,
`NodeType`, `runtime`) are the same words once case and underscores are gone. Integers may be texts, as protobuf's JSON
writes 64-bit ones; whatever is no field of a node is an attribute.
Seen: mlc-chakra 0.0.4 and 1.0.0, the C++ feeder's samples. Not handled: values of type bytes (kept as base64 text).
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.numbers import integer_of
from traceforge.sources.chakra.schema import type_name

JsonObject = dict[str, object]
_ONLY_METADATA = {"attr", "version"}
_FIELDS = {
    *("id", "name", "type", "nodetype", "ctrldeps", "datadeps", "starttimemicros", "durationmicros", "runtime"),
    *("inputs", "outputs", "attr", "version"),
}
_INTEGER = re.compile(r"[+-]?\d{1,20}")
_LARGEST_ID = 2**64
_LIMIT = 2**63


@dataclass(slots=True)
class NodeDocument:
    """One node; times in ns, None where not stated.

    Attributes:
        node_id: as a signed 64-bit number; ids from 2^63 on are stored minus 2^64.
        attributes: by name, as decoded.
        inputs, outputs: texts of values, shapes and types.
    """

    position: int
    node_id: int | None
    name: str | None
    node_type: str | None
    control: list[int]
    data: list[int]
    start_ns: int | None
    duration_ns: int | None
    inputs: tuple[str, str, str]
    outputs: tuple[str, str, str]
    attributes: dict[str, object] = field(default_factory=dict)


def is_document(document: JsonObject) -> bool:
    """Whether an object is a node or metadata, not a part of one."""
    keys = {canonical(key) for key in document}
    return not keys or bool(keys & (_FIELDS - {"name"}))


def is_metadata(document: JsonObject) -> bool:
    """Whether a document says something about a trace."""
    return {canonical(key) for key in document} <= _ONLY_METADATA


@lru_cache(maxsize=4096)
def canonical(key: str) -> str:
    """A key without case and underscores."""
    return key.replace("_", "").lower()


def attributes_in(listed: object) -> dict[str, object]:
    """Attributes by name from a list of messages; a value of a list type is its list."""
    found: dict[str, object] = {}
    for attribute in listed if isinstance(listed, list) else []:
        if isinstance(attribute, dict) and isinstance(name := attribute.get("name"), str):
            values = [value for key, value in attribute.items() if canonical(key) not in ("name", "docstring")]
            value = values[-1] if values else None
            found[name] = value.get("values", []) if isinstance(value, dict) else value
    return found


class Spelling:
    """Reads documents of one file."""

    def __init__(self, issues: IssueLog) -> None:
        self._issues = issues

    def node(self, document: JsonObject, position: int) -> NodeDocument:
        """A node from its document."""
        fields = {canonical(key): value for key, value in document.items() if canonical(key) in _FIELDS}
        others = {key: value for key, value in document.items() if canonical(key) not in _FIELDS}
        place = f"node {position}"
        name = fields.get("name")
        return NodeDocument(
            position,
            self._id(fields.get("id", 0), place),
            None if name in (None, "") else str(name),
            self._type(fields.get("nodetype", fields.get("type", 0)), place),
            self._ids(fields.get("ctrldeps"), place),
            self._ids(fields.get("datadeps"), place),
            self._nanoseconds(fields.get("starttimemicros"), place),
            self._nanoseconds(fields.get("durationmicros", fields.get("runtime")), place),
            _arguments(fields.get("inputs")),
            _arguments(fields.get("outputs")),
            {**others, **attributes_in(fields.get("attr"))},
        )

    def integer(self, value: object, place: str) -> int | None:
        """A value as an integer that fits 64 bits with a sign; None where it is none."""
        if value is None:
            return None
        number = integer_of(value)
        if number is None:
            self._issues.add("wrong_type", at=place)
        elif not -_LIMIT <= number < _LIMIT:
            self._issues.add("out_of_range", at=place)
            return None
        return number

    def _id(self, value: object, place: str) -> int | None:
        number = integer_of(value)
        if number is None or not 0 <= number < _LARGEST_ID:
            self._issues.add("wrong_type" if number is None else "out_of_range", at=place)
            return None
        return number if number < _LIMIT else number - _LARGEST_ID

    def _ids(self, values: object, place: str) -> list[int]:
        listed = values if isinstance(values, list) else [] if values is None else [values]
        return [number for value in listed if (number := self._id(value, place)) is not None]

    def _type(self, value: object, place: str) -> str | None:
        if isinstance(value, str) and not _INTEGER.fullmatch(value):
            return value.removesuffix("_NODE")
        number = self.integer(value, place)
        return None if number is None else type_name(number)

    def _nanoseconds(self, value: object, place: str) -> int | None:
        if value is None:
            return None
        if isinstance(value, float) and abs(value) < _LIMIT // 1000:
            return round(value * 1000) or None
        number = self.integer(value, place)
        if number is not None and abs(number) > _LIMIT // 1000:
            self._issues.add("out_of_range", at=place)
            return None
        return number * 1000 if number else None


def _arguments(value: object) -> tuple[str, str, str]:
    if not isinstance(value, dict):
        return "", "", ""
    values, shapes, types = (str(value.get(key, "")) for key in ("values", "shapes", "types"))
    return values, shapes, types
