"""Bytes on disk. In: paths as users type them. Out: files in a stable order, their bytes, their content hash.

Compression (gzip, zstd) and archives (tar) are recognised by content, never by name. A member of an archive is
addressed as if the archive were a folder: `job.tar.gz/rank0.json`. Folders are walked in sorted order, each real file
once. What inflates beyond a limit is refused (see `inflate`). Not handled: archives inside archives; a member of a
compressed archive is found by reading all before it.
"""

import hashlib
import os
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from traceforge.errors import InputUnusableError
from traceforge.inflate import GzipFile, ZstdFile, check_inflated

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_TAR_MAGIC_AT = 257
_TAR_MAGIC = b"ustar"
_HEAD_BYTES = 256 * 1024
_PIECE_BYTES = 65_536
_LARGEST_IN_MEMORY = 64 * 1024 * 1024

# What reading damaged bytes may raise, whatever the compression.
DAMAGE = (EOFError, OSError, ValueError, tarfile.TarError)


def find_files(paths: Iterable[Path]) -> list[Path]:
    """All regular files under the given files, folders and archives, sorted, without repeats or hidden files.

    Links to folders are not followed, so a loop cannot occur; links inside archives are not files.

    Raises:
        InputUnusableError: a path does not exist.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        check_exists(path)
        for file in _walk(path):
            found.setdefault(file.resolve(), file)
    return sorted(found.values())


def check_exists(path: Path) -> None:
    """Refuse a path at which there is nothing.

    Raises:
        InputUnusableError: it does not exist.
    """
    if not path.exists():
        hint = "check the name, and the folder you are in"
        raise InputUnusableError("no such file or folder", where=str(path), hint=hint)


def shown_name(file: Path, given: Iterable[Path]) -> str:
    """A file as it is told in databases and reports: from the folder the user gave on, without what lies above it."""
    for path in given:
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        if file.resolve().is_relative_to(folder):
            return str(Path(folder.name) / file.resolve().relative_to(folder))
    return file.name


def _walk(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield from _members(path)
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            if not name.startswith(".") and file.is_file():
                yield from _members(file)


def _members(file: Path) -> Iterator[Path]:
    """The members of an archive, or the file itself."""
    try:
        if not _is_archive(file):
            yield file
            return
        with _open_archive(file) as archive:
            for member in archive:
                if member.isfile() and not _is_hidden(member.name):
                    yield file / _inner_path(member.name)
    except InputUnusableError:
        yield file
    except DAMAGE:
        # What precedes the damage has been found; reading the rest reports it.
        return


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in _inner_path(name).parts)


def _inner_path(name: str) -> PurePosixPath:
    """A member's name without what could lead out of the archive; it is only ever compared, never written to."""
    return PurePosixPath(*(part for part in PurePosixPath(name).parts if part not in ("/", "..", ".")))


def size_bytes(path: Path) -> int:
    """Size of a file on disk, or of a member inside its archive."""
    archive, inner = _split(path)
    if inner is None:
        return path.stat().st_size
    with _open_archive(archive) as opened:
        return _find(opened, inner, path).size


def open_bytes(path: Path) -> BinaryIO:
    """The decompressed bytes of a file, or of a member of an archive.

    Raises:
        InputUnusableError: the file cannot be opened.
    """
    archive, inner = _split(path)
    if inner is None:
        return _decompressed(_open_raw(path))
    # Readers seek, which a member of a compressed archive cannot: it is copied, to disk where it is large.
    copy = tempfile.SpooledTemporaryFile(max_size=_LARGEST_IN_MEMORY)  # noqa: SIM115 - closed by whoever reads it
    with _open_archive(archive) as opened:
        content = opened.extractfile(_find(opened, inner, path))
        if content is None:
            raise InputUnusableError("not a regular file of the archive", where=str(path))
        while piece := content.read(_PIECE_BYTES):
            copy.write(piece)
            check_inflated(copy.tell(), archive.stat().st_size)
    copy.seek(0)
    return _decompressed(cast(BinaryIO, copy))


def _split(path: Path) -> tuple[Path, PurePosixPath | None]:
    """The archive and the place in it, where a parent of the path is a file; else the path itself."""
    for parent in path.parents:
        if parent.is_file():
            return parent, PurePosixPath(path.relative_to(parent))
    return path, None


def _find(archive: tarfile.TarFile, inner: PurePosixPath, path: Path) -> tarfile.TarInfo:
    for member in archive:
        if _inner_path(member.name) == inner:
            return member
    raise InputUnusableError("the archive has no such member", where=str(path))


def _open_archive(path: Path) -> tarfile.TarFile:
    content = _decompressed(_open_raw(path))
    try:
        # A stream is read forward only, which suits compressed archives.
        return tarfile.open(fileobj=content, mode="r|")
    except DAMAGE as error:
        content.close()
        raise InputUnusableError("the archive is damaged", where=str(path)) from error


def _is_archive(path: Path) -> bool:
    with _decompressed(_open_raw(path)) as content:
        try:
            head = content.read(_TAR_MAGIC_AT + len(_TAR_MAGIC))
        except DAMAGE:
            return False
    return head[_TAR_MAGIC_AT:] == _TAR_MAGIC


def _open_raw(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputUnusableError(
            f"cannot be read: {error.strerror}", where=str(path), hint="check the file's permissions"
        ) from error


def _decompressed(raw: BinaryIO) -> BinaryIO:
    magic = raw.read(4)
    raw.seek(0)
    if magic.startswith(_GZIP_MAGIC):
        return cast(BinaryIO, GzipFile(raw))
    if magic == _ZSTD_MAGIC:
        return cast(BinaryIO, ZstdFile(raw))
    return raw


def read_head(path: Path) -> bytes:
    """The first 256 KiB of the decompressed bytes; what could be decompressed of a damaged file."""
    pieces: list[bytes] = []
    size = 0
    with open_bytes(path) as stream:
        # `read1` hands out what precedes damage; `read` would lose it with the damage.
        read_piece = getattr(stream, "read1", stream.read)
        try:
            while size < _HEAD_BYTES and (piece := read_piece(min(_PIECE_BYTES, _HEAD_BYTES - size))):
                pieces.append(piece)
                size += len(piece)
        except DAMAGE:
            # A damaged file is judged by what precedes the damage; the source reports where it ends.
            pass
    return b"".join(pieces)


def content_hash(path: Path) -> str:
    """SHA-256 (hex) of a file as it lies on disk: cheap, and enough to know an unchanged file again.

    A member of an archive is hashed by its content.
    """
    _, inner = _split(path)
    with _open_raw(path) if inner is None else open_bytes(path) as stream:
        digest = hashlib.sha256()
        while piece := stream.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
