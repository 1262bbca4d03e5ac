"""One part of some tables. In: a task, which names files. Out: the same tables for these ranks alone, as Parquet files.

Runs in a worker, which shares nothing with the process that asks but a file system. Idea: a table in parts is made from
its part of the events and from small tables. So a worker makes a database in memory whose raw tables are views of the
files of a few sources, whose other tables are views of Parquet files, and whose table of parts has one row: in it the
code of a stage makes these rows as it makes all of them elsewhere. What a table does not say it reads is not there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceforge.store.database import Store
from traceforge.store.documents import Document
from traceforge.store.migrations import facts_form
from traceforge.store.partitions import view_of
from traceforge.store.stage import make_table


@dataclass(frozen=True, slots=True)
class PartTask:
    """A part of some tables of a stage, to be made by a worker.

    Attributes:
        package: of the stage, such as `traceforge.timeline`.
        documents: of the tables, in build order; all in the same parts.
        values: the row of the table of parts.
        folder: for the rows, of its own; need not exist, but the one above it must.
        views: views and macros that the tables ask, in build order.
        tables: Parquet files of each table that they read.
        facts: of each raw table that they read the files of this part, as partitions; perhaps none. They are texts,
            since a `Path` of each of tens of thousands takes seconds.
        readable: folders in which all these files lie.
    """

    package: str
    documents: tuple[Document, ...]
    values: Mapping[str, object]
    folder: Path
    views: tuple[Document, ...]
    tables: Mapping[str, Sequence[Path]]
    facts: Mapping[str, list[str]]
    readable: tuple[Path, ...]

    @property
    def files(self) -> list[Path]:
        """All files that are read."""
        facts = [Path(file) for files in self.facts.values() for file in files]
        return [*(path for files in self.tables.values() for path in files), *facts]


@dataclass(frozen=True, slots=True)
class MadePart:
    """Rows of a part.

    Attributes:
        files: the file of each table.
        sizes_bytes: of each file.
    """

    files: Mapping[str, Path]
    sizes_bytes: Mapping[str, int]


def make_part(task: PartTask) -> MadePart:
    """Make the rows of a part. Runs in a worker.

    Raises:
        QueryError: a table cannot be made, for example from one that it does not say it reads.
        OSError: there is no room for them.
    """
    # Parents are not made: once an interrupted job has removed the folder of all parts, nothing shall bring it back.
    task.folder.mkdir()
    files = {document.name: task.folder / f"{document.name}.parquet" for document in task.documents}
    with Store(None, is_kept=False, threads=1, readable=task.readable) as store, store.keeping():
        _show_inputs(store, task)
        for document in task.documents:
            make_table(store, task.package, document)
            store.execute(f"COPY {document.name} TO {_literal(files[document.name])} (FORMAT PARQUET)")
    return MadePart(files, {name: path.stat().st_size for name, path in files.items()})


def _show_inputs(store: Store, task: PartTask) -> None:
    names = [*task.facts, *task.tables, *(one.name for one in (*task.views, *task.documents))]
    for schema in sorted({name.partition(".")[0] for name in names}):
        store.execute(f"CREATE SCHEMA {schema}")
    for name, value in task.values.items():
        store.execute(f"SET VARIABLE {name} = ?", [value])
    for name, partitions in task.facts.items():
        document = facts_form()[name]
        if partitions:
            store.execute(f'SET VARIABLE "{name}" = ?', [partitions])
        store.create(view_of(document) if partitions else document)
    parts = task.documents[0].parts
    for name, files in task.tables.items():
        only = [f"{column} = GETVARIABLE('{column}')" for column in task.values] if name == parts else []
        store.execute(f"CREATE VIEW {name} AS {rows_of(files)} {'WHERE ' if only else ''}{' AND '.join(only)}")
    for document in task.views:
        store.create(document)


def rows_of(files: Sequence[Path]) -> str:
    """The query of all rows of Parquet files, in their order."""
    listed = ", ".join(map(_literal, files))
    return f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false)"


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
