"""Building a stage. In: a stage's folder of `.sql` and `.py` files. Out: its schema, rebuilt from scratch.

A file `x.sql` with a query makes the table by itself. A file `x.sql` that only declares columns is filled by the
`rows(store)` function of the module `x.py` beside it, which gives a list of tuples of all columns that the file
declares, or one frame or several by name; types are those of the file. Each is built after what it reads; all in one
transaction. What several modules need of a run, such as its model, they ask for by `store.once(load_model, run_id)`: it
is computed once.
A table in parts is filled by its query once for each row of the table of its parts; tables of the same parts that
follow one another may be made by workers, a part of all of them at a time (see `part_workers`).
"""

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Protocol

from traceforge.store.database import Store
from traceforge.store.documents import Document, load_folder

OnTable = Callable[[str, float], None]
"""Called with the name of a table, and which share of its stage's tables are made already."""


def stage_documents(package: str) -> list[Document]:
    """The documented tables and views of a stage such as `traceforge.timeline`, in build order."""
    (folder,) = map(Path, importlib.import_module(package).__path__)
    return load_folder(folder, package.rpartition(".")[2])


class PartMaker(Protocol):
    """Has others make tables in parts."""

    def make(self, package: str, documents: Sequence[Document], on_share: Callable[[float], None]) -> bool:
        """Make tables of a stage that are in the same parts; false where they are better made here.

        Args:
            on_share: called with the share of the parts that are made.
        """


def build_stage(
    store: Store,
    package: str,
    on_table: OnTable | None = None,
    workers: PartMaker | None = None,
    documents: Sequence[Document] | None = None,
) -> None:
    """Drop a stage's schema and build it again from what lies below it.

    Args:
        documents: those of the stage, where they are loaded already.
        on_table: called before each table is made, and while workers make some.
        workers: make tables in parts; None has all made here.

    Raises:
        PluginError: a file of the stage does not keep the form.
    """
    schema = package.rpartition(".")[2]
    documents = stage_documents(package) if documents is None else documents
    with store.transaction(), store.keeping():
        store.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        store.execute(f"CREATE SCHEMA {schema}")
        store.execute("DELETE FROM meta.issue WHERE stage = ?", [schema])
        made = 0
        for parts, group in groupby(documents, key=lambda document: document.parts):
            tables = list(group)
            on_share = partial(_say, on_table, [one.name for one in tables], made, len(documents))
            on_share(0.0)
            if parts is None or workers is None or not workers.make(package, tables, on_share):
                for place, document in enumerate(tables):
                    on_share(place / len(tables))
                    make_table(store, package, document)
                    store.release_beyond()
            made += len(tables)


def _say(on_table: OnTable | None, tables: Sequence[str], made: int, count: int, share: float) -> None:
    """Say which of some tables is next, of which such a share is made, after `made` of `count` tables of the stage."""
    if on_table is not None and share < 1.0:
        on_table(tables[int(share * len(tables))], (made + share * len(tables)) / count)


def make_table(store: Store, package: str, document: Document) -> None:
    """Make one table or view of a stage from those that it reads."""
    if document.parts is not None and document.query is not None:
        _create_in_parts(store, document, document.parts)
        return
    store.create(document)
    if document.kind == "TABLE" and document.query is None:
        module = importlib.import_module(f"{package}.{document.name.rpartition('.')[2]}")
        rows = module.rows(store)
        if isinstance(rows, list):
            import polars as pl

            types = store.query(f"SELECT * FROM {document.name} LIMIT 0").schema
            rows = pl.DataFrame(rows, schema=types, orient="row")
        for frame in [rows] if hasattr(rows, "columns") else rows:
            store.append(document.name, frame)


def _create_in_parts(store: Store, document: Document, parts: str) -> None:
    """Make a table by its query for each row of the table of its parts; the first one gives it its types."""
    names = [name for (name,) in store.rows(f"SELECT column_name FROM (DESCRIBE {parts})")]
    first, *others = store.rows(f"SELECT * FROM {parts} ORDER BY ALL") or [(None,) * len(names)]
    for part in (first, *others):
        for name, value in zip(names, part, strict=True):
            store.execute(f"SET VARIABLE {name} = ?", [value])
        files = dict(zip(names, part, strict=True))
        with store.narrowed(files.get("first_source_id"), files.get("last_source_id")):
            if part is first:
                store.create(document)
            else:
                store.execute(f"INSERT INTO {document.name} {document.query}")
        store.release_beyond()
