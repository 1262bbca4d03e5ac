"""Nodes whose values have unexpected types. In: the text of one node. Out: a `Node`, as far as it can be read.

Idea: every field is first taken as raw text and then read on its own, so that a bad value costs only itself.
Integers may stand in quotes or carry a zero fraction. Not handled: an element that is no object.
"""

import msgspec
from msgspec import Raw

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.numbers import integer_of
from traceforge.sources.pytorch_et.decode import ABSENT, NO_TEXT, Attribute, Node, decode_node, value_of

_INTEGERS = ("id", "rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "stream")
_TEXTS = ("name", "op_schema", "cat")
_REFERENCES = ("ctrl_deps", "parent", "inter_thread_dep", "sync_dep")
_RAW = (
    *("inputs", "outputs", "input_shapes", "input_types", "output_shapes", "output_types"),
    *("ts", "dur", "inclusive_dur", "exclusive_dur", "args"),
)
_fields = msgspec.json.Decoder(dict[str, Raw])


def read_node(text: bytes, issues: IssueLog) -> Node:
    """One element, field by field if its types are not those expected.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is no JSON object.
    """
    try:
        return decode_node(text)
    except msgspec.ValidationError:
        return _Reading(issues).node(_fields.decode(text))


class _Reading:
    """Reads the fields of one node and counts those of unexpected types."""

    def __init__(self, issues: IssueLog) -> None:
        self._issues = issues

    def node(self, fields: dict[str, Raw]) -> Node:
        node = Node()
        for name in _RAW:
            setattr(node, name, fields.get(name, NO_TEXT))
        for name in _INTEGERS:
            setattr(node, name, self._integer(fields.get(name)))
        for name in _TEXTS:
            setattr(node, name, self._text(fields.get(name)))
        for name in _REFERENCES:
            setattr(node, name, self._references(fields.get(name)))
        group = self._value(fields.get("pg_name"))
        node.pg_name = group if isinstance(group, int | str) else None
        node.attrs = self._attributes(fields.get("attrs"))
        return node

    def _value(self, raw: Raw | None) -> object:
        if raw is None:
            return None
        value = value_of(raw)
        if value is None and bytes(raw) != b"null":
            self._issues.add("wrong_type")
        return value

    def _integer(self, raw: Raw | None) -> int:
        value = self._value(raw)
        number = integer_of(value)
        if number is None and value is not None:
            self._issues.add("wrong_type")
        return ABSENT if number is None else number

    def _text(self, raw: Raw | None) -> str | None:
        value = self._value(raw)
        if value is not None and not isinstance(value, str):
            self._issues.add("wrong_type")
            return str(value)
        return value

    def _references(self, raw: Raw | None) -> int | list[int] | None:
        value = self._value(raw)
        if value is None:
            return None
        listed = value if isinstance(value, list) else [value]
        numbers = [number for item in listed if (number := integer_of(item)) is not None]
        self._issues.add("wrong_type", len(listed) - len(numbers))
        return numbers if isinstance(value, list) else numbers[0] if numbers else None

    def _attributes(self, raw: Raw | None) -> list[Attribute] | None:
        listed = self._value(raw)
        if listed is None:
            return None
        if isinstance(listed, dict):
            return [Attribute(str(name), value) for name, value in listed.items()]
        found = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        return [Attribute(str(item.get("name", "")), item.get("value")) for item in found]
