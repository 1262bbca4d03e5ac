"""Whether a database has the form that traceforge gives it. In: an attached file. Out: nothing, or a refusal.

Idea: a database from elsewhere may define what it likes under our names: a view that reads files, a macro in the place
of a function. What every command relies on must be base tables with the columns of the migrations that the database
states, and views that read as ours. This is asked before the file becomes the default catalogue, so that nothing in it
is found by a bare name. Not handled: untrue facts in tables of the right form.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceforge.errors import InputUnusableError
from traceforge.store.documents import Document, in_order
from traceforge.store.migrations import facts_form

Rows = list[tuple[Any, ...]]
Run = Callable[[str], Rows]
"""Runs a statement, returns its rows."""
_MIGRATION = "main.traceforge_migration"
_INCOMING = "main.incoming_rows"
_REFERENCE = "reference_form"
_NO_MEANING = re.compile(r"[\s()]+")
_NEEDLESS_QUOTES = re.compile(r'"(?=[a-z_0-9]+")|(?<=[a-z_0-9])"')
_OWN_SCHEMAS = "('main', 'meta', 'raw')"
_RELATIONS = """
SELECT schema_name || '.' || table_name, 'table', NULL FROM duckdb_tables() WHERE database_name = '{catalog}'
UNION ALL
SELECT schema_name || '.' || view_name, 'view', sql FROM duckdb_views()
WHERE database_name = '{catalog}' AND NOT internal
"""
_COLUMNS = """
SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns()
WHERE database_name = '{catalog}' AND schema_name IN ('meta', 'raw')
ORDER BY schema_name, table_name, column_index
"""
_MACROS = """
SELECT schema_name || '.' || function_name FROM duckdb_functions()
WHERE database_name = '{catalog}' AND NOT internal AND schema_name IN {schemas}
"""


@dataclass(frozen=True, slots=True)
class Relations:
    """What an attached file holds, asked once: each look at the catalogue takes as long as most questions.

    Attributes:
        kinds: `table` or `view` by name.
        views: SQL of each view by name.
    """

    kinds: Mapping[str, str]
    views: Mapping[str, str]


NOTHING = Relations({}, {})
"""What a database holds that is made in this moment."""


def relations_of(run: Run, catalog: str) -> Relations:
    """All tables and views of an attached file."""
    found = run(_RELATIONS.format(catalog=catalog))
    kinds = {str(name): str(kind) for name, kind, _ in found}
    return Relations(kinds, {str(name): str(text) for name, kind, text in found if kind == "view"})


def applied_migration(run: Run, catalog: str, found: Relations) -> int | None:
    """Number of the newest migration of an attached database; None where it is empty or no database of ours."""
    if found.kinds.get(_MIGRATION) != "table":
        return None
    ((number,),) = run(f"SELECT COALESCE(MAX(number), 0) FROM {catalog}.{_MIGRATION}")
    return int(str(number))


def check_form(
    run: Run,
    catalog: str,
    found: Relations,
    applied: int,
    path: Path | None,
    over_files: Mapping[str, Document] | None = None,
) -> None:
    """Refuse a database in which something of ours is not what it should be.

    Args:
        run: on the connection that has the database attached, but not as its default.
        catalog: name it is attached by.
        found: what it holds.
        applied: its newest migration.
        path: of the database, for the error.
        over_files: the views that stand for raw tables whose rows lie in files, by name.

    Raises:
        InputUnusableError: a table is missing, is a view, or has other columns; or there are macros among ours.
    """
    expected = {**facts_form(applied), **(over_files or {})}
    columns: dict[str, dict[str, str]] = {}
    for name, column, type_name in run(_COLUMNS.format(catalog=catalog)):
        columns.setdefault(str(name), {})[str(column)] = str(type_name)
    for name, document in expected.items():
        kind = document.kind.lower()
        if found.kinds.get(name) != kind:
            _refuse(path, f"{name} is {'missing' if name not in found.kinds else 'no ' + kind}")
        if list(columns.get(name, {})) != list(document.columns):
            _refuse(path, f"{name} has other columns")
        if kind == "table" and (odd := _of_other_type(columns[name], document)):
            _refuse(path, f"{name}.{odd} is of another type")
    _check_views(run, found, facts_form(applied), over_files or {}, path)
    for name, kind in found.kinds.items():
        if name == _INCOMING or (kind == "view" and name not in expected and name.startswith(("meta.", "raw."))):
            _refuse(path, f"{name} is none of its tables")
    for (name,) in run(_MACROS.format(catalog=catalog, schemas=_OWN_SCHEMAS)):
        _refuse(path, f"it brings a macro, {name}")


def _of_other_type(types: Mapping[str, str], document: Document) -> str | None:
    """The first column of a table whose type is not the one that it is made with."""
    return next((name for name, made in document.types.items() if types[name] != made), None)


def _check_views(
    run: Run, found: Relations, facts: Mapping[str, Document], over_files: Mapping[str, Document], path: Path | None
) -> None:
    """Refuse views of ours that do not read as ours."""
    for name, text in _own_texts(run, facts).items():
        if _without_blanks(found.views[name]) != text:
            _refuse(path, f"{name} is not the view that it should be")
    for name, document in over_files.items():
        # Not by making one of our own: it would read files, of which nothing is known yet.
        text = _NEEDLESS_QUOTES.sub("", _without_blanks(found.views[name]))
        if text != _NEEDLESS_QUOTES.sub("", _without_blanks(document.statement) + ";"):
            _refuse(path, f"{name} is not the view that it should be")


def _without_blanks(sql: str) -> str:
    """A view's SQL without blanks and parentheses, of which DuckDB writes more before it is read from a file."""
    return _NO_MEANING.sub("", sql)


def _own_texts(run: Run, facts: Mapping[str, Document]) -> dict[str, str]:
    """Each view as DuckDB writes it once it is made from our own source."""
    views = [document for document in facts.values() if document.kind == "VIEW"]
    needed = {name: facts[name] for view in views for name in (view.name, *view.reads) if name in facts}
    run(f"ATTACH ':memory:' AS {_REFERENCE}")
    try:
        run(f"USE {_REFERENCE}")
        schemas = sorted({name.partition(".")[0] for name in needed})
        for statement in (*(f"CREATE SCHEMA {schema}" for schema in schemas), *_statements(needed)):
            run(statement)
        made = relations_of(run, _REFERENCE).views
        return {view.name: _without_blanks(made[view.name]) for view in views}
    finally:
        run("USE memory")
        run(f"DETACH {_REFERENCE}")


def _statements(documents: Mapping[str, Document]) -> list[str]:
    return [document.statement for document in in_order(documents.values())]


def _refuse(path: Path | None, what: str) -> None:
    raise InputUnusableError(
        f"this database is not as traceforge makes it: {what}",
        where=str(path),
        hint="ingest the traces into a new database",
    )
