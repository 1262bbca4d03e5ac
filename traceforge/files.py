"""Bytes on disk. In: paths as users type them. Out: files in a stable order, their bytes, their content hash.

Compression (see `inflate`) and archives (see `archives`) are recognised by content, never by name. A member of an
archive is addressed as if the archive were a folder: `job.tar.gz/rank0.json`. Folders are walked in sorted order, each
real file once. A folder that a profiler exported with one Parquet file a table counts as one file; its bytes are the
list of its tables.
Not handled: such tables at the top of an archive, outside of any folder.
"""

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from traceforge.archives import HEAD_BYTES, Archive, ArchiveMember, archive_at, copy_members, is_archive, open_member
from traceforge.errors import InputUnusableError
from traceforge.inflate import DAMAGE, inflated

CATALOGUE = "catalogue.duckdb"
"""What lies in a folder that is a trace database."""
FOLDER_OF_PARTS = "parts"
"""What lies in a folder that will be one, once the parts of a job array are merged."""
TABLE_LIST = b"Parquet tables:\n"
"""With what the list of a folder's tables begins."""
_TEXTS_TABLE = "StringIds.parquet"  # what no export of Nsight Systems lacks
_TABLE = ".parquet"
_PIECE_BYTES = 65_536
_MOST_SEARCHED_BYTES = 64 * 1024 * 1024
_LONGEST_LINE_START = 1024
_NUMBER = re.compile(r"(\d+)")


def find_files(paths: Iterable[Path]) -> list[Path]:
    """All regular files under the given files, folders and archives, without repeats or hidden files.

    They are sorted as people count (`rank2` before `rank10`), so that ranks that follow one another are stored so.

    Links to folders are not followed, so a loop cannot occur; links inside archives are not files.

    Raises:
        InputUnusableError: a path does not exist.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        check_exists(path)
        for entry in _walk(path):
            if entry.is_dir():
                found.setdefault(entry.resolve(), entry)
            elif entry.is_file():
                for file in _members(entry):
                    found.setdefault(file.resolve(), file)
    return sorted(found.values(), key=_counted)


def _counted(path: Path) -> tuple[list[list[int | str]], Path]:
    """By what paths are sorted: texts and numbers by turns, of each part."""
    parts = [[int(piece) if n % 2 else piece for n, piece in enumerate(_NUMBER.split(part))] for part in path.parts]
    return parts, path


def find_special(paths: Iterable[Path]) -> list[tuple[Path, str]]:
    """What `find_files` passes over under the same paths because it is no regular file, with what it is."""
    return [(entry, kind) for path in paths for entry in _walk(path) if not entry.is_file() and (kind := _kind(entry))]


def _kind(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError:
        return "link to nothing"
    kinds = {stat.S_IFIFO: "named pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}
    return kinds.get(stat.S_IFMT(mode), "")


def check_exists(path: Path) -> None:
    """Refuse a path at which there is nothing.

    Raises:
        InputUnusableError: it does not exist.
    """
    if not path.exists():
        hint = "check the name, and the folder you are in"
        raise InputUnusableError("no such file or folder", where=str(path), hint=hint)


def shown_names(given: Iterable[Path]) -> Callable[[Path], str]:
    """Files' names in databases and reports: from the folder that the user gave, without what lies above it.

    Each is found once, since to follow the links of a path takes long.
    """
    # Of many files of one folder, that folder once.
    folders = list(dict.fromkeys(path.resolve() if path.is_dir() else path.resolve().parent for path in given))

    @cache
    def shown(file: Path) -> str:
        whole = file.resolve()
        folder = next((one for one in folders if whole.is_relative_to(one)), None)
        return as_text(Path(file.name) if folder is None else Path(folder.name) / whole.relative_to(folder))

    return shown


def as_text(name: Path | str) -> str:
    """A name as valid Unicode: bytes of it that are no UTF-8 become escapes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _walk(path: Path) -> Iterator[Path]:
    """A path that is no folder, or all that lies below it and is neither a folder nor hidden nor of a database.

    Of folders those are named that hold tables, in the place of these.
    """
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        inner = (name for name in folders if not name.startswith("."))
        folders[:] = sorted(name for name in inner if not Path(folder, name, CATALOGUE).exists())
        has_tables = _TEXTS_TABLE in names
        if has_tables:
            yield Path(folder)
        for name in sorted(names):
            if not name.startswith(".") and not (has_tables and name.endswith(_TABLE)):
                yield Path(folder, name)


def _members(file: Path) -> list[Path]:
    """The members of an archive, or the file itself."""
    try:
        with inflated(_open_raw(file)) as content:
            paths = [member.path for member in archive_at(file).members] if is_archive(content) else []
    except InputUnusableError:
        paths = []
    of_tables = {path.parent for path in paths if path.name == _TEXTS_TABLE and path.parent.name}
    places = [path.parent if path.suffix == _TABLE and path.parent in of_tables else path for path in paths]
    return [file / place for place in dict.fromkeys(places)] or [file]


