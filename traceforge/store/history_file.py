"""A history: many runs' summaries in one DuckDB file. In: its documented tables, rows. Out: answers to SQL.

Idea: DuckDB lets one process write; whoever else comes, to write or to read, waits a moment and tries again, and nobody
holds the file for longer than one transaction. A new file is made beside its place and then linked to it, so that of
two makers one wins and none sees half a file. Like a trace database it may come from elsewhere: its tables must be
exactly ours, and SQL reaches nothing beside it. Not handled: several machines whose file system knows no locks.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from traceforge.errors import InputUnusableError, StoreBusyError, StoreTooNewError
from traceforge.store.answers import Answers
from traceforge.store.arrow import ArrowStream
from traceforge.store.damage import damaged_file
from traceforge.store.documents import Document, comment_statements
from traceforge.store.opening import HISTORY_MARK, is_unicode, literal_of, open_error
from traceforge.store.places import link_whole, own_folder, sweep_beside
from traceforge.store.transaction import transaction

if TYPE_CHECKING:
    import duckdb
    import polars as pl

_CATALOG = "fleet"
_FORM = 1
_COPY_OR_ADD = "copy the file again as a whole, or add the runs to a new history"
_WAIT_S = 60.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5
_SAFE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
_RELATIONS = f"""
SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE database_name = '{_CATALOG}'
UNION ALL
SELECT schema_name || '.' || view_name || ' (view)' FROM duckdb_views()
WHERE database_name = '{_CATALOG}' AND NOT internal
UNION ALL
SELECT schema_name || '.' || function_name || ' (macro)' FROM duckdb_functions()
WHERE database_name = '{_CATALOG}' AND NOT internal
"""
_COLUMNS = f"""
SELECT schema_name || '.' || table_name, column_name, data_type FROM duckdb_columns()
WHERE database_name = '{_CATALOG}' AND schema_name <> 'main'
ORDER BY schema_name, table_name, column_index
"""


class HistoryFile(Answers):
    """A history, open. Use as a context manager.

    Attributes:
        path: of the file.
        read_only: whether nothing may be changed.
    """

    path: Path

    def __init__(
        self,
        path: Path,
        documents: Sequence[Document],
        *,
        read_only: bool = True,
        wait_s: float = _WAIT_S,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Open a history; one to be written is made where there is none.

        Args:
            path: of the file.
            documents: its tables.
            read_only: refuse every change.
            wait_s: how long to wait for another process that writes.
            pause: waits so many seconds.

        Raises:
            InputUnusableError: there is no such file, or it is no history.
            StoreBusyError: another process held it all that time.
            StoreTooNewError: a newer traceforge wrote it.
        """
        self.path, self.read_only = path, read_only
        if not is_unicode(str(path)):
            raise InputUnusableError("the name of the history is not valid UTF-8", where=str(path), hint="rename it")
        if not path.exists():
            if read_only:
                hint = "`traceforge history add HISTORY RUN...` makes one; check the name and the folder you are in"
                raise InputUnusableError("no such history", where=str(path), hint=hint)
            _make(path, documents)
        self._connection = _attached(path, read_only=read_only, wait_s=wait_s, pause=pause)
        try:
            self._adopt(documents)
        except BaseException:
            self._connection.close()
            raise

    def _adopt(self, documents: Sequence[Document]) -> None:
        found = {str(name) for (name,) in self.rows(_RELATIONS)}
        if HISTORY_MARK not in found:
            raise _no_history(self.path)
        form = int(self.value(f"SELECT MAX(form) FROM {_CATALOG}.{HISTORY_MARK}") or 0)
        if form > _FORM:
            raise StoreTooNewError(
                f"the history has form {form}, this traceforge knows {_FORM}",
                where=str(self.path),
                hint="upgrade traceforge, or add the runs to a new history",
            )
        columns: dict[str, dict[str, str]] = {}
        for name, column, kind in self.rows(_COLUMNS):
            columns.setdefault(name, {})[column] = kind
        expected = {document.name: document.types for document in documents}
        if found != {HISTORY_MARK, *expected} or columns != expected:
            raise InputUnusableError(
                "this history is not as traceforge makes it",
                where=str(self.path),
                hint="add the runs to a new history",
            )
        self._connection.execute(f"USE {_CATALOG}")
        self._connection.execute("SET allowed_paths = ?", [[str(self.path), f"{self.path}.wal"]])
        self._connection.execute("SET enable_external_access = false")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def damage_behind(self, said: str) -> InputUnusableError | None:
        """That the file is damaged, where that is why DuckDB failed."""
        return damaged_file(said, self.path, hint=_COPY_OR_ADD)

    def close(self) -> None:
        """Close the file; the object cannot be used afterwards."""
        self._connection.close()

    def lock_down(self) -> None:
        """Refuse changes of settings from now on: for SQL that a person typed."""
        self._connection.execute("SET lock_configuration = true")

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing: what happens inside is undone if it raises."""
        return transaction(self._connection)

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement of our own that returns no rows."""
        self._connection.execute(sql, list(parameters))

    def append(self, rows: "Mapping[str, pl.DataFrame]") -> None:
        """Add rows to tables, by name of table; a frame has the columns of its table in their order."""
        for table, frame in rows.items():
            if not frame.is_empty():
                self._connection.from_arrow(ArrowStream(frame)).insert_into(table)


