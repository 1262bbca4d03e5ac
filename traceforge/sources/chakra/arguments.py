"""Inputs and outputs of nodes. In: nodes of a block. Out: tensors, texts; rows of raw.chakra_tensor.

Idea: three texts a node (values, shapes, types), each the repr of a list, are parsed only for nodes that are asked for:
those that communicate, and all where every argument is to be kept.
Not handled: strides, which the converter drops.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.tensors import Tensor, tensor_columns, tensors_of
from traceforge.reading.wire import LENGTH, Int64s, read_fields
from traceforge.sources.chakra.literals import UnreadableError, value_of
from traceforge.sources.chakra.nodes import NodeColumns
from traceforge.sources.chakra.schema import INPUTS, OUTPUTS

_PARTS = (1, 2, 3)  # values, shapes, types
_DIRECTIONS = {INPUTS: "input", OUTPUTS: "output"}


def argument_texts(columns: NodeColumns, number: int, nodes: Int64s) -> Iterator[tuple[int, list[str]]]:
    """Values, shapes and types of the inputs or outputs of some nodes; empty texts where a node states none.

    Args:
        columns: of the nodes' block.
        number: `INPUTS` or `OUTPUTS`.
        nodes: numbers of the nodes in the block.
    """
    starts, ends = columns.places(number)
    fields = read_fields(columns.block.buffer, starts[nodes], ends[nodes])
    texts: list[list[str]] = [[""] * len(_PARTS) for _ in nodes]
    for owner, part, wire, start, end in zip(
        fields.owner.tolist(),
        fields.number.tolist(),
        fields.wire.tolist(),
        fields.start.tolist(),
        fields.end.tolist(),
        strict=True,
    ):
        if part in _PARTS and wire == LENGTH:
            texts[owner][part - 1] = columns.block.data[start:end].decode("utf-8", "replace")
    yield from zip(nodes.tolist(), texts, strict=True)


def tensors_of_nodes(
    columns: NodeColumns, number: int, nodes: Int64s, issues: IssueLog
) -> Iterator[tuple[int, list[Tensor]]]:
    """The tensors among the inputs or outputs of some nodes that have any."""
    for node, texts in argument_texts(columns, number, nodes):
        if "Tensor" not in texts[-1]:
            continue
        try:
            yield node, tensors_of(*(value_of(text) for text in texts))
        except UnreadableError:
            issues.add("unreadable_arguments", at=f"node {columns.block.positions[node]}")


def tensor_rows(columns: NodeColumns, issues: IssueLog) -> pl.DataFrame:
    """Rows of raw.chakra_tensor, of all nodes of a block."""
    nodes = np.arange(len(columns.ids))
    rows = [
        {**node_key(columns, node), "direction": direction, **tensor_columns(tensor)}
        for number, direction in _DIRECTIONS.items()
        for node, tensors in tensors_of_nodes(columns, number, nodes, issues)
        for tensor in tensors
    ]
    return frame_of_rows("raw.chakra_tensor", rows)


def node_key(columns: NodeColumns, node: int) -> dict[str, object]:
    """What identifies one node of a block."""
    block = columns.block
    return {"part": block.part, "position": int(block.positions[node]), "node_id": int(columns.ids[node])}
