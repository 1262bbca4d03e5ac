"""The decompressed bytes of a file, to the last one that can be had. In: a path. Out: pieces of bytes.

Idea: damage is noted, not raised; a damaged gzip file is inflated once more with zlib, in ever smaller steps, to save
the bytes between the last full piece and the damage. Not handled: what follows damage inside a gzip file.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from io import SEEK_END
from pathlib import Path
from typing import Self, cast

from isal.igzip_lib import IsalError

from traceforge.files import open_bytes
from traceforge.inflate import InflatesTooMuchError

_DAMAGE = (EOFError, OSError, ValueError, cast(type[Exception], IsalError), zlib.error)
_PIECE_BYTES = 64 * 1024


class ByteStream:
    """Bytes of a file; use as a context manager.

    Attributes:
        position: number of bytes handed out so far.
        damage: why the file could not be read to its end, else None.
    """

    def __init__(self, path: Path, report_progress: Callable[[int], None] = lambda _count: None) -> None:
        """Open a file.

        Raises:
            InputUnusableError: it cannot be opened.
        """
        self._path = path
        self._stream = open_bytes(path)
        self._on_disk = getattr(self._stream, "fileobj", self._stream)
        self._reported = 0
        self._report_progress = report_progress
        self._saved: Iterator[bytes] | None = None
        self.position = 0
        self.damage: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._on_disk.close()
        self._stream.close()

    @property
    def is_compressed(self) -> bool:
        """Whether the file is gzip."""
        return isinstance(self._stream, gzip.GzipFile)

    def read(self, size: int) -> bytes:
        """The next bytes, at most about `size`; empty at the end and at damage that cannot be passed."""
        if self._saved is not None:
            piece = next(self._saved, b"")
        else:
            try:
                piece = self._stream.read(size)
            except _DAMAGE as error:
                self.damage = str(error)
                is_trap = isinstance(error, InflatesTooMuchError)
                is_plain_gzip = self.is_compressed and self._path.is_file() and not is_trap
                self._saved = _salvage(self._path, self.position) if is_plain_gzip else iter(())
                piece = next(self._saved, b"")
        self.position += len(piece)
        self._report()
        return piece

    def _report(self) -> None:
        consumed = self._on_disk.tell()
        if consumed > self._reported:
            self._report_progress(consumed - self._reported)
            self._reported = consumed

    def tail(self, size: int) -> bytes:
        """The last bytes of the file; reads it to the end, or jumps there if it is not compressed."""
        if not self.is_compressed and self._stream.seekable():
            self._stream.seek(0, SEEK_END)
            self._stream.seek(max(0, self._stream.tell() - size))
        pieces, total = [b""], 0
        while piece := self.read(1024 * 1024):
            pieces.append(piece)
            total += len(piece)
            while total - len(pieces[0]) >= size:
                total -= len(pieces.pop(0))
        return b"".join(pieces)[-size:]


def _salvage(path: Path, skip: int) -> Iterator[bytes]:
    """What can be inflated behind the first `skip` bytes, up to the damage."""
    with path.open("rb") as raw:
        for piece in _inflate(raw.read, _PIECE_BYTES):
            if skip >= len(piece):
                skip -= len(piece)
                continue
            yield piece[skip:]
            skip = 0


def _inflate(read: Callable[[int], bytes], size: int) -> Iterator[bytes]:
    inflater = zlib.decompressobj(wbits=31)
    while compressed := read(size):
        while compressed:
            before = inflater.copy()
            try:
                yield inflater.decompress(compressed)
            except zlib.error:
                yield from _inflate_bytewise(before, compressed)
                return
            compressed = inflater.unused_data
            if inflater.eof:
                inflater = zlib.decompressobj(wbits=31)


def _inflate_bytewise(inflater: "zlib._Decompress", compressed: bytes) -> Iterator[bytes]:
    for place in range(len(compressed)):
        try:
            yield inflater.decompress(compressed[place : place + 1])
        except zlib.error:
            return
