"""Building a stage. In: a stage's folder of `.sql` and `.py` files. Out: its schema, rebuilt from scratch.

A file `x.sql` with a query makes the table by itself. A file `x.sql` that only declares columns is filled by the
`rows(store)` function of the module `x.py` beside it, which gives one frame or several of the columns that the file
declares; types are those of the file. Each is built after what it reads; all in one transaction. What
several modules need of a run, such as its model, they ask for by `store.once(load_model, run_id)`: it is computed once.
"""

import importlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from traceforge.store.database import Store
from traceforge.store.documents import Document, load_folder

OnTable = Callable[[str, float], None]
"""Called with the name of a table, and which share of its stage's tables are made already."""


def stage_documents(package: str) -> list[Document]:
    """The documented tables and views of a stage such as `traceforge.timeline`, in build order."""
    folder = Path(str(resources.files(package)))
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
            store.create(document)
            if _is_filled_by_python(document):
                module = importlib.import_module(f"{package}.{document.name.rpartition('.')[2]}")
                rows = module.rows(store)
                for frame in [rows] if hasattr(rows, "columns") else rows:
                    store.append(document.name, frame)


def _is_filled_by_python(document: Document) -> bool:
    return document.kind == "TABLE" and "\n) AS" not in document.statement
