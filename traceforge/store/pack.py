"""From folder to file and back. In: an open database, and a new one of the other form. Out: the new one holds the same.

Idea: what stands in `meta` is copied, raw rows change their form source by source, and the tables of the stages are
copied in build order, so that nothing is computed anew and memory stays that of one source.
Not handled: tables that others put into the database; they are not ours and stay behind.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traceforge.records import SourceSummary
from traceforge.store.database import Store
from traceforge.store.documents import Document
from traceforge.store.facts import row_storage
from traceforge.store.folder import Folder, Partition, mark_of, part_name
from traceforge.store.migrations import facts_form
from traceforge.store.partition_writer import PartitionedFile
from traceforge.store.places import link_or_copy, own_folder
from traceforge.store.stage import stage_documents

_SOURCES = "SELECT source_id, kind, content_hash FROM meta.source ORDER BY source_id"
_TYPES = """
SELECT column_name, data_type FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name || '.' || table_name = ?
"""
_SCHEMAS = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database()"


def copy_database(old: Store, new: Store, stages: Sequence[str]) -> None:
    """Copy everything that is ours into a new database.

    Args:
        old: at the newest schema.
        new: of the other form, empty.
        stages: packages of the stages, in build order.
    """
    with new.transaction():
        for name, document in facts_form().items():
            if document.kind == "TABLE" and name.startswith("meta."):
                new.execute(f"DELETE FROM {name}")
                new.append_from(old, name)
    if old.folder is not None:
        _into_tables(old.partitions(), old.folder, new)
    else:
        _into_partitions(old, new)
    new.publish_partitions(new.partitions())
    there = set(old.query(_SCHEMAS)["schema_name"])
    with new.transaction():
        for package in stages:
            if package.rpartition(".")[2] in there:
                _copy_stage(old, new, package)


def _into_tables(partitions: Sequence[Partition], folder: Folder, new: Store) -> None:
    with own_folder(new.scratch) as scratch:
        for one in sorted(partitions, key=lambda one: (one.source_id, one.table)):
            files = [_linked(path, scratch) for path in folder.parts(one)]
            with new.transaction():
                new.append_parquet(one.table, files, source_id=one.source_id)
            for file in files:
                file.unlink()


def _linked(file: str, scratch: Path) -> Path:
    """The same file in the scratch folder, the only one that the other database may read."""
    path = Path(file)
    link_or_copy(path, scratch / path.name)
    return scratch / path.name


def _into_partitions(old: Store, new: Store) -> None:
    tables = [name for name, form in facts_form().items() if form.kind == "TABLE" and name.startswith("raw.")]
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    for table in tables:
        for source_id, count in old.query(f"SELECT source_id, COUNT(*) FROM {table} GROUP BY ALL").iter_rows():
            counts[source_id][table] = count
    storage = row_storage(new)
    with own_folder(new.scratch) as scratch:
        for source_id, kind, content_hash in old.query(_SOURCES).iter_rows():
            mark, folder = mark_of(content_hash), scratch / str(source_id)
            partitions = tuple(
                _written(old, source_id, table, folder, mark, count) for table, count in counts[source_id].items()
            )
            summary = SourceSummary(kind, None, None, None, 0, 0)
            with new.transaction():
                storage.add(source_id, [PartitionedFile(summary, folder, partitions, 0)])
            storage.settle(is_committed=True)


def _written(old: Store, source_id: int, table: str, folder: Path, mark: str, count: int) -> Partition:
    path = folder / table / part_name(mark, 0)
    path.parent.mkdir(parents=True)
    names = ", ".join(f'"{name}"' for name in facts_form()[table].columns if name != "source_id")
    old.write_parquet(f"SELECT {names} FROM {table} WHERE source_id = {source_id:d}", path)
    return Partition(source_id, table, mark, 1, count, path.stat().st_size)


def _copy_stage(old: Store, new: Store, package: str) -> None:
    new.execute(f"CREATE SCHEMA {package.rpartition('.')[2]}")
    for document in stage_documents(package):
        if document.kind != "TABLE":
            new.create(document)
            continue
        new.create(_declared(old, document))
        new.append_from(old, document.name)


def _declared(old: Store, document: Document) -> Document:
    """The table without the query that fills it, in the types that it has."""
    if "\n) AS" not in document.statement:
        return document
    types = dict(old.query(_TYPES, [document.name]).rows())
    columns = ", ".join(f'"{name}" {types[name]}' for name in document.columns)
    return replace(document, statement=f"CREATE TABLE {document.name} ({columns})")