def tables_of(folder: Path) -> dict[str, Path]:
    """The tables of a folder that holds some, by name; also where it lies in an archive. Else none."""
    if folder.is_file():
        return {}
    archive, inner = _split(folder)
    if inner is not None:
        found = [archive / member.path for member in archive_at(archive).members if member.path.parent == inner]
    else:
        found = [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []
    tables = {path.name.removesuffix(_TABLE): path for path in sorted(found) if path.name.endswith(_TABLE)}
    return tables if folder / _TEXTS_TABLE in tables.values() else {}


@contextmanager
def plain_tables(folder: Path) -> Iterator[dict[str, Path]]:
    """The tables of a folder as files with plain names: those of an archive are copied, others linked."""
    tables = tables_of(folder)
    archive, inner = _split(folder)
    with tempfile.TemporaryDirectory(prefix="traceforge-") as scratch:
        places = {name: Path(scratch, f"{number}{_TABLE}") for number, name in enumerate(tables)}
        if inner is None:
            for name, place in places.items():
                place.symlink_to(tables[name].resolve())
        else:
            members = {PurePosixPath(path.relative_to(archive)): places[name] for name, path in tables.items()}
            copy_members(archive, members)
        yield places


def _member_at(path: Path) -> ArchiveMember | None:
    """The member of an archive that a path names; None where it names a file.

    Raises:
        InputUnusableError: the archive has no such member.
    """
    archive, inner = _split(path)
    if inner is None:
        return None
    for member in archive_at(archive).members:
        if member.path == inner:
            return member
    raise InputUnusableError("the archive has no such member", where=str(path))


def is_member(path: Path) -> bool:
    """Whether a path names a member of an archive."""
    return _split(path)[1] is not None


def archives_of(files: Iterable[Path]) -> dict[Path, Archive]:
    """What is in the archives that some of the files are members of."""
    archives = sorted({archive for archive, inner in map(_split, files) if inner is not None})
    return {path: archive_at(path) for path in archives}


def size_bytes(path: Path) -> int:
    """Size of a file on disk, or of a member inside its archive; of a folder of tables that of all of them."""
    if tables := tables_of(path):
        return sum(map(size_bytes, tables.values()))
    member = _member_at(path)
    return path.stat().st_size if member is None else member.size_bytes


def open_bytes(path: Path) -> BinaryIO:
    """The decompressed bytes of a file, or of a member of an archive.

    Raises:
        InputUnusableError: the file cannot be opened.
    """
    if tables := tables_of(path):
        return BytesIO(_list_of(tables))
    archive, inner = _split(path)
    return inflated(_open_raw(path) if inner is None else open_member(archive, inner))


def _list_of(tables: Iterable[str]) -> bytes:
    return TABLE_LIST + "".join(f"{name}\n" for name in sorted(tables)).encode("utf-8", "backslashreplace")


def _split(path: Path) -> tuple[Path, PurePosixPath | None]:
    """The archive and the place in it, where a parent of the path is a file; else the path itself."""
    # Where the next parent is a folder, none above it is a file.
    for parent in () if path.parent.is_dir() else path.parents:
        if parent.is_file():
            return parent, PurePosixPath(path.relative_to(parent))
    return path, None


def _open_raw(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputUnusableError(
            f"cannot be read: {error.strerror}", where=str(path), hint="check the file's permissions"
        ) from error


def read_head(path: Path, most: int = HEAD_BYTES) -> bytes:
    """The first 256 KiB (or so many) of the decompressed bytes; what could be decompressed of a damaged file."""
    pieces: list[bytes] = []
    size = 0
    if tables := tables_of(path):
        return _list_of(tables)[:most]
    member = _member_at(path)
    with open_bytes(path) if member is None else inflated(BytesIO(member.head)) as stream:
        # `read1` hands out what precedes damage; `read` would lose it with the damage.
        read_piece = getattr(stream, "read1", stream.read)
        try:
            while size < most and (piece := read_piece(min(_PIECE_BYTES, most - size))):
                pieces.append(piece)
                size += len(piece)
        except DAMAGE:
            # A damaged file is judged by what precedes the damage; the source reports where it ends.
            pass
    return b"".join(pieces)


def read_around(path: Path, marks: Sequence[bytes]) -> bytes:
    """256 KiB from the first line on that holds one of some texts, which may stand far behind the head; else empty."""
    pattern = re.compile(b"|".join(map(re.escape, marks)))
    longest = max(map(len, marks))
    window, searched = b"", 0
    with open_bytes(path) as stream:
        try:
            while searched < _MOST_SEARCHED_BYTES and (piece := stream.read(HEAD_BYTES)):
                window = window[-_LONGEST_LINE_START - longest :] + piece
                searched += len(piece)
                if found := pattern.search(window):
                    return window[window.rfind(b"\n", 0, found.start()) + 1 :] + stream.read(HEAD_BYTES)
        except DAMAGE:
            pass
    return b""


def content_hash(path: Path) -> str:
    """SHA-256 (hex) of a file as it lies on disk: cheap, and enough to know an unchanged file again.

    A member of an archive is hashed by its content, a folder of tables by the names and hashes of these.
    """
    if tables := tables_of(path):
        listed = [f"{name} {content_hash(table)}" for name, table in tables.items()]
        return hashlib.sha256("\n".join(listed).encode("utf-8", "backslashreplace")).hexdigest()
    if (member := _member_at(path)) is not None:
        return member.content_hash
    with _open_raw(path) as stream:
        digest = hashlib.sha256()
        while piece := stream.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
