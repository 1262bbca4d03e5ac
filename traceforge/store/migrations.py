"""Schema of the facts. In: a database. Out: meta.* and raw.* at the newest version, or a refusal.

Migrations are `schema/NNNN_sentence.sql`, applied in order, each in one transaction with its own row in
`main.traceforge_migration`. Only facts are migrated; every other schema is dropped and rebuilt.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources

from traceforge.errors import StoreTooNewError
from traceforge.store.documents import Document, comment_statements, parse_schema

_DROPPED = re.compile(r"^DROP (?:TABLE|VIEW) ([a-z_.]+);", re.MULTILINE)
Execute = Callable[[str], object]

_MIGRATION_TABLE = """
CREATE TABLE main.traceforge_migration (
  number INTEGER PRIMARY KEY,
  title VARCHAR NOT NULL
)
"""


def migrations() -> list[tuple[int, str, str]]:
    """Number, title and SQL text of every migration, in order."""
    folder = resources.files("traceforge.store") / "schema"
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
        execute(_MIGRATION_TABLE)
        execute("COMMENT ON TABLE main.traceforge_migration IS 'Schema migrations applied to this database.'")
        execute("COMMENT ON COLUMN main.traceforge_migration.number IS 'Number of the migration.'")
        execute("COMMENT ON COLUMN main.traceforge_migration.title IS 'What it does.'")
    for number, title, text in migrations():
        if number > (applied or 0):
            _apply(execute, number, title, text, documented=documented)


def _apply(execute: Execute, number: int, title: str, text: str, *, documented: bool) -> None:
    execute(text)
    for document in parse_schema(text, title) if documented else ():
        execute(";\n".join(comment_statements(document)))
    execute(f"INSERT INTO main.traceforge_migration VALUES ({number}, '{title}')")
