"""Nodes as JSON objects, one behind the other. In: bytes from the first node on. Out: lists of decoded nodes.

Idea: a stretch that ends where one object closes and the next opens is decoded as a whole; if that fails, its objects
are read one by one, each as far as the decoder says it reaches. Where an object cannot be read, the text up to the next
one that can is lost, and counted by the ids in it. Memory does not grow with the file.
Not handled: an object of more than 8 MiB (skipped and counted).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from traceforge.sources.chakra.issues import IssueLog
from traceforge.sources.chakra.stream import ByteStream
from traceforge.sources.chakra.text_repair import repair_text

UNIT_BYTES = 256 * 1024
UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_LARGEST_OBJECT = 8 * 1024 * 1024
_SEPARATOR = re.compile(rb"[\s,]*")
_OBJECT_START = re.compile(rb'\{(?=\s*")')
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_CLOSING = b"]"
_CUT_OFF = "truncated"
_BLANK_AND_COMMA = b" \t\r\n,"
_values = msgspec.json.Decoder(msgspec.Raw)

Node = TypeVar("Node")


@dataclass(frozen=True, slots=True)
class Layout(Generic[Node]):
    """How nodes stand in a kind of file.

    Attributes:
        boundary: matches from the closing brace of a node up to the opening brace of the next one.
        id_key: matches the key of a node's id.
        decode_many: decodes a stretch of whole nodes.
        decode_one: decodes one node; its errors tell where the node ends if something follows.
        is_node: whether a decoded object is a node, not a part of one.
        is_list: whether the nodes are a list, which ends with a bracket.
    """

    boundary: re.Pattern[bytes]
    id_key: re.Pattern[bytes]
    decode_many: Callable[[bytes], list[Node]]
    decode_one: Callable[[bytes], Node]
    is_node: Callable[[Node], bool]
    is_list: bool


class ElementReader(Generic[Node]):
    """Reads all nodes of a file.

    Args:
        stream: behind `text`.
        text: what was read of the nodes already.
        layout: of the file.
        unit_bytes: how much to decode in one step; the result does not depend on it.

    Attributes:
        rest: what stands behind the list of nodes, once all were read.
        is_complete: whether the list ends with its bracket.
    """

    def __init__(
        self, stream: ByteStream, text: bytes, layout: Layout[Node], issues: IssueLog, unit_bytes: int = UNIT_BYTES
    ) -> None:
        self._stream = stream
        self._text = text
        self._layout = layout
        self._issues = issues
        self._unit_bytes = unit_bytes
        self._goal = unit_bytes
        self._is_last = False
        self.rest = b""
        self.is_complete = False

    def units(self) -> Iterator[list[Node]]:
        """All nodes, in order."""
        ended = False
        while not ended:
            self._fill()
            nodes = None if self._is_last else self._cut()
            if nodes is None:
                nodes, ended = self._walk()
                ended |= self._is_last
            if nodes:
                yield nodes
        self.rest = self._text + self._drain()

    def _fill(self) -> None:
        pieces, size = [self._text], len(self._text)
        while size < self._goal and not self._is_last:
            piece = self._stream.read(self._goal - size)
            self._is_last = not piece
            pieces.append(piece)
            size += len(piece)
        self._text = b"".join(pieces)
        self._goal = self._unit_bytes

    def _drain(self) -> bytes:
        """The rest of the file, if it is short; else nothing."""
        pieces: list[bytes] = []
        while len(pieces) < 64 and (piece := self._stream.read(self._unit_bytes)):
            pieces.append(piece)
        return b"".join(pieces)

    def _cut(self) -> list[Node] | None:
        """The nodes up to the last boundary; None if they cannot be decoded as a whole."""
        boundary = _last_match(self._layout.boundary, self._text)
        if boundary is None:
            return None
        try:
            nodes = self._layout.decode_many(self._text[: boundary.start() + 1])
        except UNDECODABLE:
            return None
        self._text = self._text[boundary.end() :]
        return nodes

    def _walk(self) -> tuple[list[Node], bool]:
        """Nodes one by one, and whether their list ended; wants more bytes for an object that has no end."""
        nodes: list[Node] = []
        ended = False
        position = 0
        while not ended:
            position = _end_of(_SEPARATOR, self._text, position)
            if position == len(self._text):
                break
            if self._layout.is_list and self._text[position : position + 1] == _CLOSING:
                position, ended = position + 1, True
                self.is_complete = True
                break
            end = self._read_one(position, nodes)
            if end is None:
                self._goal = 2 * max(len(self._text) - position, self._unit_bytes)
                break
            position = end
        self._text = self._text[position:]
        return nodes, ended

    def _read_one(self, start: int, nodes: list[Node]) -> int | None:
        """Take the object at a place, or count it as lost; where to go on, or None if more bytes must tell."""
        try:
            end = self._object_end(start)
        except UNDECODABLE as error:
            is_cut_off = _CUT_OFF in str(error)
            if is_cut_off and self._may_wait(start):
                return None
            return self._skip(start, nodes, is_cut_off)
        node = self._decoded(self._text[start:end])
        if node is None:
            return self._skip(start, nodes, False)
        nodes.append(node)
        return end

    def _may_wait(self, start: int) -> bool:
        """Whether more bytes may complete the object at a place."""
        return not self._is_last and len(self._text) - start <= _LARGEST_OBJECT

    def _object_end(self, start: int) -> int:
        """Where the JSON value ends that begins at a place.

        Raises:
            msgspec.DecodeError, RecursionError: it is damaged or cut off.
        """
        view = memoryview(self._text)[start:]
        try:
            _values.decode(view)
        except msgspec.DecodeError as error:
            if trailing := _TRAILING.search(str(error)):
                return self._text.rindex(b"}", start, start + int(trailing[1])) + 1
            raise
        return len(self._text)

    def _decoded(self, text: bytes) -> Node | None:
        """A node from its text; None if it is damaged or no node."""
        try:
            node = self._layout.decode_one(text)
        except UNDECODABLE:
            return None
        return node if self._layout.is_node(node) else None

    def _skip(self, start: int, nodes: list[Node], is_cut_off: bool) -> int | None:
        """Step over an object that cannot be read, unless it can be repaired; None if more bytes must tell."""
        resume = self._next_node(start + 1)
        if resume is None and self._may_wait(start):
            return None
        is_cut_off &= resume is None
        end = len(self._text) if resume is None else resume
        damaged = self._text[start:end]
        repaired = self._decoded(repair_text(damaged.rstrip(_BLANK_AND_COMMA)))
        place = f"byte {self._stream.position - len(self._text) + start}"
        if repaired is not None:
            nodes.append(repaired)
            self._issues.add("chakra_repaired_node", at=place)
        else:
            count = max(1, len(self._layout.id_key.findall(damaged)))
            code = "chakra_truncated" if is_cut_off else "chakra_undecodable_node"
            self._issues.add(code, count, at=place, lost_events=count)
            self._issues.add("chakra_skipped_bytes", len(damaged), at=place)
        return end

    def _next_node(self, start: int) -> int | None:
        """Where the next object begins that is a node."""
        for match in _OBJECT_START.finditer(self._text, start):
            try:
                end = self._object_end(match.start())
            except UNDECODABLE:
                continue
            if self._decoded(self._text[match.start() : end]) is not None:
                return match.start()
        return None


def _last_match(pattern: re.Pattern[bytes], text: bytes) -> re.Match[bytes] | None:
    place = len(text)
    while (place := text.rfind(b"}", 0, place)) >= 0:
        if match := pattern.match(text, place):
            return match
    return None


def _end_of(pattern: re.Pattern[bytes], text: bytes, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position
