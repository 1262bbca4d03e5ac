"""Where the rows of raw tables go. In: files that were read. Out: rows in tables, or partitions in their places.

Idea: two ways to keep facts, one face. A database that is a file has tables, into which one process appends; one that
is a folder has partitions, which the readers wrote already and which only need a name and an entry in the catalogue.
Both are called inside the transaction that adds the files, so that facts and `meta.source` never disagree.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from traceforge.store.database import Store
from traceforge.store.folder import Folder, Partition
from traceforge.store.migrations import facts_form
from traceforge.store.partition_writer import PartitionedFile
from traceforge.store.partitions import REGISTRY, view_of
from traceforge.store.spool import SourceRows, Spooled

if TYPE_CHECKING:
    import polars as pl

_RAW_TABLES = """
SELECT table_name FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = 'raw' AND column_name = 'source_id'
  AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE schema_name = 'raw')
"""
_VIEWS = """
SELECT schema_name || '.' || view_name AS name FROM duckdb_views()
WHERE database_name = current_database() AND schema_name = 'raw'
"""


class RowStorage(Protocol):
    """How a database keeps raw rows; all but `settle` inside a transaction."""

    def add(self, first: int, files: Sequence[SourceRows]) -> None:
        """Keep the rows of some files, whose source_id count from `first`; the last thing in the transaction."""

    def remove(self, source_id: int) -> None:
        """Let go of all rows of a source."""

    def settle(self, *, is_committed: bool) -> None:
        """The transaction is over."""


def row_storage(store: Store) -> RowStorage:
    """How this database keeps raw rows."""
    return TablesInFile(store) if store.folder is None else PartitionsInFolder(store, store.folder)


class TablesInFile:
    """Rows in tables of the DuckDB file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, first: int, files: Sequence[SourceRows]) -> None:
        """Append the rows of each."""
        spooled = [file for file in files if isinstance(file, Spooled)]
        for source_id, file in enumerate(spooled, first):
            for table in file.tables:
                paths = sorted((file.folder / table).glob("*.parquet"))
                self._store.append_parquet(table, paths, source_id=source_id)
        for table, rows in _by_table(first, spooled):
            self._store.append(table, rows)

    def remove(self, source_id: int) -> None:
        """Delete them from all tables."""
        for table in self._store.query(_RAW_TABLES)["table_name"]:
            self._store.execute(f"DELETE FROM raw.{table} WHERE source_id = ?", [source_id])

    def settle(self, *, is_committed: bool) -> None:
        """Nothing is left to do."""


class PartitionsInFolder:
    """Rows in Parquet files beside the catalogue."""

    def __init__(self, store: Store, folder: Folder) -> None:
        self._store = store
        self._folder = folder
        self._moved: list[tuple[str, str]] = []
        self._removed: list[str] = []
        self._made: set[str] = set()

    def add(self, first: int, files: Sequence[SourceRows]) -> None:
        """Move their files to where they belong, and register them."""
        import polars as pl

        added: list[Partition] = []
        for source_id, file in enumerate(files, first):
            if isinstance(file, PartitionedFile):
                for one in file.partitions:
                    partition = replace(one, source_id=source_id)
                    self._move(f"{file.folder}{os.sep}{one.table}", partition)
                    added.append(partition)
        if added:
            self._store.append(REGISTRY, pl.DataFrame(added))
            views = set(self._store.query(_VIEWS)["name"])
            new = [one for one in added if one.table not in views]
            self._store.publish_partitions(new)
            for table in dict.fromkeys(one.table for one in new):
                self._store.execute(f"DROP TABLE {table}")
                self._store.create(view_of(facts_form()[table]))

    def remove(self, source_id: int) -> None:
        """Strike its partitions off; a table that has no other is an empty table again."""
        own = [one for one in self._store.partitions() if one.source_id == source_id]
        self._store.execute(f"DELETE FROM {REGISTRY} WHERE source_id = ?", [source_id])
        left = {one.table for one in self._store.partitions()}
        for one in own:
            self._removed += self._folder.parts(one)
            if one.table not in left:
                self._store.execute(f"DROP VIEW {one.table}")
                self._store.create(facts_form()[one.table])

    def settle(self, *, is_committed: bool) -> None:
        """Remove the files that nobody needs any more, or have those back that were moved in vain."""
        if is_committed:
            for path in map(Path, self._removed):
                path.unlink(missing_ok=True)
                with suppress(OSError):
                    path.parent.rmdir()  # if nothing else is in it
        else:
            for before, after in reversed(self._moved):
                os.replace(after, before)  # noqa: PTH105 - texts, as in `_move`
        self._moved, self._removed = [], []

    def _move(self, folder: str, partition: Partition) -> None:
        """Move the folder itself where nothing has its name: disks rename sooner than they make and remove.

        Places are texts, since a `Path` of each of tens of thousands takes seconds.
        """
        places = {place.rpartition(os.sep)[2]: place for place in self._folder.parts(partition)}
        target = next(iter(places.values())).rpartition(os.sep)[0]
        if partition.table not in self._made:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            self._made.add(partition.table)
        with os.scandir(folder) as entries:
            is_whole = {entry.name for entry in entries} == places.keys()
        if is_whole and not os.path.lexists(target):
            moves = [(folder, target)]
        else:
            Path(target).mkdir(exist_ok=True)
            moves = [(f"{folder}{os.sep}{name}", place) for name, place in places.items()]
        for before, after in moves:
            os.replace(before, after)  # noqa: PTH105 - texts, see above
            self._moved.append((before, after))


def _by_table(first: int, files: Sequence[Spooled]) -> "Iterator[tuple[str, pl.DataFrame]]":
    """The rows of some files by table, those of each in order, with their `source_id`, which count from `first`."""
    import numpy as np
    import polars as pl

    frames: dict[tuple[str, ...], list[pl.DataFrame]] = defaultdict(list)
    owners: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for source_id, file in enumerate(files, first):
        for batch in file.batches:
            frames[batch.table, *batch.rows.columns].append(batch.rows)
            owners[batch.table, *batch.rows.columns].append(source_id)
    for key, own in frames.items():
        numbers = np.repeat(np.array(owners[key], np.int32), [frame.height for frame in own])
        rows = pl.concat(own, how="vertical_relaxed", rechunk=False)
        yield key[0], rows.with_columns(source_id=pl.Series(numbers))
