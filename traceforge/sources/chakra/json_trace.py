"""A Chakra trace as JSON: the jsonizer's documents, or the feeder's list. In: a stream of text. Out: frames of rows.

Idea: both are objects one behind the other; the jsonizer's stand alone (`}{`, which is no JSON document), the
feeder's in a list `workload_graph` with a few members about the workload beside it.
Seen: mlc-chakra 0.0.4 and 1.0.0. Not handled: documents and lists mixed in one file.
"""

import re
from collections.abc import Iterator

import msgspec
import polars as pl

from traceforge.reading.chakra_file import Part
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_elements import MEMBER, UNIT_BYTES, ElementReader, Members, NodeLayout
from traceforge.reading.json_repair import repair_text
from traceforge.reading.json_values import UNDECODABLE
from traceforge.reading.stream import ByteStream
from traceforge.sources.chakra.document_rows import DocumentRows
from traceforge.sources.chakra.documents import (
    JsonObject,
    NodeDocument,
    Spelling,
    attributes_in,
    is_document,
    is_metadata,
)
from traceforge.sources.chakra.recognition import DOCUMENTS, FEEDER

Frames = list[tuple[str, pl.DataFrame]]
_LIST = re.compile(rb'\{\s*(?:%b\s*,\s*)*"workload_graph"\s*:\s*\[' % MEMBER)
# Between documents stands a newline, which cannot stand in a JSON text: so no name is taken for a boundary.
_BETWEEN_DOCUMENTS = re.compile(rb"(?<=\n)\}\s*(?=\{)|\}[ \t]*\r?\n\s*(?=\{)")
_BETWEEN_ELEMENTS = re.compile(rb"\}\s*,\s*(?=\{)")
_ID_KEY = re.compile(rb'"[Ii]d"\s*:')
_one = msgspec.json.Decoder(dict[str, object])
_many = msgspec.json.Decoder(list[dict[str, object]])


def _repaired(text: bytes) -> bytes:
    return repair_text(text).text


_DOCUMENT_LAYOUT: NodeLayout[JsonObject] = NodeLayout(
    None,
    _BETWEEN_DOCUMENTS,
    _ID_KEY,
    lambda text: _many.decode(b"[%b]" % _BETWEEN_DOCUMENTS.sub(b"},", text)),
    _one.decode,
    is_document,
    _repaired,
)
_LIST_LAYOUT: NodeLayout[JsonObject] = NodeLayout(
    _LIST, _BETWEEN_ELEMENTS, _ID_KEY, lambda text: _many.decode(b"[%b]" % text), _one.decode, is_document, _repaired
)


class JsonTrace:
    """Reads a JSON file.

    Args:
        stream: behind `head`.
        head: what was read of the file already.
        form: `DOCUMENTS` or `FEEDER`.
        keep_all: keep tensors and attributes of all nodes, not only what communication needs.
        issues: counts what is lost.
        unit_bytes: how much to decode in one step; None takes what is fastest.

    Attributes:
        parts: the traces of the file, in order.
    """

    def __init__(
        self,
        stream: ByteStream,
        head: bytes,
        form: str,
        keep_all: bool,
        issues: IssueLog,
        unit_bytes: int | None,
    ) -> None:
        self._form = form
        self._issues = issues
        self._spelling = Spelling(issues)
        self._rows = DocumentRows(self._spelling, issues, keep_all)
        self._position = 0
        self.parts: list[Part] = []
        layout = _LIST_LAYOUT if form == FEEDER else _DOCUMENT_LAYOUT
        self._elements = ElementReader(stream, head, layout, issues, unit_bytes or UNIT_BYTES)

    @property
    def is_complete(self) -> bool:
        """Whether the file ended where its format ends."""
        return self._elements.is_complete

    def frames(self) -> Iterator[Frames]:
        """All rows, in order."""
        for found in self._elements.units():
            if isinstance(found, Members):
                self._take_members(found)
            else:
                yield from self._take_documents(found)

    def _take_members(self, members: Members) -> None:
        facts = _members(members.text, self._issues)
        if members.opens or not self.parts:
            self._begin_part(Part(facts=facts))
        else:
            self.parts[-1].facts.update(facts)

    def _take_documents(self, documents: list[JsonObject]) -> Iterator[Frames]:
        nodes: list[NodeDocument] = []
        for document in documents:
            if self._form == DOCUMENTS and is_metadata(document):
                yield self._frames(nodes)
                nodes = []
                version = document.get("version")
                facts = attributes_in(document.get("attr"))
                self._begin_part(Part(True, None if version is None else str(version), facts))
            else:
                nodes.append(self._spelling.node(document, self._position))
                self._position += 1
        yield self._frames(nodes)

    def _begin_part(self, part: Part) -> None:
        if self.parts:
            self._issues.add("second_trace", at=f"node {self._position}")
        self.parts.append(part)

    def _frames(self, nodes: list[NodeDocument]) -> Frames:
        if not nodes:
            return []
        if not self.parts:
            self.parts.append(Part())
        self.parts[-1].node_count += len(nodes)
        return self._rows.frames(len(self.parts) - 1, nodes)


def _members(text: bytes, issues: IssueLog) -> dict[str, object]:
    """Members of an object but its nodes; none of a damaged one."""
    try:
        members = _one.decode(text)
    except UNDECODABLE:
        issues.add("unreadable_metadata")
        return {}
    return {key: value for key, value in members.items() if key not in ("", "workload_graph")}
