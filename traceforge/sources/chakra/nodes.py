"""Nodes of a block as rows. In: fields and attributes of nodes. Out: frames of raw.chakra_node and raw.chakra_edge.

Idea: a field of the schema is one column; the last one of a message counts, as protobuf has it. Proto3 does not write
zeros, so a start or duration of zero looks like none and is NULL.
Not handled: parents (the converter writes the caller as a control dependency; it stays one).
"""

import numpy as np
import polars as pl

from traceforge.reading.chakra_rows import ABSENT, frame_of, repeated
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.wire import LENGTH, VARINT, Bools, Int64s, UInt64s, read_packed
from traceforge.sources.chakra.attributes import Attributes
from traceforge.sources.chakra.framing import NodeBlock
from traceforge.sources.chakra.schema import (
    ATTRIBUTE,
    CONTROL,
    DATA,
    DURATION,
    ID,
    NAME,
    NODE_ATTRIBUTES,
    NODE_TEXTS,
    START,
    TYPE,
    type_name,
)
from traceforge.sources.chakra.texts import Texts

_LARGEST_US = (2**63 - 1) // 1000
_EDGES = {CONTROL: ("control", "ctrl_deps"), DATA: ("data", "data_deps")}


class NodeColumns:
    """The columns of one block that several tables need.

    Attributes:
        ids: of the nodes, as signed 64-bit numbers.
        types: number of each node's type.
        names: of the nodes; None for an empty one.
    """

    def __init__(self, block: NodeBlock, texts: Texts, issues: IssueLog) -> None:
        self.block = block
        self._issues = issues
        self.ids = self._numbers(ID).view(np.int64)
        self.usable(self.ids, np.arange(len(self.ids)))
        self.types = self._numbers(TYPE).astype(np.int64)
        self.names = self._names(texts)
        unknown = block.fields.number > ATTRIBUTE
        if unknown.any():
            first = block.positions[block.fields.owner[unknown][0]]
            issues.add("unknown_field", int(unknown.sum()), at=f"node {first}")

    def _numbers(self, number: int) -> UInt64s:
        """A field of the nodes; 0 where it is missing."""
        fields = self.block.fields
        chosen = (fields.number == number) & (fields.wire == VARINT)
        column = np.zeros(len(self.block.positions), np.uint64)
        column[fields.owner[chosen]] = fields.value[chosen]
        return column

    def _names(self, texts: Texts) -> list[str | None]:
        starts, ends = self.places(NAME)
        data = self.block.data
        return texts.all([data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])

    def places(self, number: int) -> tuple[Int64s, Int64s]:
        """Where a field with a length begins and ends in each node; both 0 where it is missing."""
        fields = self.block.fields
        chosen = (fields.number == number) & (fields.wire == LENGTH)
        starts, ends = (np.zeros(len(self.block.positions), np.int64) for _ in range(2))
        starts[fields.owner[chosen]], ends[fields.owner[chosen]] = fields.start[chosen], fields.end[chosen]
        return starts, ends

    def nanoseconds(self, number: int) -> Int64s:
        """A field in µs as ns; `ABSENT` for zero."""
        values = self._numbers(number)
        fits = values <= np.uint64(_LARGEST_US)
        if not fits.all():
            first = self.block.positions[np.flatnonzero(~fits)[0]]
            self._issues.add("out_of_range", int((~fits).sum()), at=f"node {first}")
        usable = fits & (values > 0)
        return np.where(usable, np.where(usable, values, 0).astype(np.int64) * 1000, ABSENT)

    def usable(self, ids: Int64s, nodes: Int64s) -> Bools:
        """Which ids, stated by some nodes, can be kept; others are counted (2^63 is stored as `ABSENT` is)."""
        usable: Bools = ids != ABSENT
        if not usable.all():
            first = self.block.positions[nodes[np.flatnonzero(~usable)[0]]]
            self._issues.add("out_of_range", int((~usable).sum()), at=f"node {first}")
        return usable

    def key(self) -> dict[str, Int64s]:
        """Columns that identify a node."""
        block = self.block
        return {
            "part": np.full(len(block.positions), block.part),
            "position": block.positions,
            "node_id": self.ids,
        }


def node_rows(columns: NodeColumns, attributes: Attributes) -> pl.DataFrame:
    """Rows of raw.chakra_node."""
    is_cpu = attributes.integers("is_cpu_op")
    return frame_of(
        "raw.chakra_node",
        {
            **columns.key(),
            "name": columns.names,
            "node_type": _type_names(columns.types),
            "is_cpu": _truths(is_cpu),
            "raw_start_ns": columns.nanoseconds(START),
            "duration_ns": columns.nanoseconds(DURATION),
            **{column: attributes.integers(name) for column, name in NODE_ATTRIBUTES.items()},
            **{name: attributes.texts(name) for name in NODE_TEXTS},
        },
        len(columns.names),
    )


def _truths(numbers: Int64s) -> pl.Series:
    """Numbers as booleans; NULL for `ABSENT`."""
    truths = pl.Series(numbers != 0)
    absent = numbers == ABSENT
    return truths.set(pl.Series(absent), None) if absent.any() else truths


def _type_names(types: Int64s) -> pl.Series:
    names = pl.Series([type_name(number) for number in range(int(types.max(initial=0)) + 1)], dtype=pl.String)
    return names.gather(pl.Series(types))


def edge_rows(columns: NodeColumns, issues: IssueLog) -> list[pl.DataFrame]:
    """Rows of raw.chakra_edge, from what a node depends on to the node."""
    return [frame for number in _EDGES if (frame := _edges(columns, number, issues)).height]


def _edges(columns: NodeColumns, number: int, issues: IssueLog) -> pl.DataFrame:
    block, fields = columns.block, columns.block.fields
    lists = fields.where((fields.number == number) & (fields.wire == LENGTH))
    single = fields.where((fields.number == number) & (fields.wire == VARINT))
    values, owner, damaged = read_packed(block.buffer, lists.start, lists.end)
    if damaged.any():
        first = block.positions[lists.owner[np.flatnonzero(damaged)[0]]]
        issues.add("undecodable_list", int(damaged.sum()), at=f"node {first}")
    nodes = np.concatenate([lists.owner[owner], single.owner])
    others = np.concatenate([values, single.value]).view(np.int64)
    kept = columns.usable(others, nodes)
    nodes, others = nodes[kept], others[kept]
    kind, origin = _EDGES[number]
    return frame_of(
        "raw.chakra_edge",
        {
            "part": np.full(len(nodes), block.part),
            "from_node_id": others,
            "to_node_id": columns.ids[nodes],
            "kind": repeated(kind, pl.String(), len(nodes)),
            "origin": repeated(origin, pl.String(), len(nodes)),
        },
        len(nodes),
    )