def holds_mark(path: Path) -> bool:
    """Whether a file is a history, by the table that marks one; also while another process writes it."""
    try:
        connection = _attached(path, read_only=True, wait_s=_WAIT_S, pause=time.sleep)
    except InputUnusableError:
        return False
    with connection:
        return (HISTORY_MARK,) in connection.execute(_RELATIONS).fetchall()


def _connected() -> "duckdb.DuckDBPyConnection":
    import duckdb

    connection = duckdb.connect(config=_SAFE)
    connection.execute("SET enable_progress_bar = false")
    return connection


def _attached(
    path: Path, *, read_only: bool, wait_s: float, pause: Callable[[float], None]
) -> "duckdb.DuckDBPyConnection":
    import duckdb

    waited, next_pause_s = 0.0, _FIRST_PAUSE_S
    while True:
        connection = _connected()
        try:
            options = "TYPE duckdb, READ_ONLY" if read_only else "TYPE duckdb"
            connection.execute(f"ATTACH {literal_of(path)} AS {_CATALOG} ({options})")
            return connection
        except duckdb.Error as error:
            connection.close()
            found = damaged_file(str(error), path, hint=_COPY_OR_ADD) or open_error(path, error, is_new=False)
            if not isinstance(found, StoreBusyError):
                raise found from error
            if waited >= wait_s:
                raise StoreBusyError(
                    f"another process has held the history for {wait_s:g} s",
                    where=str(path),
                    hint="wait for it to end, and run this again",
                ) from error
        pause(next_pause_s)
        waited += next_pause_s
        # Those who wait together come back at different times.
        next_pause_s = min(_LONGEST_PAUSE_S, 2 * next_pause_s) * (0.5 + secrets.randbelow(1_000) / 1_000)


def _make(path: Path, documents: Sequence[Document]) -> None:
    """An empty history in its place, unless another process has made one meanwhile."""
    import duckdb

    if not path.parent.is_dir():
        raise InputUnusableError("the folder above it does not exist", where=str(path), hint="make that folder first")
    connection = _connected()
    try:
        sweep_beside(path, is_shared=True)
        with own_folder(path.with_name(f"{path.name}.export-{secrets.token_hex(8)}")) as scratch:
            making = scratch / path.name
            connection.execute(f"ATTACH {literal_of(making)} AS {_CATALOG} (TYPE duckdb, STORAGE_VERSION 'v1.0.0')")
            connection.execute(f"USE {_CATALOG}")
            _fill(connection, documents)
            connection.close()
            link_whole(making, path)
    except (duckdb.Error, OSError) as error:
        hint = "name a file in a folder where you may write"
        raise InputUnusableError(f"the history cannot be made: {error}", where=str(path), hint=hint) from error
    finally:
        connection.close()


def _fill(connection: "duckdb.DuckDBPyConnection", documents: Sequence[Document]) -> None:
    for schema in sorted({document.name.partition(".")[0] for document in documents}):
        connection.execute(f"CREATE SCHEMA {schema}")
    for document in documents:
        connection.execute(document.statement)
        connection.execute(";\n".join(comment_statements(document)))
    connection.execute(f"CREATE TABLE {HISTORY_MARK} (form INTEGER)")
    connection.execute(f"COMMENT ON TABLE {HISTORY_MARK} IS 'Marks a history of traceforge, and says its form.'")
    connection.execute(f"INSERT INTO {HISTORY_MARK} VALUES ({_FORM})")


def _no_history(path: Path) -> InputUnusableError:
    return InputUnusableError(
        "this database is no history",
        where=str(path),
        hint="`traceforge history add HISTORY RUN...` makes one",
    )


def rows_in_order(document: Document, rows: Sequence[Mapping[str, Any]]) -> "pl.DataFrame":
    """Rows as `HistoryFile.append` takes them, typed as the table declares them."""
    import polars as pl

    kinds: dict[str, pl.DataType | type[pl.DataType]] = {
        "VARCHAR": pl.String,
        "INTEGER": pl.Int32,
        "BIGINT": pl.Int64,
        "DOUBLE": pl.Float64,
        "BOOLEAN": pl.Boolean,
        "INTEGER[]": pl.List(pl.Int32),
    }
    return pl.DataFrame(
        {name: [row[name] for row in rows] for name in document.types},
        schema={name: kinds[kind] for name, kind in document.types.items()},
        strict=False,
    )
