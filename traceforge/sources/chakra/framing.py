"""Bytes of a `.et` file to nodes. In: a stream of frames, each behind its length. Out: blocks of nodes, metadata.

Idea: lengths alone lead from frame to frame, so one bad length loses the thread. A frame that is no node but is
followed by sound ones is damaged inside and costs itself; where no sound one follows, the thread is taken up again at
the first place from which on whole nodes follow one another. Nodes lost there are estimated by the size of the others.
Not handled: nodes of more than 64 MiB.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.stream import ByteStream
from traceforge.reading.wire import Bools, Bytes, Fields, Int64s, padded, read_fields
from traceforge.sources.chakra.judge import (
    DAMAGED,
    EMPTY,
    METADATA,
    NODE,
    find_frame,
    judge_frames,
    refuse_old_versions,
)

UNIT_BYTES = 2 * 1024 * 1024
_LARGEST_FRAME = 64 * 1024 * 1024
_LONGEST_HEADER = 10


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """Consecutive nodes of a file.

    Attributes:
        data: bytes that hold them.
        buffer: the same as an array, padded.
        offset: place of the first byte in the file.
        fields: the fields of the nodes.
        positions: position of each node in the file.
        part: which trace of the file they belong to.
    """

    data: bytes
    buffer: Bytes
    offset: int
    fields: Fields
    positions: Int64s
    part: int


@dataclass(frozen=True, slots=True)
class MetadataFrame:
    """A frame that says something about a trace.

    Attributes:
        data: the message.
        part: which trace of the file it begins.
    """

    data: bytes
    part: int


def walk_frames(data: bytes) -> tuple[list[int], list[int], int]:
    """Where the messages of all whole frames begin and end, and where the first incomplete frame begins."""
    starts: list[int] = []
    ends: list[int] = []
    position, size = 0, len(data)
    while position < size:
        end = data[position]
        start = position + 1
        if end >= 0x80:
            if start < size and data[start] < 0x80:
                end += (data[start] << 7) - 0x80
                start += 1
            else:
                end, start = _long_length(data, position)
        end += start
        if end > size:
            break
        starts.append(start)
        ends.append(end)
        position = end
    return starts, ends, position


def _long_length(data: bytes, position: int) -> tuple[int, int]:
    """A length of several bytes, and where it ends; longer than any file where it has no end."""
    length = 0
    for index, byte in enumerate(data[position : position + _LONGEST_HEADER]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return length, position + index + 1
    return 1 << 70, position


class Framing:
    """Reads all frames of a file.

    Args:
        stream: behind `head`.
        head: what was read of the file already.
        where: the file, for errors.
        unit_bytes: how much to look at in one step; the result does not depend on it.

    Attributes:
        is_complete: whether the file ended where a frame ends.
    """

    def __init__(
        self, stream: ByteStream, head: bytes, issues: IssueLog, where: str, unit_bytes: int = UNIT_BYTES
    ) -> None:
        self._stream = stream
        self._issues = issues
        self._where = where
        self._unit_bytes = unit_bytes
        self._data = head
        self._goal = unit_bytes
        self._is_last = False
        self._is_first = True
        self._has_nodes = False
        self._next_position = 0
        self._good_bytes = 0
        self._good_nodes = 0
        self._part = -1
        self.is_complete = True

    def blocks(self) -> Iterator[NodeBlock | MetadataFrame]:
        """All nodes and metadata, in order.

        Raises:
            InputUnusableError: the nodes are of a schema before 2023-08.
        """
        while self._fill():
            starts, ends, rest = walk_frames(self._data)
            if starts:
                yield from self._take(np.array(starts), np.array(ends), rest)
            elif self._is_last or _long_length(self._data, 0)[0] > _LARGEST_FRAME:
                self._resume("truncated")
            else:
                self._goal = 2 * len(self._data)

    def _fill(self) -> bool:
        """Read until there is enough to look at; False at the end of the file."""
        pieces, size = [self._data], len(self._data)
        while size < self._goal and not self._is_last:
            piece = self._stream.read(self._goal - size)
            self._is_last = not piece
            pieces.append(piece)
            size += len(piece)
        self._data = b"".join(pieces)
        self._goal = self._unit_bytes
        return bool(self._data)

    def _offset(self) -> int:
        """Place in the file of the first byte at hand."""
        return self._stream.position - len(self._data)

    def _take(self, starts: Int64s, ends: Int64s, rest: int) -> Iterator[NodeBlock | MetadataFrame]:
        """Hand over the frames up to a place where the thread is lost, and go on behind them."""
        buffer = padded(self._data)
        fields = read_fields(buffer, starts, ends)
        kinds = judge_frames(buffer, starts, ends, fields)
        if self._is_first:
            refuse_old_versions(fields, kinds, self._where)
            self._is_first = False
        if self._part < 0 and not self._next_position and kinds[0] == EMPTY and EMPTY not in kinds[1:2]:
            kinds[0] = METADATA  # which says nothing
        good = self._good_frames(kinds, rest)
        yield from self._deliver(buffer, fields, starts[:good], ends[:good], kinds[:good])
        is_lost = good < len(kinds) and (good + 1 < len(kinds) or self._is_last)
        if good < len(kinds):
            rest = int(ends[good - 1]) if good else 0
            self._goal = max(self._unit_bytes, 2 * int(ends[good] - rest))
        self._data = self._data[rest:]
        if is_lost:
            self._resume("undecodable_node")

    def _good_frames(self, kinds: Int64s, rest: int) -> int:
        """How many frames can be used; behind them the thread is lost, or more bytes are needed."""
        for frame in np.flatnonzero(kinds == DAMAGED).tolist():
            if frame + 1 < len(kinds):
                if kinds[frame + 1] in (DAMAGED, EMPTY):
                    return int(frame)
            elif not (self._is_last and rest == len(self._data)):
                return int(frame)
        return len(kinds)

    def _deliver(
        self, buffer: Bytes, fields: Fields, starts: Int64s, ends: Int64s, kinds: Int64s
    ) -> Iterator[NodeBlock | MetadataFrame]:
        """Good frames as blocks; metadata divides them."""
        lost = self._count_lost(starts, kinds)
        events = (kinds == NODE) | lost
        positions = self._next_position + np.cumsum(events) - 1
        self._next_position += int(events.sum())
        self._good_nodes += int(np.count_nonzero(kinds == NODE))
        self._good_bytes += int((ends - starts)[kinds == NODE].sum())
        begin = 0
        for frame in [*np.flatnonzero(kinds == METADATA).tolist(), len(kinds)]:
            nodes = np.zeros(len(fields.damaged), np.bool_)
            nodes[begin:frame] = kinds[begin:frame] == NODE
            if nodes.any():
                self._has_nodes = True
                chosen = fields if nodes.all() else fields.of_messages(nodes)
                yield NodeBlock(
                    self._data, buffer, self._offset(), chosen, positions[nodes[: len(kinds)]], max(self._part, 0)
                )
            if frame < len(kinds):
                yield self._metadata(self._data[starts[frame] : ends[frame]])
            begin = frame + 1

    def _count_lost(self, starts: Int64s, kinds: Int64s) -> Bools:
        """Frames that stand for a lost node: damaged ones, and the first of several empty ones in a row."""
        empty = kinds == EMPTY
        goes_on = np.append(empty[1:], False)
        begins = ~np.append(False, empty[:-1])
        lost: Bools = (kinds == DAMAGED) | (empty & goes_on & begins)
        for code, places, lost_events in (
            ("undecodable_node", np.flatnonzero(lost), 1),
            ("empty_frame", np.flatnonzero(empty), 0),
        ):
            if len(places):
                place = f"byte {self._offset() + int(starts[places[0]])}"
                self._issues.add(code, len(places), at=place, lost_events=lost_events * len(places))
        return lost

    def _metadata(self, data: bytes) -> MetadataFrame:
        self._part += 1
        if self._has_nodes or self._part > 0:
            self._part = max(self._part, 1)
            self._issues.add("second_trace", at=f"node {self._next_position}")
        return MetadataFrame(data, self._part)

    def _resume(self, code_at_end: str) -> None:
        """Skip what cannot be read, up to the next sound node or the end of the file."""
        place, skipped, first = f"byte {self._offset()}", 0, 1
        while (found := find_frame(padded(self._data), first, len(self._data), self._is_last)) is None:
            if self._is_last:
                break
            step = max(0, len(self._data) - self._unit_bytes // 2)
            skipped, first = skipped + step, 0 if step else 1
            self._data = self._data[step:]
            self._goal = len(self._data) + self._unit_bytes
            self._fill()
        self.is_complete &= found is not None
        code = code_at_end if found is None else "undecodable_node"
        step = len(self._data) if found is None else found
        self._data = self._data[step:]
        lost = max(1, (skipped + step) * self._good_nodes // max(1, self._good_bytes))
        self._issues.add(code, lost, at=place, lost_events=lost, because=self._stream.damage)
        self._issues.add("skipped_bytes", skipped + step, at=place)
        self._next_position += lost
