"""Compressed files. In: an open file, plain, gzip or zstd. Out: its bytes, up to damage or the limit, never beyond.

Idea: traces inflate to some 10 to 60 times their size, what is made to fill memory or disks to 1,000 times and more;
so what inflates beyond 1 GiB must not be more than `MOST_TIMES` times the bytes it is made of. Compression is
recognised by content. A file that ends inside a gzip member or a zstd frame raises, as does what follows the last one.
Not handled: traps below 1 GiB, which cost a second or two; what follows damage inside a gzip file.
"""

import tarfile
import zlib
from collections.abc import Iterator
from io import SEEK_END
from typing import BinaryIO, Self, cast

import zstandard
from isal import igzip
from isal.igzip_lib import IsalError

LEAST_BYTES = 1024 * 1024 * 1024
MOST_TIMES = 500
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_PIECE_BYTES = 64 * 1024
_LONGEST_FRAME_HEADER = 18

DAMAGE = (EOFError, OSError, ValueError, cast(type[Exception], IsalError), zlib.error, tarfile.TarError)
"""What reading damaged bytes may raise, whatever the compression."""


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


def inflated(raw: BinaryIO) -> BinaryIO:
    """The decompressed bytes of an open file, which is closed with them."""
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(_GZIP_MAGIC):
        return cast(BinaryIO, GzipFile(raw))
    # `pzstd` begins each of its frames with one to be skipped.
    if magic == _ZSTD_MAGIC or int.from_bytes(magic, "little") in _SKIPPABLE:
        return cast(BinaryIO, ZstdFile(raw))
    return raw


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

    def close(self) -> None:
        """Close it and the compressed file."""
        super().close()
        self._compressed.close()


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
        if not piece and size:
            # The library says nothing of a file that ends inside a frame.
            _check_frames(self.fileobj)
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


def _check_frames(raw: BinaryIO) -> None:
    """Walk the blocks of all zstd frames (RFC 8878, section 3.1) and leave the file at its end.

    Raises:
        EOFError: the file ends inside a frame.
    """
    end = raw.seek(0, SEEK_END)
    place = 0
    while place < end:
        raw.seek(place)
        place = _frame_end(raw, place, raw.read(_LONGEST_FRAME_HEADER))
    raw.seek(0, SEEK_END)
    if place > end:
        raise EOFError("the file ends inside a zstd frame")


def _frame_end(raw: BinaryIO, start: int, header: bytes) -> int:
    """Where a frame ends, perhaps beyond the end of the file."""
    if int.from_bytes(header[:4], "little") in _SKIPPABLE:
        return start + 8 + int.from_bytes(header[4:8], "little")
    flags = header[4] if len(header) > 4 else 0
    is_single_segment, has_checksum = flags >> 5 & 1, flags >> 2 & 1
    place = start + 5 + (1 - is_single_segment) + (0, 1, 2, 4)[flags & 3] + (is_single_segment, 2, 4, 8)[flags >> 6]
    is_last = False
    while not is_last:
        raw.seek(place)
        block = raw.read(3)
        if len(block) < 3:
            return place + 3
        size = int.from_bytes(block, "little")
        is_last = bool(size & 1)
        is_repeated_byte = size >> 1 & 3 == 1
        place += 3 + (1 if is_repeated_byte else size >> 3)
    return place + 4 * has_checksum


def salvaged(raw: BinaryIO, skip: int) -> Iterator[bytes]:
    """What can be inflated of a damaged gzip file behind its first `skip` bytes, up to the damage.

    The fast decompressor hands out nothing of the piece in which the damage lies; zlib does, in ever smaller steps.
    """
    raw.seek(0)
    count = 0
    for piece in _inflate(raw):
        count += len(piece)
        check_inflated(count, raw.tell())
        fresh = piece[max(0, skip - (count - len(piece))) :]
        if fresh:
            yield fresh


def _inflate(raw: BinaryIO) -> Iterator[bytes]:
    inflater = zlib.decompressobj(wbits=31)
    while compressed := raw.read(_PIECE_BYTES):
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
