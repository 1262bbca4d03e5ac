"""A binary Chakra trace. In: a stream of frames. Out: frames of raw.chakra_* rows, block by block.

Idea: framing finds the messages, the schema's fields and the attributes become columns; nothing but the rows of one
block (2 MiB of file) is held. Not handled: what `framing`, `nodes`, `attributes` and `communication` do not handle.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from traceforge.reading.chakra_file import Part
from traceforge.reading.chakra_rows import frame_of_rows
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.process_groups import INIT_NODE, group_rows
from traceforge.reading.stream import ByteStream
from traceforge.sources.chakra.arguments import argument_texts, node_key, tensor_rows
from traceforge.sources.chakra.attributes import Attributes
from traceforge.sources.chakra.communication import attribute_rows, communicating, communication_rows
from traceforge.sources.chakra.file_facts import read_metadata
from traceforge.sources.chakra.framing import UNIT_BYTES, Framing, MetadataFrame, NodeBlock
from traceforge.sources.chakra.literals import UnreadableError, json_of_text, listed_texts
from traceforge.sources.chakra.nodes import NodeColumns, edge_rows, node_rows
from traceforge.sources.chakra.schema import INPUTS
from traceforge.sources.chakra.texts import Texts

Frames = list[tuple[str, pl.DataFrame]]


class BinaryTrace:
    """Reads a binary file.

    Args:
        stream: behind `head`.
        head: what was read of the file already.
        where: the file, for errors.
        keep_all: keep tensors and attributes of all nodes, not only what communication needs.
        issues: counts what is lost.
        unit_bytes: how much to decode in one step; None takes what is fastest.

    Attributes:
        parts: the traces of the file, in order.
        is_complete: whether the file ended where a frame ends.
    """

    def __init__(
        self, stream: ByteStream, head: bytes, where: str, keep_all: bool, issues: IssueLog, unit_bytes: int | None
    ) -> None:
        self._framing = Framing(stream, head, issues, where, unit_bytes or UNIT_BYTES)
        self._keep_all = keep_all
        self._issues = issues
        self._texts = Texts(issues)
        self.parts: list[Part] = []

    @property
    def is_complete(self) -> bool:
        """Whether the file ended where a frame ends."""
        return self._framing.is_complete

    def frames(self) -> Iterator[Frames]:
        """All rows, in order.

        Raises:
            InputUnusableError: the nodes are of a schema before 2023-08.
        """
        for found in self._framing.blocks():
            if isinstance(found, MetadataFrame):
                self._at_least(found.part)
                self.parts.append(read_metadata(found.data, self._issues))
            else:
                self._at_least(found.part + 1)
                self.parts[found.part].node_count += len(found.positions)
                yield self._rows(found)

    def _at_least(self, count: int) -> None:
        """Parts without metadata."""
        while len(self.parts) < count:
            self.parts.append(Part())

    def _rows(self, block: NodeBlock) -> Frames:
        columns = NodeColumns(block, self._texts, self._issues)
        attributes = Attributes(block, self._texts, self._issues)
        talking = communicating(columns, attributes)
        frames: Frames = [("raw.chakra_node", node_rows(columns, attributes))]
        frames += [("raw.chakra_edge", edges) for edges in edge_rows(columns, self._issues)]
        if talking.any():
            rows = communication_rows(columns, attributes, talking, self._issues)
            frames.append(("raw.chakra_communication", rows))
        if self._keep_all:
            frames.append(("raw.chakra_tensor", tensor_rows(columns, self._issues)))
        described = np.ones_like(talking) if self._keep_all else talking
        if described.any():
            frames.append(("raw.chakra_attribute", attribute_rows(columns, attributes, described)))
        if INIT_NODE in columns.names:
            frames.append(("raw.chakra_process_group", self._groups(columns)))
        return frames

    def _groups(self, columns: NodeColumns) -> pl.DataFrame:
        nodes = np.array([node for node, name in enumerate(columns.names) if name == INIT_NODE])
        rows: list[dict[str, object]] = []
        for node, (values, _, _) in argument_texts(columns, INPUTS, nodes):
            try:
                groups = [group for text in listed_texts(values) for group in group_rows(json_of_text(text))]
            except UnreadableError:
                self._issues.add("unreadable_groups", at=f"node {columns.block.positions[node]}")
            else:
                rows += [{**node_key(columns, node), **group} for group in groups]
        return frame_of_rows("raw.chakra_process_group", rows)
