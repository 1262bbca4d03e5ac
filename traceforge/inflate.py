"""Decompression with a limit. In: a compressed file. Out: its bytes, or an error where it is a trap.

Idea: traces inflate to some 10 to 60 times their size, what is made to fill memory or disks to 1,000 times and more;
so what inflates beyond 1 GiB must not be more than `MOST_TIMES` times the bytes it is made of.
Not handled: traps below 1 GiB, which cost a second or two.
"""

from typing import BinaryIO, Self

import zstandard
from isal import igzip

LEAST_BYTES = 1024 * 1024 * 1024
MOST_TIMES = 500


class InflatesTooMuchError(ValueError):
    """What is inside a compressed file is beyond the limit; readers treat it as damage."""


def check_inflated(count: int, compressed: int) -> None:
    """Refuse to go on with a trap.

    Args:
        count: bytes inflated so far.
        compressed: bytes they were made of.

    Raises:
        InflatesTooMuchError: the limit is reached.
    """
    if count > LEAST_BYTES and count > MOST_TIMES * max(compressed, 1):
        raise InflatesTooMuchError(f"{compressed} bytes inflate to more than {MOST_TIMES} times as many")


class GzipFile(igzip.IGzipFile):
    """A gzip file that keeps to the limit."""

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__(fileobj=raw, mode="rb")  # type: ignore[no-untyped-call]
        self._compressed = raw
        self._count = 0

    def read(self, size: int | None = -1) -> bytes:
        """See `gzip.GzipFile`; InflatesTooMuchError at the limit."""
        return self._checked(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """See `gzip.GzipFile`; InflatesTooMuchError at the limit."""
        return self._checked(super().read1(size))

    def _checked(self, piece: bytes) -> bytes:
        self._count += len(piece)
        check_inflated(self._count, self._compressed.tell())
        return piece


class ZstdFile:
    """A zstd file that keeps to the limit; read forward only.

    Attributes:
        fileobj: the compressed file, as of a `gzip.GzipFile`.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self.fileobj = raw
        self._stream = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=True)
        self._count = 0

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes, empty at the end; EOFError at damage, InflatesTooMuchError at the limit."""
        try:
            piece: bytes = self._stream.read(size)
        except zstandard.ZstdError as error:
            raise EOFError(str(error)) from error
        self._count += len(piece)
        check_inflated(self._count, self.fileobj.tell())
        return piece

    def seekable(self) -> bool:
        """False."""
        return False

    def close(self) -> None:
        """Close it and the compressed file."""
        self._stream.close()  # type: ignore[no-untyped-call]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()
