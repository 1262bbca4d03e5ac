"""Inputs and outputs of nodes. In: nodes. Out: their values, and rows of raw.chakra_tensor.

Idea: since 1.0.2 a node's inputs are an object of values, shapes, types and (1.1.1) strides; before, three lists of its
own. They are decoded only for nodes that are asked for. Not handled: arguments that are no JSON lists.
"""

from dataclasses import dataclass

import polars as pl
from msgspec import Raw

from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.tensors import Tensor, tensor_columns, tensors_of
from traceforge.sources.pytorch_et.decode import Node, value_of
from traceforge.sources.pytorch_et.units import NodeUnit


@dataclass(frozen=True, slots=True)
class Arguments:
    """Inputs or outputs of one node, as decoded; None where missing or undecodable."""

    values: object
    shapes: object
    types: object
    strides: object

    def tensors(self) -> list[Tensor]:
        """All tensors among them."""
        return tensors_of(self.values, self.shapes, self.types, self.strides)


def inputs_of(node: Node) -> Arguments:
    """Inputs of a node."""
    return _arguments(node.inputs, node.input_shapes, node.input_types)


def outputs_of(node: Node) -> Arguments:
    """Outputs of a node."""
    return _arguments(node.outputs, node.output_shapes, node.output_types)


_PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"})


def _arguments(values: Raw, shapes: Raw, types: Raw) -> Arguments:
    found = value_of(values)
    if isinstance(found, dict):
        return Arguments(*(found.get(name) for name in ("values", "shapes", "types", "strides")))
    return Arguments(found, value_of(shapes), value_of(types), None)


def tensor_rows(unit: NodeUnit, issues: IssueLog, *, of_all: bool) -> pl.DataFrame:
    """Rows of raw.chakra_tensor.

    Args:
        of_all: of all nodes, and not of products of matrices only, which tell how much work a rank is given.
    """
    rows: list[dict[str, object]] = []
    for index, node in enumerate(unit.nodes):
        if not of_all and node.name not in _PRODUCTS:
            continue
        for direction, arguments in (("input", inputs_of(node)), ("output", outputs_of(node))):
            if not isinstance(arguments.values, list) and bytes(node.inputs):
                issues.add("unreadable_arguments", at=unit.place(index))
            rows += [
                {**unit.key(index), "direction": direction, **tensor_columns(tensor)} for tensor in arguments.tensors()
            ]
    return frame_of_rows("raw.chakra_tensor", rows)
