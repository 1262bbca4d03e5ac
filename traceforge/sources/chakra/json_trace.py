"""A Chakra trace as JSON: the jsonizer's documents, or the feeder's list. In: a stream of text. Out: frames of rows.

Idea: both are objects one behind the other; the jsonizer's stand alone (`}{`, which is no JSON document), the
feeder's in a list `workload_graph` with a few members about the workload beside it.
Seen: mlc-chakra 0.0.4 and 1.0.0. Not handled: documents and lists mixed in one file.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec
import polars as pl

from traceforge.errors import NotATraceError
from traceforge.sources.chakra.document_rows import DocumentRows
from traceforge.sources.chakra.documents import (
    Document,
    NodeDocument,
    Spelling,
    attributes_in,
    is_document,
    is_metadata,
)
from traceforge.sources.chakra.file_facts import Part
from traceforge.sources.chakra.issues import IssueLog
from traceforge.sources.chakra.json_elements import UNDECODABLE, UNIT_BYTES, ElementReader, Layout
from traceforge.sources.chakra.recognition import DOCUMENTS, FEEDER
from traceforge.sources.chakra.stream import ByteStream

Frames = list[tuple[str, pl.DataFrame]]
_LIST = re.compile(rb'"workload_graph"\s*:\s*\[')
_LARGEST_HEAD = 1024 * 1024
# Between documents stands a newline, which cannot stand in a JSON text: so no name is taken for a boundary.
_BETWEEN_DOCUMENTS = re.compile(rb"(?<=\n)\}\s*(?=\{)|\}[ \t]*\r?\n\s*(?=\{)")
_BETWEEN_ELEMENTS = re.compile(rb"\}\s*,\s*(?=\{)")
_ID_KEY = re.compile(rb'"[Ii]d"\s*:')
_one = msgspec.json.Decoder(dict[str, object])
_many = msgspec.json.Decoder(list[dict[str, object]])

_DOCUMENT_LAYOUT: Layout[Document] = Layout(
    _BETWEEN_DOCUMENTS,
    _ID_KEY,
    lambda text: _many.decode(b"[%b]" % _BETWEEN_DOCUMENTS.sub(b"},", text)),
    _one.decode,
    is_document,
    is_list=False,
)
_LIST_LAYOUT: Layout[Document] = Layout(
    _BETWEEN_ELEMENTS, _ID_KEY, lambda text: _many.decode(b"[%b]" % text), _one.decode, is_document, is_list=True
)


class JsonTrace:
    """Reads a JSON file.

    Args:
        stream: behind `head`.
        head: what was read of the file already.
        form: `DOCUMENTS` or `FEEDER`.
        where: the file, for errors.
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
        where: str,
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
        text = head
        if form == FEEDER:
            text, facts = _behind_opening(stream, head, where)
            self.parts.append(Part(facts=facts))
        layout = _LIST_LAYOUT if form == FEEDER else _DOCUMENT_LAYOUT
        self._elements = ElementReader(stream, text, layout, issues, unit_bytes or UNIT_BYTES)

    @property
    def is_complete(self) -> bool:
        """Whether the file ended where its format ends."""
        return self._elements.is_complete

    def frames(self) -> Iterator[Frames]:
        """All rows, in order."""
        for documents in self._elements.units():
            nodes: list[NodeDocument] = []
            for document in documents:
                if self._form == DOCUMENTS and is_metadata(document):
                    yield self._frames(nodes)
                    nodes = []
                    self._begin_part(document)
                else:
                    nodes.append(self._spelling.node(document, self._position))
                    self._position += 1
            yield self._frames(nodes)
        if self._form == FEEDER:
            self.parts[0].facts.update(_members(b'{"":0' + self._elements.rest.lstrip(), self._issues))

    def _begin_part(self, document: Document) -> None:
        if self.parts:
            self._issues.add("chakra_second_trace", at=f"node {self._position}")
        version = document.get("version")
        facts = attributes_in(document.get("attr"))
        self.parts.append(Part(True, None if version is None else str(version), facts))

    def _frames(self, nodes: list[NodeDocument]) -> Frames:
        if not nodes:
            return []
        if not self.parts:
            self.parts.append(Part())
        self.parts[-1].node_count += len(nodes)
        return self._rows.frames(len(self.parts) - 1, nodes)


def _behind_opening(stream: ByteStream, head: bytes, where: str) -> tuple[bytes, dict[str, object]]:
    """What follows the opening bracket of the list of nodes, and the members before it.

    Raises:
        NotATraceError: there is no such list.
    """
    text = head
    while (match := _LIST.search(text)) is None:
        piece = stream.read(len(text)) if len(text) < _LARGEST_HEAD else b""
        if not piece:
            raise NotATraceError("no list of nodes (`workload_graph`)", where=where)
        text += piece
    facts = _members(text[: match.end()] + b"]}", IssueLog())
    return text[match.end() :], facts


def _members(text: bytes, issues: IssueLog) -> dict[str, object]:
    """Members of an object, but those that hold nodes; none of a damaged one."""
    try:
        members: Mapping[str, object] = _one.decode(text.rstrip())
    except UNDECODABLE:
        issues.add("chakra_unreadable_metadata")
        return {}
    return {key: value for key, value in members.items() if key not in ("", "workload_graph")}
