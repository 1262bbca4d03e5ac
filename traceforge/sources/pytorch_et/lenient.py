"""Nodes whose values have unexpected types. In: the text of one node. Out: a `Node`, as far as it can be read.

Idea: see `reading.lenient`. Not handled: an element that is no object.
"""

import msgspec

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.lenient import LenientReader, ReadValue
from traceforge.reading.numbers import integer_of
from traceforge.sources.pytorch_et.decode import Attribute, Node, decode_node, value_of


def read_node(text: bytes, issues: IssueLog) -> Node:
    """One element, field by field if its types are not those expected.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is no JSON object.
    """
    try:
        return decode_node(text)
    except msgspec.ValidationError:
        return _lenient_node(text, LenientReader(issues))


def _lenient_node(text: bytes, reader: LenientReader) -> Node:
    def references(token: bytes) -> int | list[int] | None:
        value = value_of(token)
        if value is None:
            return None
        listed = value if isinstance(value, list) else [value]
        numbers = [number for item in listed if (number := integer_of(item)) is not None]
        reader.count_wrong_type(len(listed) - len(numbers))
        return numbers if isinstance(value, list) else numbers[0] if numbers else None

    def group(token: bytes) -> int | str | None:
        value = value_of(token)
        return value if isinstance(value, int | str) else None

    readers: dict[object, ReadValue] = {
        int | list[int] | None: references,
        int | str | None: group,
        list[Attribute] | None: _attributes,
    }
    return reader.struct(Node, text, readers)


def _attributes(token: bytes) -> list[Attribute] | None:
    listed = value_of(token)
    if listed is None:
        return None
    if isinstance(listed, dict):
        return [Attribute(str(name), value) for name, value in listed.items()]
    found = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return [Attribute(str(item.get("name", "")), item.get("value")) for item in found]
