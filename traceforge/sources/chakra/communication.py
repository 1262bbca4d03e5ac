"""Communication of nodes. In: columns of a block. Out: rows of raw.chakra_communication and raw.chakra_attribute.

Idea: a node communicates if its type says so, or if it has no type but an attribute that only communication has. Bytes
are those that the writer states (its inputs); dtype, and bytes where none are stated, come from the input tensors.
Seen: collective types of the schema since 2023-10. Not handled: the positional arguments of `record_param_comms` nodes,
which a converter copies as text; members of groups that stand in a file beside the trace.
"""

import numpy as np
import polars as pl

from traceforge.reading.chakra_rows import ABSENT, frame_of, frame_of_rows
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.wire import Bools, Int64s
from traceforge.sources.chakra.arguments import node_key, tensors_of_nodes
from traceforge.sources.chakra.attributes import Attributes
from traceforge.sources.chakra.nodes import NodeColumns
from traceforge.sources.chakra.schema import (
    COLLECTIVE,
    COMMUNICATION_ATTRIBUTES,
    COMMUNICATION_MARKS,
    INPUTS,
    RECEIVE,
    SEND,
    collective_name,
    is_collective,
)


def communicating(columns: NodeColumns, attributes: Attributes) -> Bools:
    """Which nodes of a block communicate."""
    marked = np.zeros(len(columns.types), np.bool_)
    if (untyped := columns.types == 0).any():
        for name in COMMUNICATION_MARKS:
            marked |= attributes.integers(name) != ABSENT
    communicates: Bools = np.isin(columns.types, (SEND, RECEIVE, COLLECTIVE)) | (untyped & marked)
    return communicates


def communication_rows(columns: NodeColumns, attributes: Attributes, chosen: Bools, issues: IssueLog) -> pl.DataFrame:
    """Rows of raw.chakra_communication, of the nodes chosen."""
    nodes = np.flatnonzero(chosen)
    stated = attributes.integers("comm_size")[nodes]
    sizes, dtypes = _inputs(columns, nodes, issues)
    names = _names(columns.types[nodes], attributes.integers("comm_type")[nodes])
    positions = columns.key()["position"]
    contradicted = nodes[(stated != ABSENT) & (sizes != ABSENT) & (stated != sizes)]
    if len(contradicted):
        issues.add("size_contradicted", len(contradicted), at=f"node {positions[contradicted[0]]}")
    on_host = attributes.integers("is_cpu_op") == 1
    for code, is_there in (("host_communication", on_host[nodes]), ("unknown_collective", ~on_host[nodes])):
        unknown = nodes[is_there & np.array([not is_collective(name) for name in names], np.bool_)]
        if len(unknown):
            issues.add(code, len(unknown), at=f"node {positions[unknown[0]]}")
    groups = attributes.texts("pg_name")
    numbers = attributes.integers("pg_id")
    return frame_of(
        "raw.chakra_communication",
        {
            **{name: column[nodes] for name, column in columns.key().items()},
            "origin": ["attributes"] * len(nodes),
            "collective_name": names,
            "is_wait": [False] * len(nodes),
            "process_group_name": [
                groups[node] or (None if numbers[node] == ABSENT else str(numbers[node])) for node in nodes.tolist()
            ],
            "in_bytes": np.where(stated == ABSENT, sizes, stated),
            "dtype": dtypes,
            **{column: attributes.integers(name)[nodes] for column, name in COMMUNICATION_ATTRIBUTES.items()},
        },
        len(nodes),
    )


def _names(node_types: Int64s, comm_types: Int64s) -> list[str | None]:
    return [
        collective_name(node_type, None if comm_type == ABSENT else comm_type)
        for node_type, comm_type in zip(node_types.tolist(), comm_types.tolist(), strict=True)
    ]


def _inputs(columns: NodeColumns, nodes: Int64s, issues: IssueLog) -> tuple[Int64s, list[str | None]]:
    """Bytes and dtype of the input tensors of some nodes."""
    sizes = np.full(len(columns.ids), ABSENT)
    dtypes: dict[int, str | None] = {}
    for node, tensors in tensors_of_nodes(columns, INPUTS, nodes, issues):
        if tensors:
            sizes[node] = min(sum(tensor.size_bytes for tensor in tensors), 2**63 - 1)
            dtypes[node] = tensors[0].dtype
    return sizes[nodes], [dtypes.get(node) for node in nodes.tolist()]


def attribute_rows(columns: NodeColumns, attributes: Attributes, chosen: Bools) -> pl.DataFrame:
    """Rows of raw.chakra_attribute: the attributes without a column, of the nodes chosen."""
    rows = [
        {**node_key(columns, node), "name": name, "value": value} for node, name, value in attributes.others(chosen)
    ]
    return frame_of_rows("raw.chakra_attribute", rows)
