"""Nodes of JSON documents as rows. In: `NodeDocument`s. Out: frames of raw.chakra_*.

Idea: the same tables and rules as for the binary form, from values that are decoded already.
Not handled: what `documents` does not handle.
"""

from collections.abc import Sequence

import msgspec
import polars as pl

from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.numbers import text_of
from traceforge.reading.process_groups import INIT_NODE, group_rows
from traceforge.reading.tensors import Tensor, tensor_columns, tensors_of
from traceforge.sources.chakra.documents import NodeDocument, Spelling
from traceforge.sources.chakra.literals import UnreadableError, json_of_text, listed_texts, value_of
from traceforge.sources.chakra.schema import (
    COLLECTIVE,
    COMMUNICATION_ATTRIBUTES,
    COMMUNICATION_MARKS,
    INTEGERS,
    NODE_ATTRIBUTES,
    NODE_TEXTS,
    NODE_TYPES,
    RECEIVE,
    SEND,
    TEXTS,
    collective_name,
    is_collective,
)

Row = dict[str, object]
_COMMUNICATION_TYPES = {NODE_TYPES[number] for number in (SEND, RECEIVE, COLLECTIVE)}


class DocumentRows:
    """Makes rows of the nodes of one trace.

    Args:
        spelling: reads numbers.
        issues: counts what cannot be read.
        keep_all: keep tensors and attributes of all nodes, not only what communication needs.
    """

    def __init__(self, spelling: Spelling, issues: IssueLog, keep_all: bool) -> None:
        self._spelling = spelling
        self._issues = issues
        self._keep_all = keep_all

    def frames(self, part: int, nodes: Sequence[NodeDocument]) -> list[tuple[str, pl.DataFrame]]:
        """Rows of every table, those of process groups included."""
        rows: dict[str, list[Row]] = {
            "raw.chakra_node": [self._node(part, node) for node in nodes],
            "raw.chakra_edge": [edge for node in nodes for edge in _edges(part, node)],
            "raw.chakra_communication": [self._communication(part, node) for node in nodes if _communicates(node)],
            "raw.chakra_attribute": [
                attribute
                for node in nodes
                if self._keep_all or _communicates(node)
                for attribute in self._attributes(part, node)
            ],
            "raw.chakra_process_group": [
                group for node in nodes if node.name == INIT_NODE for group in self._groups(part, node)
            ],
            "raw.chakra_tensor": [tensor for node in nodes if self._keep_all for tensor in self._tensors(part, node)],
        }
        return [(table, frame_of_rows(table, found)) for table, found in rows.items() if found]

    def _integer(self, node: NodeDocument, name: str) -> int | None:
        return self._spelling.integer(node.attributes.get(name), f"node {node.position}")

    def _node(self, part: int, node: NodeDocument) -> Row:
        is_cpu = self._integer(node, "is_cpu_op")
        return {
            **_key(part, node),
            "name": node.name,
            "node_type": node.node_type,
            "is_cpu": None if is_cpu is None else is_cpu != 0,
            "raw_start_ns": node.start_ns,
            "duration_ns": node.duration_ns,
            **{column: self._integer(node, name) for column, name in NODE_ATTRIBUTES.items()},
            **{name: text_of(node.attributes.get(name)) for name in NODE_TEXTS},
        }

    def _communication(self, part: int, node: NodeDocument) -> Row:
        tensors = self._read_tensors(node.inputs, node)
        stated = self._integer(node, "comm_size")
        measured = sum(tensor.size_bytes for tensor in tensors) if tensors else None
        if stated is not None and measured is not None and stated != measured:
            self._issues.add("size_contradicted", at=f"node {node.position}")
        group = node.attributes.get("pg_name") or self._integer(node, "pg_id")
        number = NODE_TYPES.index(node.node_type) if node.node_type in _COMMUNICATION_TYPES else None
        name = collective_name(number, self._integer(node, "comm_type"))
        if not is_collective(name):
            on_host = self._integer(node, "is_cpu_op") == 1
            self._issues.add("host_communication" if on_host else "unknown_collective", at=f"node {node.position}")
        return {
            **_key(part, node),
            "origin": "attributes",
            "collective_name": name,
            "is_wait": False,
            "process_group_name": None if group is None else str(group),
            "in_bytes": measured if stated is None else stated,
            "dtype": tensors[0].dtype if tensors else None,
            **{column: self._integer(node, name) for column, name in COMMUNICATION_ATTRIBUTES.items()},
        }

    def _attributes(self, part: int, node: NodeDocument) -> list[Row]:
        return [
            {**_key(part, node), "name": name, "value": _json(value)}
            for name, value in node.attributes.items()
            if name not in INTEGERS and name not in TEXTS
        ]

    def _tensors(self, part: int, node: NodeDocument) -> list[Row]:
        return [
            {**_key(part, node), "direction": direction, **tensor_columns(tensor)}
            for direction, texts in (("input", node.inputs), ("output", node.outputs))
            for tensor in self._read_tensors(texts, node)
        ]

    def _groups(self, part: int, node: NodeDocument) -> list[Row]:
        try:
            groups = [group for text in listed_texts(node.inputs[0]) for group in group_rows(json_of_text(text))]
        except UnreadableError:
            self._issues.add("unreadable_groups", at=f"node {node.position}")
            return []
        return [{**_key(part, node), **group} for group in groups]

    def _read_tensors(self, texts: tuple[str, str, str], node: NodeDocument) -> list[Tensor]:
        if "Tensor" not in texts[-1]:
            return []
        try:
            return tensors_of(*(value_of(text) for text in texts))
        except UnreadableError:
            self._issues.add("unreadable_arguments", at=f"node {node.position}")
            return []


def _key(part: int, node: NodeDocument) -> Row:
    return {"part": part, "position": node.position, "node_id": node.node_id}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")


def _communicates(node: NodeDocument) -> bool:
    if node.node_type in (None, NODE_TYPES[0]):
        return any(mark in node.attributes for mark in COMMUNICATION_MARKS)
    return node.node_type in _COMMUNICATION_TYPES


def _edges(part: int, node: NodeDocument) -> list[Row]:
    return [
        {"part": part, "from_node_id": other, "to_node_id": node.node_id, "kind": kind, "origin": origin}
        for kind, origin, others in (("control", "ctrl_deps", node.control), ("data", "data_deps", node.data))
        for other in others
    ]
