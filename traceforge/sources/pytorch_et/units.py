"""Consecutive nodes of a trace, with what several tables need of them. In: decoded nodes. Out: a `NodeUnit`.

Idea: attributes that stand in a list since schema 1.0.2 and in fields of their own before are one mapping a node.
Not handled: attributes of one node that share a name (the last one counts).
"""

import struct
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import ABSENT
from traceforge.reading.numbers import integer_of, text_of
from traceforge.sources.pytorch_et.decode import Node

Int64s = npt.NDArray[np.int64]
_LIMIT = 2**63
_PROMOTED = frozenset(
    (
        *("rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid", "op_schema", "kernel_backend", "kernel_file"),
        *("collective_name", "dtype", "in_msg_nelems", "out_msg_nelems", "in_split_size", "out_split_size"),
        *("global_rank_start", "global_rank_stride", "pg_name", "pg_desc", "pg_size", "is_asynchronized_op"),
    )
)


class NodeUnit:
    """Some nodes of one part of a file.

    Attributes:
        nodes: in the order of the file.
        attributes: of each node, by name; empty where it has none.
        part: which trace of the file they belong to.
        first_position: of the first node in the file.
        ids: of the nodes; `ABSENT` where there is none.
        parents: id of the caller of each node; `ABSENT` where none is stated.
    """

    def __init__(self, nodes: list[Node], part: int, first_position: int, issues: IssueLog) -> None:
        self.nodes = nodes
        self.part = part
        self.first_position = first_position
        self._issues = issues
        self.attributes = [{a.name: a.value for a in node.attrs} if node.attrs else {} for node in nodes]
        self.ids = self.pack([node.id for node in nodes], are_ids=True)
        self._is_flat = any(node.attrs is None for node in nodes)
        parents = [_first(node.parent if node.ctrl_deps is None else node.ctrl_deps) for node in nodes]
        self.parents = self.pack(parents, are_ids=True)
        missing = np.flatnonzero(self.ids == ABSENT)
        if len(missing):
            issues.add("node_without_id", len(missing), at=self.place(int(missing[0])))

    @property
    def positions(self) -> Int64s:
        """Position of each node in the file."""
        return np.arange(self.first_position, self.first_position + len(self.nodes))

    def place(self, index: int) -> str:
        """Names a node for a person."""
        return f"node {self.first_position + index}"

    def key(self, index: int) -> dict[str, object]:
        """What identifies one node."""
        node_id = int(self.ids[index])
        return {
            "part": self.part,
            "position": self.first_position + index,
            "node_id": None if node_id == ABSENT else node_id,
        }

    def integers(self, name: str) -> Int64s:
        """A column of integers: attributes, or before 1.0.2 fields, of that name."""
        if not self._is_flat:
            return self.pack([found.get(name, ABSENT) for found in self.attributes])
        pairs = zip(self.attributes, self.nodes, strict=True)
        return self.pack([found.get(name, getattr(node, name)) for found, node in pairs])

    def texts(self, name: str) -> list[str | None]:
        """A column of texts that are attributes; None for missing and empty ones."""
        return [text_of(found.get(name)) for found in self.attributes]

    def other_attributes(self) -> pl.DataFrame:
        """Rows of raw.chakra_attribute: attributes that have no column and say something."""
        rows = [
            {**self.key(index), "name": name, "value": msgspec.json.encode(value).decode("utf-8", "replace")}
            for index, found in enumerate(self.attributes)
            for name, value in found.items()
            if name not in _PROMOTED and value not in ("", None)
        ]
        return frame_of_rows("raw.chakra_attribute", rows)

    def pack(self, values: Sequence[object], *, are_ids: bool = False) -> Int64s:
        """Integers as an array; what is none, or does not fit, becomes `ABSENT` and is counted.

        Args:
            values: one a node.
            are_ids: whether numbers from 2^63 up to 2^64 are stored minus 2^64.
        """
        try:
            return np.frombuffer(struct.pack(f"{len(values)}q", *values), np.int64)
        except struct.error:
            return np.array([self._fitting(value, index, are_ids) for index, value in enumerate(values)], np.int64)

    def _fitting(self, value: object, index: int, are_ids: bool) -> int:
        if value is None:
            return ABSENT
        number = integer_of(value)
        if number is None:
            self._issues.add("wrong_type", at=self.place(index))
            return ABSENT
        if are_ids and _LIMIT <= number < 2 * _LIMIT:
            return number - 2 * _LIMIT
        if not -_LIMIT <= number < _LIMIT:
            self._issues.add("out_of_range", at=self.place(index))
            return ABSENT
        return number


def _first(references: int | list[int] | None) -> int:
    """The first of several nodes referred to."""
    if references is None:
        return ABSENT
    if isinstance(references, list):
        return references[0] if references else ABSENT
    return references
