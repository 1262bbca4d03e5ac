"""The decompressed bytes of a file, to the last one that can be had. In: a path. Out: pieces of bytes.

Idea: damage is noted, not raised; a damaged gzip file is inflated once more to save the bytes between the last full
piece and the damage (see `inflate.salvaged`). Not handled: what follows damage inside a gzip file.
"""

from collections.abc import Callable, Iterator
from io import SEEK_END
from pathlib import Path
from typing import Self

from traceforge.errors import InputUnusableError
from traceforge.files import open_bytes
from traceforge.inflate import DAMAGE, GzipFile, InflatesTooMuchError, ZstdFile, salvaged

_MIB = 1024 * 1024


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
        self._stream.close()

    @property
    def is_compressed(self) -> bool:
        """Whether the file is compressed."""
        return isinstance(self._stream, GzipFile | ZstdFile)

    def read(self, size: int) -> bytes:
        """The next bytes, at most about `size`; empty at the end and at damage that cannot be passed."""
        try:
            piece = self._stream.read(size) if self._saved is None else next(self._saved, b"")
        except DAMAGE as error:
            piece = self._pass_damage(error)
        self.position += len(piece)
        self._report()
        return piece

    def _pass_damage(self, error: Exception) -> bytes:
        """Note damage; the next bytes, if more can be had."""
        can_save = self._saved is None and isinstance(self._stream, GzipFile)
        self.damage = self.damage or str(error) or type(error).__name__
        self._saved = iter(())
        if not can_save or isinstance(error, InflatesTooMuchError):
            return b""
        self._saved = salvaged(self._on_disk, self.position)
        try:
            return next(self._saved, b"")
        except DAMAGE:
            return b""

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
        while piece := self.read(_MIB):
            pieces.append(piece)
            total += len(piece)
            while total - len(pieces[0]) >= size:
                total -= len(pieces.pop(0))
        return b"".join(pieces)[-size:]


def read_whole(path: Path, most_bytes: int, report_progress: Callable[[int], None]) -> bytes:
    """All bytes of a small file, for formats that cannot be read in part.

    Raises:
        InputUnusableError: it is damaged, or larger than any file of its kind.
    """
    pieces: list[bytes] = []
    with ByteStream(path, report_progress) as stream:
        while stream.position <= most_bytes and (piece := stream.read(_MIB)):
            pieces.append(piece)
    if stream.damage is not None:
        raise InputUnusableError(f"cannot be decompressed: {stream.damage}", where=str(path))
    if stream.position > most_bytes:
        raise InputUnusableError(f"a file of this kind above {most_bytes // _MIB} MiB is not read", where=str(path))
    return b"".join(pieces)
