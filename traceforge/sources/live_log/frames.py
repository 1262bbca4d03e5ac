"""Frames of a live recording. In: the bytes of a file. Out: facts, and arrays of rows by kind.

Idea: a frame says how long it is and how its bytes add up, so that damage costs that frame alone: the next mark is
where the file goes on. A file that was cut off ends within a frame. Not handled: versions other than 1.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import UNDECODABLE
from traceforge.reading.stream import ByteStream

_MARK = b"\xf1tfl"
_HEAD = struct.Struct("<4s4sIII")
_BLOCK = struct.Struct("<BI")
_COLUMNS = 6
_LARGEST_BYTES = 16 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024

Table = NDArray[np.int64]
Facts = dict[str, object]


class FrameDamageError(ValueError):
    """A frame is not what its head says."""


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows of one kind; columns name, start_ns, end_ns, a, b, c, shape (6, rows)."""

    kind: int
    rows: Table


class FrameReader:
    """Yields what the frames of a stream hold, in order.

    Attributes:
        is_whole: False once the file turned out to end within a frame.
    """

    def __init__(self, stream: ByteStream, issues: IssueLog, buffered: bytes = b"") -> None:
        self._stream = stream
        self._issues = issues
        self._buffer = buffered
        self.is_whole = True

    def __iter__(self) -> Iterator[Facts | list[RowBlock]]:
        while self._seek():
            head = _HEAD.unpack_from(self._buffer)
            _, kind, size, checksum, plain_size = head
            if max(size, plain_size) > _LARGEST_BYTES:
                self._skip_mark()
                continue
            if not self._have(_HEAD.size + size):
                # Either the file ends here, or the head is damaged and what follows is sound.
                self.is_whole = False
                self._skip_mark()
                continue
            try:
                found = _decoded(kind, self._buffer[_HEAD.size : _HEAD.size + size], checksum, plain_size)
            except FrameDamageError:
                self._skip_mark()
                continue
            self._buffer = self._buffer[_HEAD.size + size :]
            yield found

    def _have(self, size: int) -> bool:
        pieces = [self._buffer]
        held = len(self._buffer)
        while held < size and (piece := self._stream.read(max(_PIECE_BYTES, size - held))):
            pieces.append(piece)
            held += len(piece)
        self._buffer = b"".join(pieces)
        return held >= size

    def _seek(self) -> bool:
        """Go to the next mark; False where there is none."""
        lost = 0
        while self._have(len(_MARK)):
            place = self._buffer.find(_MARK)
            if place >= 0:
                self._note_lost(lost + place)
                self._buffer = self._buffer[place:]
                if self._have(_HEAD.size):
                    return True
                self.is_whole = False
                return False
            cut = len(self._buffer) - len(_MARK) + 1
            lost += cut
            self._buffer = self._buffer[cut:]
        self._note_lost(lost + len(self._buffer))
        self._buffer = b""
        return False

    def _skip_mark(self) -> None:
        self._issues.add("damaged_frame", at=f"byte {self._stream.position - len(self._buffer)}")
        self._buffer = self._buffer[len(_MARK) :]

    def _note_lost(self, count: int) -> None:
        self._issues.add("skipped_bytes", count)


def _decoded(kind: bytes, body: bytes, checksum: int, plain_size: int) -> Facts | list[RowBlock]:
    """What a frame holds.

    Raises:
        FrameDamageError: its bytes are not what its head says.
    """
    if zlib.crc32(body) != checksum:
        raise FrameDamageError("the bytes do not add up")
    try:
        inflate = zlib.decompressobj()
        plain = inflate.decompress(body, plain_size + 1)
    except zlib.error as error:
        raise FrameDamageError(str(error)) from error
    if len(plain) != plain_size:
        raise FrameDamageError("it is not as long as it says")
    if kind == b"ROWS":
        return list(_blocks(plain))
    try:
        facts = msgspec.json.decode(plain)
    except UNDECODABLE as error:
        raise FrameDamageError(str(error)) from error
    if kind != b"FACT" or not isinstance(facts, Mapping):
        raise FrameDamageError("it holds no facts")
    return dict(facts)


def _blocks(plain: bytes) -> Iterator[RowBlock]:
    place = 0
    while place < len(plain):
        if len(plain) - place < _BLOCK.size:
            raise FrameDamageError("a block has no head")
        kind, count = _BLOCK.unpack_from(plain, place)
        place += _BLOCK.size
        end = place + 8 * _COLUMNS * count
        if end > len(plain):
            raise FrameDamageError("a block is cut off")
        planes = np.frombuffer(plain, dtype=np.uint8, count=end - place, offset=place).reshape(_COLUMNS, 8, count)
        name, start, lasts, a, b, c = (
            np.ascontiguousarray(planes.transpose(0, 2, 1)).view("<i8")[:, :, 0].astype(np.int64)
        )
        with np.errstate(over="ignore"):
            starts = np.cumsum(start)
            yield RowBlock(kind, np.stack([name, starts, starts + lasts, np.cumsum(a), b, c]))
        place = end
