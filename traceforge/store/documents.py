"""SQL files as source. In: a folder of `.sql` files. Out: statements in dependency order with their documentation.

One file is one table, view or macro named as the file: `timeline/arrival.sql` makes `timeline.arrival`. The comment
above `CREATE` documents the object, the comment above each column documents the column, and both are written into the
database, where every client can read them. A line `-- Reads: a.b, c.d` names what Python fills the table from, a line
`-- Scope: rank` says what a row follows from (see `SCOPES`). A line `-- In parts by: a.b` names a table of batches: the
query is run once for each of its rows, whose values it asks for by `GETVARIABLE('column')`.
Placeholders such as `{activities}` stand for lists of the vocabulary.
Not handled: several statements a file (but see `parse_schema`), comments of a macro's parameters in the database.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType

from traceforge.errors import PluginError

_CREATE = re.compile(r"^CREATE (?:OR REPLACE )?(TABLE|VIEW|MACRO) (\w+\.\w+) ?\($", re.MULTILINE)
_COLUMN = re.compile(r"^  (\w+)\b(?: ([A-Z]+(?:\[\])?))?( NOT NULL)?")
_NOT_COLUMNS = {"PRIMARY", "UNIQUE", "FOREIGN", "CHECK"}
_IDENTIFIER = re.compile(r"\b([a-z_]+\.[a-z_0-9]+)\b")
_READS = re.compile(r"^Reads:\s*(.*)$")
_SCOPE = re.compile(r"^Scope:\s*(.*)$")
_PARTS = re.compile(r"^In parts by:\s*(\w+\.\w+)$")
_DIRECTIVES = (_READS, _SCOPE, _PARTS)
_QUERY = "\n) AS\n"

SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "source": "each row follows from one file",
        "rank": "each row follows from one rank's file, and from tables that are small",
        "iteration": "each row follows from what all ranks did in one iteration",
        "run": "rows follow from the whole run",
    }
)
"""What rows of a table are made from: with the scope `source` or `rank`, those of one at a time are enough."""


@dataclass(frozen=True, slots=True)
class Document:
    """One `CREATE` statement with its documentation.

    Attributes:
        kind: `TABLE`, `VIEW` or `MACRO`.
        name: schema and object, such as `timeline.arrival`.
        statement: the SQL as it stands in the file.
        comment: documentation of the object.
        columns: documentation by column name (by parameter of a macro), in order; empty text where there is none.
        types: declared type by column name, in order; absent where the file declares none.
        required: columns that are declared as never NULL.
        reads: objects the statement, or the Python that fills it, reads from.
        scope: one of `SCOPES`; None where the file states none.
        parts: table with a row for each part in which the query is run; None where it is run once.
    """

    kind: str
    name: str
    statement: str
    comment: str
    columns: dict[str, str]
    types: dict[str, str]
    required: frozenset[str]
    reads: frozenset[str]
    scope: str | None = None
    parts: str | None = None

    @property
    def query(self) -> str | None:
        """What fills the table; None where Python does."""
        _, found, query = self.statement.partition(_QUERY)
        return query if found else None

    def with_query(self, query: str) -> "Document":
        """The same table filled by another query."""
        return replace(self, statement=f"{self.statement.partition(_QUERY)[0]}{_QUERY}{query}")


@cache
def parse_document(text: str, origin: str) -> Document:
    """The single statement of a `.sql` file.

    Raises:
        PluginError: the text is not of the form described above.
    """
    if "{" in text:  # else nothing needs the vocabulary, which takes as long to load as a question to answer
        from traceforge.vocabulary import fill_placeholders

        text = fill_placeholders(text)
    match = _CREATE.search(text)
    if match is None:
        raise PluginError("no `CREATE TABLE|VIEW|MACRO schema.name (` line", where=origin)
    head = _comment_lines(text[: match.start()].splitlines())
    reads = [name for line in head if (found := _READS.match(line)) for name in _IDENTIFIER.findall(found[1])]
    scopes = [found[1] for line in head if (found := _SCOPE.match(line))]
    if len(scopes) > 1 or not SCOPES.keys() >= set(scopes):
        raise PluginError(f"the scope is not one of {', '.join(SCOPES)}: {', '.join(scopes)}", where=origin)
    parts = next((found[1] for line in head if (found := _PARTS.match(line))), None)
    body = text[match.end() :]
    code = "\n".join(line for line in body.splitlines() if not line.strip().startswith("--"))
    name = match[2]
    declared = [found for line in _column_lines(body) if (found := _COLUMN.match(line))]
    return Document(
        kind=match[1],
        name=name,
        statement=text.strip().rstrip(";"),
        comment=" ".join(line for line in head if not any(one.match(line) for one in _DIRECTIVES)),
        columns=_columns(body),
        types={found[1]: found[2] for found in declared if found[2] and found[1] not in _NOT_COLUMNS},
        required=frozenset(found[1] for found in declared if found[3]),
        reads=frozenset([*reads, *([parts] if parts else []), *_IDENTIFIER.findall(code)]) - {name},
        scope=scopes[0] if scopes else None,
        parts=parts,
    )


def parse_schema(text: str, origin: str) -> list[Document]:
    """The statements of a migration, split at blank lines; `CREATE SCHEMA` statements carry no columns."""
    blocks = text.strip().split(";\n")
    return [parse_document(block.strip(), origin) for block in blocks if _CREATE.search(block)]


def load_folder(folder: Path, schema: str) -> list[Document]:
    """The documents of a stage's folder, each after those it reads.

    Raises:
        PluginError: a file makes an object of another name, or the files depend on one another in a circle.
    """
    documents = {}
    for path in sorted(folder.glob("*.sql")):
        document = parse_document(path.read_text(encoding="utf-8"), path.name)
        if document.name != f"{schema}.{path.stem}":
            raise PluginError(f"the file makes {document.name}, not {schema}.{path.stem}", where=path.name)
        documents[document.name] = document
    return in_order(documents.values())


def in_order(documents: Iterable[Document]) -> list[Document]:
    """Documents sorted so that each comes after those among them that it reads.

    Tables that are made in the same parts follow one another where they can: then one process makes a part of each.
    """
    known = {document.name: document for document in documents}
    sorter = TopologicalSorter({name: sorted(document.reads & known.keys()) for name, document in known.items()})
    try:
        sorter.prepare()
    except CycleError as error:
        raise PluginError(f"tables depend on one another in a circle: {' -> '.join(error.args[1])}") from error
    ordered: list[Document] = []
    ready: list[str] = []
    parts: str | None = None
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()])
        of_kind = {own: [name for name in ready if known[name].parts == own] for own in (parts, None)}
        parts = next((own for own, names in of_kind.items() if names), known[ready[0]].parts)
        chosen = [name for name in ready if known[name].parts == parts]
        ready = [name for name in ready if name not in chosen]
        ordered += [known[name] for name in chosen]
        sorter.done(*chosen)
    return ordered


def comment_statements(document: Document) -> list[str]:
    """The `COMMENT ON` statements that put the documentation into the database."""
    scope = f" Scope {document.scope}: {SCOPES[document.scope]}." if document.scope else ""
    statements = [f"COMMENT ON {document.kind} {document.name} IS {_literal(document.comment + scope)}"]
    if document.kind == "MACRO":
        return statements
    for column, comment in document.columns.items():
        statements.append(f'COMMENT ON COLUMN {document.name}."{column}" IS {_literal(comment)}')
    return statements


def _columns(body: str) -> dict[str, str]:
    columns: dict[str, str] = {}
    pending: list[str] = []
    for line in _column_lines(body):
        if line.strip().startswith("--"):
            pending.append(line.strip().removeprefix("--").strip())
        elif (match := _COLUMN.match(line)) and match[1] not in _NOT_COLUMNS:
            columns[match[1]] = " ".join(pending)
            pending = []
    return columns


def _column_lines(body: str) -> list[str]:
    """The lines between the parentheses behind the name."""
    return list(takewhile(lambda line: not line.startswith(")"), body.splitlines()))


def _comment_lines(lines: list[str]) -> list[str]:
    return [line.strip().removeprefix("--").strip() for line in lines if line.strip().startswith("--")]


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
