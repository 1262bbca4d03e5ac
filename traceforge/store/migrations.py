"""Schema of the facts. In: a database. Out: meta.* and raw.* at the newest version, or a refusal.

Migrations are `schema/NNNN_sentence.sql`, applied in order, each in one transaction with its own row in
`main.traceforge_migration`. Only facts are migrated; every other schema is dropped and rebuilt.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from traceforge.errors import StoreTooNewError
from traceforge.store.documents import Document, comment_statements, parse_schema

_DROPPED = re.compile(r"^DROP (?:TABLE|VIEW) ([a-z_.]+);", re.MULTILINE)
_LASTING = re.compile(r"^(?:CREATE SCHEMA|INSERT INTO [a-z_.]+ VALUES) .*;$", re.MULTILINE)
Execute = Callable[[str], object]

_MIGRATION_TABLE = """
CREATE TABLE main.traceforge_migration (
  number INTEGER PRIMARY KEY,
  title VARCHAR NOT NULL
);
COMMENT ON TABLE main.traceforge_migration IS 'Schema migrations applied to this database.';
COMMENT ON COLUMN main.traceforge_migration.number IS 'Number of the migration.';
COMMENT ON COLUMN main.traceforge_migration.title IS 'What it does.';
"""


def migrations() -> list[tuple[int, str, str]]:
    """Number, title and SQL text of every migration, in order."""
    folder = Path(__file__).parent / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [
        (int(name[:4]), name[5:-4].replace("_", " "), (folder / name).read_text(encoding="utf-8")) for name in names
    ]


@cache
def facts_form(until: int | None = None) -> Mapping[str, Document]:
    """What migrations up to one (all when None) leave behind, by name; a later one may drop a table or view it."""
    left: dict[str, Document] = {}
    for number, title, text in migrations():
        if until is None or number <= until:
            for name in _DROPPED.findall(text):
                left.pop(name, None)
            left.update((document.name, document) for document in parse_schema(text, title))
    return left


def refuse_newer(applied: int | None, *, where: str) -> None:
    """Stop at a database that this version cannot understand.

    Raises:
        StoreTooNewError: the database has migrations this version does not know.
    """
    newest = migrations()[-1][0]
    if applied is not None and applied > newest:
        raise StoreTooNewError(
            f"the database has schema {applied}, this traceforge knows {newest}",
            where=where,
            hint="upgrade traceforge, or ingest the traces into a new database",
        )


def migrate(execute: Execute, applied: int | None, *, documented: bool) -> None:
    """Bring a database to the newest schema.

    Args:
        execute: runs one SQL statement inside the caller's transaction.
        applied: number of the newest migration the database has, 0 for an empty one, None for a new one.
        documented: whether tables and columns get their comments.
    """
    if applied is None:
        _make(execute, documented=documented)
        return
    for number, title, text in migrations():
        if number > applied:
            execute(text)
            if documented:
                _document(execute, parse_schema(text, title))
            execute(f"INSERT INTO main.traceforge_migration VALUES ({number}, '{title}')")


def _make(execute: Execute, *, documented: bool) -> None:
    """What all migrations leave behind, without the tables that some make and later ones drop."""
    execute(_MIGRATION_TABLE)
    lasting = [statement for *_, text in migrations() for statement in _LASTING.findall(text)]
    schemas = [statement for statement in lasting if statement.startswith("CREATE")]
    tables = [f"{document.statement};" for document in facts_form().values()]
    execute("\n".join([*schemas, *tables, *(statement for statement in lasting if statement not in schemas)]))
    if documented:
        _document(execute, facts_form().values())
    rows = ", ".join(f"({number}, '{title}')" for number, title, _ in migrations())
    execute(f"INSERT INTO main.traceforge_migration VALUES {rows}")


def _document(execute: Execute, documents: Iterable[Document]) -> None:
    execute(";\n".join(statement for document in documents for statement in comment_statements(document)))
