"""The decompressed bytes of a file, to the last one that can be had. In: a path. Out: pieces of bytes.

Idea: damage is noted, not raised. A damaged gzip file is inflated once more with zlib in small steps, to save the bytes
between the last full piece and the damage. Not handled: what follows damage inside a gzip file.
"""

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self, cast

from isal.igzip_lib import IsalError

from traceforge.files import open_bytes

_DAMAGE = (EOFError, OSError, ValueError, cast(type[Exception], IsalError), zlib.error)
_STEP_BYTES = 512


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

    def read(self, size: int) -> bytes:
        """The next bytes, at most about `size`; empty at the end and at damage that cannot be passed."""
        piece = self._next(size)
        self.position += len(piece)
        consumed = self._on_disk.tell()
        self._report_progress(consumed - self._reported)
        self._reported = consumed
        return piece

    def _next(self, size: int) -> bytes:
        if self._saved is None:
            try:
                return self._stream.read(size)
            except _DAMAGE as error:
                self.damage = str(error)
                is_compressed = isinstance(self._stream, gzip.GzipFile)
                self._saved = _salvage(self._path, self.position) if is_compressed else iter(())
        return next(self._saved, b"")


def _salvage(path: Path, skip: int) -> Iterator[bytes]:
    """What can be inflated behind the first `skip` bytes, up to the damage."""
    inflater = zlib.decompressobj(wbits=31)
    with path.open("rb") as raw:
        while compressed := raw.read(_STEP_BYTES):
            try:
                piece = inflater.decompress(compressed)
            except zlib.error:
                return
            if skip < len(piece):
                yield piece[skip:]
            skip = max(0, skip - len(piece))
