"""Tar archives, plain or compressed. In: a path. Out: what is in one, found in one pass; the bytes of a member.

Idea: an archive is read to its last byte, whatever stands between its members: archives joined one behind the other
are one, bytes that are no header are skipped and counted, a member that the file's end cuts off is kept as far as it
goes. Two members of one name are two files; the later one's name gets a number. A member of a plain archive is found
by its headers, one of a compressed archive by inflating what precedes it.
Not handled: archives inside archives; links and devices inside (counted).
"""

import hashlib
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self, cast

from traceforge.errors import InputUnusableError
from traceforge.inflate import DAMAGE, check_inflated, inflated

HEAD_BYTES = 256 * 1024
_MAGIC_AT = 257
_MAGIC = b"ustar"
_PIECE_BYTES = 65_536
_LARGEST_IN_MEMORY = 64 * 1024 * 1024
_MOST_INDEXES = 256
# What else `tarfile` raises at headers that make no sense.
_BAD_HEADER = (*DAMAGE, OverflowError, IndexError, KeyError, AttributeError)


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file inside an archive.

    Attributes:
        path: its place in the archive, different from that of all others.
        size_bytes: as many bytes as there are.
        content_hash: SHA-256 of them, hex.
        head: the first of them.
    """

    path: PurePosixPath
    size_bytes: int
    content_hash: str
    head: bytes


@dataclass(slots=True)
class Archive:
    """What is in an archive.

    Attributes:
        members: its files, in order, without hidden ones.
        skipped_bytes: bytes between members that are no header.
        unread: links, devices and the like, by kind.
        damage: why it could not be read to its end, else None.
    """

    members: list[ArchiveMember] = field(default_factory=list)
    skipped_bytes: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    damage: str | None = None


class _ArchiveReader(tarfile.TarFile):
    """Reads on behind zeros and damaged headers, and keeps account of them."""

    skipped_blocks = 0
    has_end = False


class _MemberHeader(tarfile.TarInfo):
    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        reader = cast(_ArchiveReader, tarfile_)
        try:
            header = super().fromtarfile(reader)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            reader.has_end = True
            raise
        except tarfile.InvalidHeaderError:  # type: ignore[attr-defined]
            reader.skipped_blocks += 1
            raise
        reader.has_end = False
        return header


def is_archive(content: BinaryIO) -> bool:
    """Whether decompressed bytes are those of an archive."""
    try:
        head = content.read(_MAGIC_AT + len(_MAGIC))
    except DAMAGE:
        return False
    return head[_MAGIC_AT:] == _MAGIC


def archive_at(path: Path) -> Archive:
    """What is in an archive; each state of a file is read once.

    Raises:
        InputUnusableError: it cannot be opened.
    """
    state = path.stat()
    return _archive(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=_MOST_INDEXES)
def _archive(path: Path, _size: int, _changed_ns: int) -> Archive:
    found = Archive()
    with closing(_open(path)) as reader:
        try:
            for inner, header in _headers(reader, found.unread):
                found.members.append(_member(_content(reader, header, path), inner, found))
            if not reader.has_end:
                found.damage = found.damage or "it ends without the mark of its end"
        except _BAD_HEADER as error:
            found.damage = found.damage or str(error) or type(error).__name__
        found.skipped_bytes = reader.skipped_blocks * tarfile.BLOCKSIZE
    return found


def _headers(reader: _ArchiveReader, unread: Counter[str]) -> Iterator[tuple[PurePosixPath, tarfile.TarInfo]]:
    """Files of an archive with names of their own."""
    times: Counter[PurePosixPath] = Counter()
    for header in reader:
        inner = _inner_path(header.name)
        if header.isdir() or any(part.startswith(".") for part in inner.parts):
            continue
        if not header.isfile():
            unread["links" if header.issym() or header.islnk() else "devices"] += 1
            continue
        times[inner] += 1
        while times[inner] > 1:
            inner = inner.with_name(f"{inner.name}#{times[inner]}")
            times[inner] += 1
        yield inner, header


def _inner_path(name: str) -> PurePosixPath:
    """A member's name without what could lead out of the archive; it is only ever compared, never written to."""
    parts = [part for part in PurePosixPath(name).parts if part not in ("/", "//", "..", ".")]
    return PurePosixPath(*parts or ["unnamed"])


def _member(content: Iterator[bytes], inner: PurePosixPath, found: Archive) -> ArchiveMember:
    digest, head, size = hashlib.sha256(), b"", 0
    try:
        for piece in content:
            digest.update(piece)
            size += len(piece)
            head += piece[: HEAD_BYTES - len(head)]
    except DAMAGE as error:
        found.damage = str(error)
    return ArchiveMember(inner, size, digest.hexdigest(), head)


def _content(reader: _ArchiveReader, header: tarfile.TarInfo, path: Path) -> Iterator[bytes]:
    """Bytes of a member, as far as they go; raises at damage."""
    content = reader.extractfile(header) if header.issparse() else reader.fileobj
    if content is None:
        return
    if content is reader.fileobj:
        content.seek(header.offset_data)
    count, limit = 0, path.stat().st_size
    # Not by `extractfile`, which hands out nothing of a piece that is cut off.
    while piece := content.read(min(_PIECE_BYTES, header.size - count)):
        count += len(piece)
        check_inflated(count, limit)
        yield piece
    if count < header.size:
        raise EOFError(f"it ends inside {header.name!r}")


def open_member(path: Path, inner: PurePosixPath) -> BinaryIO:
    """The bytes of a member, as they are in the archive, up to damage.

    Readers seek, which a member of a compressed archive cannot: it is copied, to disk where it is large.

    Raises:
        InputUnusableError: there is no such member, or it is a trap.
    """
    copy = tempfile.SpooledTemporaryFile(max_size=_LARGEST_IN_MEMORY)  # noqa: SIM115 - closed by whoever reads it
    is_found = False
    with closing(_open(path)) as reader:
        try:
            for place, header in _headers(reader, Counter()):
                if place == inner:
                    is_found = True
                    for piece in _content(reader, header, path):
                        copy.write(piece)
                    break
        except _BAD_HEADER:
            # What precedes the damage is there; `archive_at` reports the rest.
            pass
    if not is_found:
        copy.close()
        raise InputUnusableError("the archive has no such member", where=str(path / inner))
    copy.seek(0)
    return cast(BinaryIO, copy)


def copy_members(path: Path, copies: Mapping[PurePosixPath, Path]) -> None:
    """Write the bytes of some members, up to damage, to files; an archive is read once for all of them.

    Raises:
        InputUnusableError: it cannot be opened.
    """
    with closing(_open(path)) as reader:
        try:
            for place, header in _headers(reader, Counter()):
                if place in copies:
                    with copies[place].open("wb") as copy:
                        for piece in _content(reader, header, path):
                            copy.write(piece)
        except _BAD_HEADER:
            # What precedes the damage is there; `archive_at` reports the rest.
            pass


def _open(path: Path) -> _ArchiveReader:
    try:
        raw = path.open("rb")
        content = inflated(raw)
    except OSError as error:
        raise InputUnusableError(f"cannot be read: {error.strerror}", where=str(path)) from error
    try:
        if content is raw:
            return _ArchiveReader.open(fileobj=content, mode="r:", ignore_zeros=True, tarinfo=_MemberHeader)
        # A stream is read forward only, which suits compressed archives.
        return _ArchiveReader.open(fileobj=content, mode="r|", ignore_zeros=True, tarinfo=_MemberHeader)
    except _BAD_HEADER as error:
        content.close()
        raise InputUnusableError("the archive is damaged", where=str(path)) from error
