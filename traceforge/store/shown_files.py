"""Which files the views over partitions read. In: partitions, numbers of sources. Out: variables that the views ask.

Idea: of each table one variable holds all files and another those that its view reads now. To read a few sources alone
spares a look at the names of all files, which takes longer than to read a few.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import duckdb

from traceforge.store.folder import Folder, Partition
from traceforge.store.partitions import files_by_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class ShownFiles:
    """The files of one connection."""

    def __init__(self, connection: "DuckDBPyConnection") -> None:
        self._connection = connection
        self._files: dict[str, list[str]] = {}
        self._sources: dict[str, list[int]] = {}  # of each table, the source of each of its files, in order

    @property
    def files(self) -> Mapping[str, Sequence[str]]:
        """All files of each table."""
        return self._files

    def publish(self, folder: Folder, partitions: Sequence[Partition]) -> None:
        """Have the views over partitions, and those that are made now, read these files."""
        for table, found in files_by_table(folder, partitions).items():
            self._sources[table] = [source_id for source_id, _ in found]
            self._files[table] = [file for _, file in found]
            self._connection.execute(f'SET VARIABLE "all {table}" = ?', [self._files[table]])
            self._choose(table, "")

    @contextmanager
    def narrowed(self, first_source_id: int, last_source_id: int) -> Iterator[None]:
        """Have them read the files of some sources alone; of a table that has none of these, one other file."""
        try:
            for table, sources in self._sources.items():
                start = min(bisect_left(sources, first_source_id), len(sources) - 1)
                end = max(bisect_right(sources, last_source_id), start + 1)
                self._choose(table, f"[{start + 1}:{end}]")
            yield
        finally:
            with suppress(duckdb.TransactionException):  # an error has ended it: whoever undoes it shows all again
                self.show_all()

    def show_all(self) -> None:
        """Have them read all files."""
        for table in self._sources:
            self._choose(table, "")

    def _choose(self, table: str, part: str) -> None:
        self._connection.execute(f"""SET VARIABLE "{table}" = getvariable('all {table}'){part}""")
