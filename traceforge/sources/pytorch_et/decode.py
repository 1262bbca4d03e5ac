"""JSON text to typed nodes, fast. In: the text of nodes. Out: `Node` structs.

Idea: msgspec decodes only the fields that become columns; inputs, outputs and times stay raw text until somebody asks,
so no digit is lost. Absent integers are the smallest int64, so that a column packs without looking at each value. Nodes
with values of unexpected types are read by `lenient` instead.
Seen: execution traces 1.0.1 to 1.1.1, and ET+ as linkers wrote it in 2023 and since 2024.
"""

from typing import Any

import msgspec
from msgspec import Raw

from traceforge.reading.json_values import ABSENT, NO_TOKEN, UNDECODABLE


class Attribute(msgspec.Struct, gc=False):
    """One element of `attrs` (since 1.0.2)."""

    name: str = ""
    value: Any = None


class Node(msgspec.Struct, gc=False):
    """One element of `nodes`; the flat fields from `input_shapes` to `op_schema` are those of 1.0.1.

    Times are raw tokens in us.
    """

    id: int = ABSENT
    name: str | None = None
    ctrl_deps: int | list[int] | None = None
    parent: int | list[int] | None = None
    inputs: Raw = NO_TOKEN
    outputs: Raw = NO_TOKEN
    attrs: list[Attribute] | None = None
    input_shapes: Raw = NO_TOKEN
    input_types: Raw = NO_TOKEN
    output_shapes: Raw = NO_TOKEN
    output_types: Raw = NO_TOKEN
    rf_id: int = ABSENT
    fw_parent: int = ABSENT
    seq_id: int = ABSENT
    scope: int = ABSENT
    tid: int = ABSENT
    fw_tid: int = ABSENT
    op_schema: str | None = None
    ts: Raw = NO_TOKEN
    dur: Raw = NO_TOKEN
    inclusive_dur: Raw = NO_TOKEN
    exclusive_dur: Raw = NO_TOKEN
    inter_thread_dep: int | list[int] | None = None
    sync_dep: int | list[int] | None = None
    cat: str | None = None
    stream: int = ABSENT
    pg_name: int | str | None = None
    args: Raw = NO_TOKEN


_node = msgspec.json.Decoder(Node)
_nodes = msgspec.json.Decoder(list[Node])
_any = msgspec.json.Decoder()


def decode_nodes(text: bytes) -> list[Node]:
    """All elements of a list's text, without its brackets.

    Raises:
        msgspec.ValidationError: sound JSON up to some place, but of other types.
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: no sound JSON.
    """
    return _nodes.decode(b"[%b]" % text)


def decode_node(text: bytes) -> Node:
    """One element.

    Raises:
        msgspec.ValidationError: sound JSON up to some place, but of other types.
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: no sound JSON.
    """
    return _node.decode(text)


def value_of(text: Raw | bytes) -> object:
    """A JSON value, whatever it is; None for absent and undecodable ones."""
    try:
        return _any.decode(text) if bytes(text) else None
    except UNDECODABLE:
        return None


def is_node(node: Node) -> bool:
    """Whether an object has what only nodes have."""
    return node.id != ABSENT or (node.name is not None and (node.ctrl_deps is not None or node.inputs is not NO_TOKEN))
