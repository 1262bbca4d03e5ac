"""Partitions in a catalogue. In: a connection that has it attached. Out: what is registered, and views over the files.

Idea: a raw table of a folder database is an empty table until a source has rows in it, and from then on a view over
the files of all sources. The view names no path: it asks a variable, which is set when the database is opened. So a
folder may be moved, copied or read-only, and the text of the view is always the same, which tells it from any other.
The number of a source is in the name of its folder, by which DuckDB leaves out files that a query does not ask for.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from traceforge.errors import InputUnusableError
from traceforge.store.damage import first_unreadable
from traceforge.store.documents import Document
from traceforge.store.folder import Folder, Partition
from traceforge.store.migrations import facts_form
from traceforge.store.trust import Relations, Run

REGISTRY = "main.traceforge_partition"
_CREATE = f"""
CREATE TABLE IF NOT EXISTS {REGISTRY} (
  source_id INTEGER NOT NULL,
  "table" VARCHAR NOT NULL,
  mark VARCHAR NOT NULL,
  part_count INTEGER NOT NULL,
  row_count BIGINT NOT NULL,
  size_bytes BIGINT NOT NULL
);
COMMENT ON TABLE {REGISTRY} IS 'One row a source and raw table whose rows lie in Parquet files below facts/.';
COMMENT ON COLUMN {REGISTRY}.source_id IS 'Joins meta.source.source_id.';
COMMENT ON COLUMN {REGISTRY}."table" IS 'The raw table.';
COMMENT ON COLUMN {REGISTRY}.mark IS 'First digits of the content hash of the source; begins the names of the files.';
COMMENT ON COLUMN {REGISTRY}.part_count IS 'Number of files.';
COMMENT ON COLUMN {REGISTRY}.row_count IS 'Rows in all of them.';
COMMENT ON COLUMN {REGISTRY}.size_bytes IS 'Size of all of them on disk, bytes.';
"""
_COLUMNS = """
SELECT column_name, data_type FROM duckdb_columns()
WHERE database_name = '{catalog}' AND schema_name || '.' || table_name = '{name}' AND table_oid IN (
  SELECT table_oid FROM duckdb_tables() WHERE database_name = '{catalog}'
)
ORDER BY column_index
"""
_REGISTERED = [
    ("source_id", "INTEGER"), ("table", "VARCHAR"), ("mark", "VARCHAR"), ("part_count", "INTEGER"),
    ("row_count", "BIGINT"), ("size_bytes", "BIGINT"),
]  # fmt: skip
_FORMS = """
SELECT MIN(file_name), COUNT(*) FROM (
  SELECT file_name, STRING_AGG(CONCAT_WS(' ', name, type, converted_type, logical_type), ',' ORDER BY name) AS form
  FROM parquet_schema(GETVARIABLE('{name}')) GROUP BY file_name
) GROUP BY form ORDER BY 1
"""


def create_registry(run: Run) -> None:
    """Make the table of partitions in the default catalogue, where it is missing."""
    run(_CREATE)


def checked_partitions(
    run: Run, catalog: str, found: Relations, folder: Folder | None, applied: int | None, file: Path | None
) -> list[Partition]:
    """The partitions of a folder, all there as they were written; none of a file.

    Args:
        run: on the connection that has the catalogue attached, but not as its default.
        found: what the catalogue holds.
        applied: its newest migration; None where it is new.
        file: the file that is attached.

    Raises:
        InputUnusableError: something is missing or not of ours; or the file is the catalogue of a folder.
    """
    if folder is None:
        if found.kinds.get(REGISTRY) == "table":
            hint = f"name the folder: {file.parent if file else ''}"
            raise InputUnusableError("this is the catalogue of a folder database", where=str(file), hint=hint)
        return []
    partitions = [] if applied is None else registered(run, catalog, folder.path)
    folder.check(partitions, facts_form(applied))
    return partitions


def registered(run: Run, catalog: str, path: Path) -> list[Partition]:
    """All partitions that an attached catalogue names, by table and source.

    Raises:
        InputUnusableError: it has no such table, or one of another form.
    """
    columns = run(_COLUMNS.format(catalog=catalog, name=REGISTRY))
    if columns != _REGISTERED:
        what = "this database is not as traceforge makes it: its catalogue names no partitions"
        raise InputUnusableError(what, where=str(path), hint="ingest the traces into a new database")
    names = ", ".join(f'"{field.name}"' for field in fields(Partition))
    return [Partition(*row) for row in run(f'SELECT {names} FROM {catalog}.{REGISTRY} ORDER BY "table", source_id')]


def view_of(document: Document) -> Document:
    """The view that stands for a raw table as soon as there are partitions of it."""
    names = ", ".join(f'"{name}"' for name in document.columns)
    others = ", ".join(f'"{name}"' for name in document.columns if name != "source_id")
    query = (
        f"SELECT CAST(source_id AS INTEGER) AS source_id, {others} FROM read_parquet(getvariable('{document.name}'))"
    )
    return replace(document, kind="VIEW", statement=f"CREATE VIEW {document.name} ({names}) AS {query}")


def views_over(partitions: Iterable[Partition], applied: int) -> dict[str, Document]:
    """The views that stand for raw tables of which there are partitions, by name."""
    form = facts_form(applied)
    return {name: view_of(form[name]) for name in sorted({one.table for one in partitions})}


def files_by_table(folder: Folder, partitions: Iterable[Partition]) -> dict[str, list[tuple[int, str]]]:
    """All files by table, each with its source, in the order of sources."""
    files: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for one in sorted(partitions, key=lambda one: one.source_id):
        files[one.table] += [(one.source_id, path) for path in folder.parts(one)]
    return dict(files)


def check_columns(run: Run, folder: Folder, partitions: Sequence[Partition], applied: int | None) -> None:
    """Refuse files that hold other columns than their table; the variables must be set.

    Raises:
        InputUnusableError: one has other columns or types, or is no Parquet file.
    """
    import duckdb

    form, files = facts_form(applied), files_by_table(folder, partitions)
    for name in sorted({one.table for one in partitions}):
        expected = [(column, kind) for column, kind in form[name].types.items() if column != "source_id"]
        try:
            # Of each form that occurs, one file is described: all files of a job have one form, or two.
            for file, _ in run(_FORMS.format(name=name)):
                literal = str(file).replace("'", "''")
                described = run(f"DESCRIBE SELECT * FROM read_parquet('{literal}', hive_partitioning = 0)")
                if [(column, kind) for column, kind, *_ in described] != expected:
                    _refuse(str(file), f"it has other columns than {name}")
        except duckdb.Error as error:
            if damage := first_unreadable({name: [path for _, path in files[name]]}):
                raise damage from error
            reason = " ".join(str(error).split())[:200]
            _refuse(str(folder.path), f"files of {name} cannot be read: {reason}")


def refuse_changed_form(partitions: Iterable[Partition], applied: int | None, path: Path | None) -> None:
    """Stop where raw tables look otherwise now than when partitions of them were written, which stay as they are.

    Raises:
        InputUnusableError: a migration changes a table that has partitions.
    """
    before, now = facts_form(applied), facts_form()
    for name in sorted({one.table for one in partitions}):
        if name not in now or now[name].types != before[name].types:
            what = f"an older traceforge wrote its partitions, and {name} has other columns now"
            raise InputUnusableError(what, where=str(path), hint="ingest the traces into a new folder")


def _refuse(where: str, what: str) -> None:
    raise InputUnusableError(
        f"this database is not as traceforge makes it: {what}",
        where=where,
        hint="ingest the traces into a new database",
    )
