"""A trace database as a folder. In: its path. Out: where its catalogue and partitions lie, and whether all is plain.

    job42/catalogue.duckdb                                             everything but raw tables
    job42/facts/raw.event_kind/source_id=3/9f86d081884c7d65-000000.parquet    one source's rows of one raw table

Idea: a partition's files are named by the hash of the file that they come from and counted, so that every path follows
from numbers that the catalogue holds, and never from a text of it. Whatever bears another name is not ours and stays.
Not handled: links and other special files below `facts/`, which are refused, since they lead out of the folder.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from traceforge.errors import InputUnusableError
from traceforge.files import CATALOGUE

_FACTS = "facts"
_MAGIC = b"DUCK"
_MARK = re.compile(r"[0-9a-f]{16}")
_PART = re.compile(r"facts/(raw\.[a-z][a-z_0-9]*)/source_id=(0|[1-9][0-9]{0,9})/([0-9a-f]{16})-([0-9]{6})\.parquet")
_PATTERNS = frozenset("*?[")
_MOST_PARTS = 10**6


@dataclass(frozen=True, slots=True)
class Partition:
    """The rows of one source in one raw table.

    Attributes:
        source_id: joins meta.source.source_id.
        table: such as `raw.occurrence`.
        mark: begins the names of its files, so that they differ from those of a former source of this number.
        part_count: number of files.
        row_count: rows in all of them.
        size_bytes: size of all of them on disk.
    """

    source_id: int
    table: str
    mark: str
    part_count: int
    row_count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder database; it need not exist yet.

    Attributes:
        path: absolute.
    """

    path: Path

    @property
    def catalogue(self) -> Path:
        """The DuckDB file with everything but the raw tables."""
        return self.path / CATALOGUE

    @property
    def facts(self) -> Path:
        """The folder of all partitions."""
        return self.path / _FACTS

    def parts(self, partition: Partition) -> list[str]:
        """The files of a partition, in order; as texts, since a `Path` of each of tens of thousands takes seconds."""
        folder = f"{self.path}{os.sep}{_FACTS}{os.sep}{partition.table}{os.sep}source_id={partition.source_id}"
        return [f"{folder}{os.sep}{part_name(partition.mark, number)}" for number in range(partition.part_count)]

    def check_name(self, columns: frozenset[str]) -> None:
        """Refuse a place whose name DuckDB would take for a pattern, or for the value of a column.

        Raises:
            InputUnusableError: it has such a name.
        """
        keys = {part.partition("=")[0].lower() for part in self.path.parts if "=" in part}
        if _PATTERNS & set(str(self.path)) or keys & columns:
            what = "a folder database cannot lie in a folder with *, ?, [ or `column=` in its name"
            raise InputUnusableError(what, where=str(self.path), hint="rename that folder, or choose another place")

    def sizes(self) -> dict[str, int]:
        """Size on disk of every file below `facts/`.

        Raises:
            InputUnusableError: something there is neither a plain file nor a folder.
        """
        if not os.path.lexists(self.facts):
            return {}
        if self.facts.is_symlink() or not self.facts.is_dir():
            _refuse(self.path, f"{_FACTS} is no folder of its own")
        return dict(self._walk(str(self.facts)))

    def check_catalogue(self) -> None:
        """Refuse a catalogue that is no plain file.

        Raises:
            InputUnusableError: it is a link, say.
        """
        _plain_size(str(self.catalogue), self.catalogue.lstat(), self.path)

    def _walk(self, folder: str) -> Iterator[tuple[str, int]]:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._walk(entry.path)
                else:
                    yield entry.path, _plain_size(entry.path, entry.stat(follow_symlinks=False), self.path)

    def check(self, partitions: list[Partition], tables: Mapping[str, object]) -> None:
        """Refuse partitions that are not there as they were written.

        Args:
            partitions: those that the catalogue names.
            tables: the raw tables there are.

        Raises:
            InputUnusableError: one is missing, has another size, or has numbers that none of ours has.
        """
        sizes = self.sizes()
        for one in partitions:
            is_sane = one.table in tables and one.source_id >= 0 and 0 < one.part_count <= _MOST_PARTS
            if not is_sane or not _MARK.fullmatch(one.mark):
                _refuse(self.path, "its catalogue names partitions that traceforge never writes")
            found = [sizes.get(part) for part in self.parts(one)]
            if None in found or sum(size or 0 for size in found) != one.size_bytes:
                what = f"the partition of source {one.source_id} in {one.table} is missing or not whole"
                hint = "copy the folder again as a whole, or ingest the traces into a new one"
                raise InputUnusableError(what, where=str(self.path), hint=hint)

    def sweep(self, partitions: list[Partition]) -> None:
        """Remove files of ours that belong to no partition: what a killed ingest left behind."""
        known = {part for one in partitions for part in self.parts(one)}
        for path in map(Path, self.sizes().keys() - known):
            if _PART.fullmatch(path.relative_to(self.path).as_posix()):
                path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    path.parent.rmdir()  # if nothing else is in it

    def size_bytes(self) -> int:
        """Size of the catalogue and all partitions on disk."""
        return self.catalogue.stat().st_size + sum(self.sizes().values())


def part_name(mark: str, number: int) -> str:
    """Name of one file of a partition."""
    return f"{mark}-{number:06}.parquet"


def mark_of(content_hash: str) -> str:
    """What begins the names of a source's files."""
    return content_hash[:16]


def is_folder_name(path: Path | str | None) -> bool:
    """Whether a path means a folder database: it ends in `/`, or there is one."""
    if path is None:
        return False
    ends = (os.sep, os.altsep) if os.altsep else (os.sep,)
    return (isinstance(path, str) and path.endswith(ends)) or is_folder_database(Path(path))


def is_folder_database(path: Path) -> bool:
    """Whether there is a folder with a catalogue."""
    return os.path.lexists(path / CATALOGUE)


def is_database(path: Path) -> bool:
    """Whether there is a trace database: a DuckDB file, by its content, or a folder with a catalogue.

    Raises:
        InputUnusableError: the file cannot be read.
    """
    if path.is_dir():
        return is_folder_database(path)
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return _MAGIC in file.read(16)
    except OSError as error:
        raise InputUnusableError(f"cannot be read: {error.strerror}", where=str(path)) from error


def is_writable(path: Path) -> bool:
    """Whether a database that is there may be changed."""
    file, folder = (path / CATALOGUE, path) if path.is_dir() else (path, path.parent)
    return os.access(file, os.W_OK) and os.access(folder, os.W_OK)


def _plain_size(path: str, state: os.stat_result, database: Path) -> int:
    """Size of a plain file; refuses anything else, which would lead out of the database."""
    if not stat.S_ISREG(state.st_mode):
        _refuse(database, f"{os.path.relpath(path, database)} is no plain file")
    return state.st_size


def _refuse(database: Path, what: str) -> None:
    raise InputUnusableError(
        f"this database is not as traceforge makes it: {what}",
        where=str(database),
        hint="ingest the traces into a new database",
    )
