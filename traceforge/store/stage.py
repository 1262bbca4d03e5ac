"""Building a stage. In: a stage's folder of `.sql` and `.py` files. Out: its schema, rebuilt from scratch.

A file `x.sql` with a query makes the table by itself. A file `x.sql` that only declares columns is filled by the
`rows(store)` function of the module `x.py` beside it, which gives one frame or several of the columns that the file
declares; types are those of the file. Each is built after what it reads; all in one transaction. What
several modules need of a run, such as its model, they ask for by `store.once(load_model, run_id)`: it is computed once.
A table in parts is filled by its query once for each row of the table of its parts.
"""

import importlib
from collections.abc import Callable
from pathlib import Path

from traceforge.store.database import Store
from traceforge.store.documents import Document, load_folder

OnTable = Callable[[str, float], None]
"""Called with the name of a table, and which share of its stage's tables are made already."""


def stage_documents(package: str) -> list[Document]:
    """The documented tables and views of a stage such as `traceforge.timeline`, in build order."""
    (folder,) = map(Path, importlib.import_module(package).__path__)
    return load_folder(folder, package.rpartition(".")[2])


def build_stage(store: Store, package: str, on_table: OnTable | None = None) -> None:
    """Drop a stage's schema and build it again from what lies below it.

    Args:
        on_table: called before each table is made.

    Raises:
        PluginError: a file of the stage does not keep the form.
    """
    schema = package.rpartition(".")[2]
    documents = stage_documents(package)
    with store.transaction(), store.keeping():
        store.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        store.execute(f"CREATE SCHEMA {schema}")
        store.execute("DELETE FROM meta.issue WHERE stage = ?", [schema])
        for place, document in enumerate(documents):
            if on_table is not None:
                on_table(document.name, place / len(documents))
            if document.parts is not None:
                _create_in_parts(store, document, document.parts)
                continue
            store.create(document)
            if document.kind == "TABLE" and document.query is None:
                module = importlib.import_module(f"{package}.{document.name.rpartition('.')[2]}")
                rows = module.rows(store)
                for frame in [rows] if hasattr(rows, "columns") else rows:
                    store.append(document.name, frame)
            store.release_beyond()


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
