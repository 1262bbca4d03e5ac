"""A log's lines, in blocks. In: a path. Out: blocks of whole lines, decompressed.

Idea: blocks grow from small to a few MiB, so that what the first lines teach is known before most lines are read. Lines
that a collector wrapped in JSON are unwrapped.
Not handled: a line longer than 16 MiB is cut.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from traceforge.reading.stream import ByteStream
from traceforge.sources.nccl_log.byte_words import BACK_PADDING, FRONT_PADDING
from traceforge.sources.nccl_log.json_lines import is_wrapped, unwrapped

BLOCK_BYTES = 4 * 1024 * 1024
_FIRST_BLOCK_BYTES = 64 * 1024
_LONGEST_LINE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of a file, each with its newline.

    Attributes:
        padded: the bytes between paddings, which let eight-byte windows hang over both ends.
    """

    padded: bytes

    @classmethod
    def of(cls, *pieces: bytes | memoryview) -> "Block":
        """Some bytes one after another, copied once."""
        return cls(b"".join((FRONT_PADDING, *pieces, BACK_PADDING)))


class LineStream:
    """The lines of a file.

    Attributes:
        line_count: lines so far; counted by whoever takes the blocks apart.
        damage: why the file could not be read to its end, else None.
        is_cut: whether the last line has no newline.
    """

    def __init__(self, path: Path, block_bytes: int, report_progress: Callable[[int], None]) -> None:
        self._path = path
        self._block_bytes = block_bytes
        self._report_progress = report_progress
        self.line_count = 0
        self.damage: str | None = None
        self.is_cut = False

    def blocks(self) -> Iterator[Block]:
        """All lines, in order.

        Raises:
            InputUnusableError: the file cannot be opened.
        """
        rest = b""
        wrapped: bool | None = None
        for piece in self._pieces():
            wrapped = is_wrapped(piece) if wrapped is None else wrapped
            end = piece.rfind(b"\n") + 1
            if end:
                whole = memoryview(piece)[:end]
                yield Block.of(unwrapped(rest + whole)) if wrapped else Block.of(rest, whole)
                rest = piece[end:]
            else:
                rest += piece
            if len(rest) > _LONGEST_LINE_BYTES:
                yield Block.of(rest, b"\n")
                rest = b""
        self.is_cut = bool(rest)
        if rest:
            yield Block.of(unwrapped(rest + b"\n")) if wrapped else Block.of(rest, b"\n")

    def _pieces(self) -> Iterator[bytes]:
        size = min(_FIRST_BLOCK_BYTES, self._block_bytes)
        with ByteStream(self._path, self._report_progress) as stream:
            while piece := stream.read(size):
                yield piece
                size = min(size * 4, self._block_bytes)
        self.damage = stream.damage
