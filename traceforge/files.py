"""Bytes on disk. In: paths as users type them. Out: files in a stable order, their bytes, their content hash.

Compression is recognised by content, never by name. Folders are walked in sorted order, each real file once.
Not handled yet: .zst and .tar.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from traceforge.errors import InputUnusableError

_GZIP_MAGIC = b"\x1f\x8b"
_HEAD_BYTES = 256 * 1024


def find_files(paths: Iterable[Path]) -> list[Path]:
    """All regular files under the given files and folders, sorted, without repeats or hidden files.

    Links to folders are not followed, so a loop cannot occur.

    Raises:
        InputUnusableError: a path does not exist.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not path.exists():
            raise InputUnusableError("no such file or folder", where=str(path))
        for file in _walk(path):
            found.setdefault(file.resolve(), file)
    return sorted(found.values())


def _walk(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if not name.startswith(".") and file.is_file():
                yield file


def open_bytes(path: Path) -> BinaryIO:
    """The decompressed bytes of a file.

    Raises:
        InputUnusableError: the file cannot be opened.
    """
    try:
        raw = path.open("rb")
    except OSError as error:
        raise InputUnusableError(
            f"cannot be read: {error.strerror}", where=str(path), hint="check the file's permissions"
        ) from error
    magic = raw.read(2)
    raw.seek(0)
    if magic != _GZIP_MAGIC:
        return raw
    from isal import igzip

    return cast(BinaryIO, igzip.IGzipFile(fileobj=raw, mode="rb"))


def read_head(path: Path) -> bytes:
    """The first 256 KiB of the decompressed bytes; what could be decompressed of a damaged file."""
    pieces: list[bytes] = []
    size = 0
    with open_bytes(path) as stream:
        try:
            while size < _HEAD_BYTES and (piece := stream.read(min(65_536, _HEAD_BYTES - size))):
                pieces.append(piece)
                size += len(piece)
        except (EOFError, OSError, ValueError):
            # A damaged file is judged by what precedes the damage; the source reports where it ends.
            pass
    return b"".join(pieces)


def content_hash(path: Path) -> str:
    """SHA-256 (hex) of a file as it lies on disk: cheap, and enough to know an unchanged file again."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
