"""Nodes as rows. In: `NodeUnit`s. Out: frames of raw.chakra_node and raw.chakra_edge.

Idea: PyTorch records operations of the host, each with its caller; ET+ adds times, and device nodes with a category.
Seen: 1.0.1 to 1.1.1 and ET+ of 2023 and since 2024. Not handled: data flow (it follows from raw.chakra_tensor).
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from msgspec import Raw

from traceforge.reading.chakra_rows import Column, frame_of, repeated
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import ABSENT, NO_TOKEN
from traceforge.sources.pytorch_et.decode import Node, value_of
from traceforge.sources.pytorch_et.microseconds import to_nanoseconds
from traceforge.sources.pytorch_et.units import Int64s, NodeUnit

_DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "memcpy", "memset"})
_INTEGERS = {
    "rf_id": "rf_id",
    "fw_parent_id": "fw_parent",
    "seq_id": "seq_id",
    "scope": "scope",
    "thread_id": "tid",
    "fw_thread_id": "fw_tid",
}
_EDGES = {"inter_thread_dep": "inter_thread", "sync_dep": "sync"}


def is_on_device(node: Node) -> bool:
    """Whether a node ran on a device."""
    return node.cat is not None and node.cat.lower() in _DEVICE_CATEGORIES


def node_rows(unit: NodeUnit, issues: IssueLog) -> pl.DataFrame:
    """Rows of raw.chakra_node."""
    nodes = unit.nodes
    columns: dict[str, Column] = {
        "part": np.full(len(nodes), unit.part),
        "position": unit.positions,
        "node_id": unit.ids,
        "name": [node.name or None for node in nodes],
        "parent_id": unit.parents,
        **{column: unit.integers(name) for column, name in _INTEGERS.items()},
        "op_schema": _schemas(unit),
        "kernel_backend": unit.texts("kernel_backend"),
        "kernel_file": unit.texts("kernel_file"),
        "is_cpu": repeated(True, pl.Boolean(), len(nodes)),
    }
    if any(node.cat is not None for node in nodes):
        columns["category"] = [node.cat for node in nodes]
        columns["is_cpu"] = [not is_on_device(node) for node in nodes]
        columns["stream"] = unit.pack([_stream(node) for node in nodes])
    columns.update(_times(nodes, issues))
    return frame_of("raw.chakra_node", columns, len(nodes))


def _schemas(unit: NodeUnit) -> list[str | None]:
    return [
        str(schema) if (schema := found.get("op_schema", node.op_schema)) else None
        for found, node in zip(unit.attributes, unit.nodes, strict=True)
    ]


def _stream(node: Node) -> int:
    """The stream of a device node; before 2024 it stood among the arguments of its event."""
    if node.stream != ABSENT or node.args is NO_TOKEN:
        return node.stream if is_on_device(node) else ABSENT
    args = value_of(node.args)
    stream = args.get("stream") if isinstance(args, dict) else None
    return stream if isinstance(stream, int) else ABSENT


def _times(nodes: Sequence[Node], issues: IssueLog) -> dict[str, Column]:
    """Columns of times, where the file has any."""
    columns: dict[str, Column] = {}
    for column, tokens in (
        ("raw_start_ns", [node.ts for node in nodes]),
        ("duration_ns", [_duration(node) for node in nodes]),
        ("exclusive_duration_ns", [node.exclusive_dur for node in nodes]),
    ):
        if tokens.count(NO_TOKEN) < len(tokens):
            columns[column] = to_nanoseconds(tokens, issues)
    return columns


def _duration(node: Node) -> Raw:
    return node.dur if node.inclusive_dur is NO_TOKEN else node.inclusive_dur


def edge_rows(unit: NodeUnit) -> list[pl.DataFrame]:
    """Rows of raw.chakra_edge; a node that is its own caller (the root) has none."""
    parent_field = "parent" if unit.nodes[0].ctrl_deps is None else "ctrl_deps"
    called = (unit.parents != ABSENT) & (unit.parents != unit.ids)
    frames = [_frame(unit, unit.parents[called], unit.ids[called], "parent", parent_field)]
    for field, kind in _EDGES.items():
        references = [getattr(node, field) for node in unit.nodes]
        if references.count(None) < len(references):
            frames.append(_references(unit, references, kind, field))
    several = [node.ctrl_deps[1:] if isinstance(node.ctrl_deps, list) else None for node in unit.nodes]
    if several.count(None) < len(several):
        frames.append(_references(unit, several, "parent", parent_field))
    return [frame for frame in frames if frame.height]


def _references(unit: NodeUnit, references: Sequence[int | list[int] | None], kind: str, origin: str) -> pl.DataFrame:
    """Edges from nodes that are referred to."""
    pairs = [
        (reference, index)
        for index, found in enumerate(references)
        if found is not None
        for reference in (found if isinstance(found, list) else [found])
    ]
    begins = unit.pack([reference for reference, _ in pairs], are_ids=True)
    ends = unit.ids[np.array([index for _, index in pairs], np.int64)]
    known = begins != ABSENT
    return _frame(unit, begins[known], ends[known], kind, origin)


def _frame(unit: NodeUnit, begins: Int64s, ends: Int64s, kind: str, origin: str) -> pl.DataFrame:
    return frame_of(
        "raw.chakra_edge",
        {
            "part": np.full(len(begins), unit.part),
            "from_node_id": begins,
            "to_node_id": ends,
            "kind": repeated(kind, pl.String(), len(begins)),
            "origin": repeated(origin, pl.String(), len(begins)),
        },
        len(begins),
    )
