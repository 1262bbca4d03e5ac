"""Nodes as JSON objects, one behind the other. In: the text of a file. Out: lists of decoded nodes, and what is beside.

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

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import UNDECODABLE, value_end
from traceforge.reading.stream import ByteStream

UNIT_BYTES = 512 * 1024
MEMBER = rb'"(?:[^"\\]|\\.)*+"\s*+:\s*+(?:"(?:[^"\\]|\\.)*+"|\[[^\[\]]*+\]|\{[^{}]*+\}|[^\s"\[\]{},]++)'
"""Matches a member of an object whose value is no deeper than one level."""
_LARGEST_OBJECT = 8 * 1024 * 1024
_LONGEST_CLOSING = 64 * 1024
_LONGEST_START = 1024  # tells a node from a part of one
_SEPARATOR = re.compile(rb"[\s,]*")
_OBJECT_START = re.compile(rb'\{(?=\s*")')
_CLOSING = re.compile(rb"\](?P<members>(?:\s*,\s*%b)*)\s*\}" % MEMBER)
_BLANK = b" \t\r\n"
_BLANK_AND_COMMA = _BLANK + b","

Node = TypeVar("Node")


@dataclass(frozen=True, slots=True)
class NodeLayout(Generic[Node]):
    """How nodes stand in a kind of file.

    Attributes:
        opening: matches an object's beginning up to the bracket of its list of nodes; None where nodes stand alone.
        boundary: matches from the closing brace of a node up to the opening brace of the next one.
        id_key: matches the key of a node's id.
        decode_many: decodes a stretch of whole nodes.
        decode_one: decodes one node.
        is_node: whether a decoded object is a node, not a part of one.
        repair_text: makes damaged text of one node better, where its meaning is beyond doubt.
    """

    opening: re.Pattern[bytes] | None
    boundary: re.Pattern[bytes]
    id_key: re.Pattern[bytes]
    decode_many: Callable[[bytes], list[Node]]
    decode_one: Callable[[bytes], Node]
    is_node: Callable[[Node], bool]
    repair_text: Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Members:
    """Members of the object that holds a list of nodes.

    Attributes:
        text: JSON text of an object.
        opens: whether they stand before the list, not behind it.
    """

    text: bytes
    opens: bool


class ElementReader(Generic[Node]):
    """Reads all nodes of a file.

    Args:
        stream: behind `text`.
        text: what was read of the file already.
        layout: of the file.
        unit_bytes: how much to decode in one step; the result does not depend on it.

    Attributes:
        is_complete: whether the text ends as the layout says.
    """

    def __init__(
        self, stream: ByteStream, text: bytes, layout: NodeLayout[Node], issues: IssueLog, unit_bytes: int = UNIT_BYTES
    ) -> None:
        self._stream = stream
        self._text = text
        self._layout = layout
        self._issues = issues
        self._unit_bytes = unit_bytes
        self._goal = unit_bytes
        self._is_last = False
        self.is_complete = layout.opening is None

    def units(self) -> Iterator[list[Node] | Members]:
        """All nodes and members, in order."""
        while self._fill():
            if opening := self._opening_at(0):
                self._text = self._text[opening.end() :]
                self.is_complete = False
                yield Members(opening[0] + b"]}", True)
                continue
            nodes = self._cut()
            if nodes is None:
                yield from self._walk()
            elif nodes:
                yield nodes

    def _fill(self) -> bool:
        """Read until there is enough to look at; False at the end of the file."""
        pieces, size = [self._text], len(self._text)
        while size < self._goal and not self._is_last:
            piece = self._stream.read(self._goal - size)
            self._is_last = not piece
            pieces.append(piece)
            size += len(piece)
        self._text = b"".join(pieces).lstrip(_BLANK)
        self._goal = self._unit_bytes
        return bool(self._text)

    def _opening_at(self, position: int) -> re.Match[bytes] | None:
        return self._layout.opening and self._layout.opening.match(self._text, position)

    def _cut(self) -> list[Node] | None:
        """The nodes up to the last boundary, or up to the end; None if they cannot be decoded as a whole."""
        end, resume = self._last_boundary() if not self._is_last else self._last_node()
        if not end:
            return None
        try:
            nodes = self._layout.decode_many(self._text[:end])
        except UNDECODABLE:
            return None
        self._text = self._text[resume:]
        return nodes

    def _last_boundary(self) -> tuple[int, int]:
        """Where the last node that is followed by another one ends, and where that begins; zeros if there is none."""
        place = len(self._text) - _LONGEST_START
        while (place := self._text.rfind(b"}", 0, max(0, place))) >= 0:
            if match := self._layout.boundary.match(self._text, place):
                return match.start() + 1, match.end()
        return 0, 0

    def _last_node(self) -> tuple[int, int]:
        """The same for the end of the file, where a list closes."""
        if self._layout.opening is None:
            return len(self._text), len(self._text)
        place = max(0, self._text.rfind(b"]"))
        closing = _CLOSING.match(self._text, place)
        return (place, place) if closing and not self._text[closing.end() :].strip() else (0, 0)

    def _walk(self) -> Iterator[list[Node] | Members]:
        """Nodes one by one, up to an object that has no end yet or the beginning of another list."""
        nodes: list[Node] = []
        members: Members | None = None
        position = 0
        while members is None:
            match = _SEPARATOR.match(self._text, position)
            position = match.end() if match else position
            if position == len(self._text) or self._opening_at(position):
                break
            if closing := self._closing_at(position):
                members, position = Members(b'{"":0%b}' % closing["members"], False), closing.end()
                self.is_complete = True
                break
            end = self._read_one(position, nodes)
            if end is None:
                self._goal = 2 * max(len(self._text) - position, self._unit_bytes)
                break
            position = end
        self._text = self._text[position:]
        if nodes:
            yield nodes
        if members:
            yield members

    def _closing_at(self, position: int) -> re.Match[bytes] | None:
        return _CLOSING.match(self._text, position) if self._layout.opening else None

    def _read_one(self, start: int, nodes: list[Node]) -> int | None:
        """Take the object at a place, or count it as lost; where to go on, or None if that takes more bytes."""
        if self._text[start] == ord("]") and not self._is_last and len(self._text) - start < _LONGEST_CLOSING:
            return None
        try:
            end = self._object_end(start)
        except UNDECODABLE:
            return self._skip(start, nodes, False)
        if end is None:
            return None if self._may_wait(start) else self._skip(start, nodes, True)
        node = self._decoded(self._text[start:end])
        if node is None:
            return self._skip(start, nodes, False)
        nodes.append(node)
        return end

    def _may_wait(self, start: int) -> bool:
        """Whether more bytes may complete the object at a place."""
        return not self._is_last and len(self._text) - start <= _LARGEST_OBJECT

    def _object_end(self, start: int) -> int | None:
        """Where the JSON object ends that begins at a place; None if the text ends before.

        Raises:
            msgspec.DecodeError, RecursionError: it is damaged, or no object.
        """
        if self._text[start] != ord("{"):
            raise msgspec.DecodeError("no object")
        end = value_end(self._text, start)
        return None if end is None else self._text.rindex(b"}", start, end) + 1

    def _decoded(self, text: bytes) -> Node | None:
        """A node from its text; None if it is damaged or no node."""
        try:
            node = self._layout.decode_one(text)
        except UNDECODABLE:
            return None
        return node if self._layout.is_node(node) else None

    def _skip(self, start: int, nodes: list[Node], is_cut_off: bool) -> int | None:
        """Step over an object that cannot be read, unless it can be repaired; None if that takes more bytes."""
        resume = self._next_node(start + 1)
        if resume is None and self._may_wait(start):
            return None
        end = len(self._text) if resume is None else resume
        damaged = self._text[start:end]
        place = f"byte {self._stream.position - len(self._text) + start}"
        better = self._layout.repair_text(damaged.rstrip(_BLANK_AND_COMMA))
        own_end = _sound_end(better)
        repaired = self._decoded(better[:own_end])
        if repaired is not None:
            nodes.append(repaired)
            self._issues.add("repaired_node", at=place)
            # What is behind the repaired node may be nodes that needed repair themselves, and is looked at next.
            self._text = self._text[:start] + better + self._text[end:]
            return start + own_end
        is_cut_off &= resume is None
        self.is_complete &= not is_cut_off
        count = len(self._layout.id_key.findall(damaged)) or int(b"{" in damaged)
        self._issues.add("truncated" if is_cut_off else "undecodable_node", count, at=place, lost_events=count)
        self._issues.add("skipped_bytes", len(damaged), at=place)
        return end

    def _next_node(self, start: int) -> int | None:
        """Where the next object begins that is a node, or that holds a list of nodes."""
        for match in _OBJECT_START.finditer(self._text, start):
            if self._opening_at(match.start()):
                return match.start()
            try:
                end = self._object_end(match.start())
            except UNDECODABLE:
                continue
            if end is not None and self._decoded(self._text[match.start() : end]) is not None:
                return match.start()
        return None


def _sound_end(text: bytes) -> int:
    """Where the value at the beginning of a text ends; the end of the text where nothing says so."""
    try:
        return value_end(text, 0) or len(text)
    except UNDECODABLE:
        return len(text)
