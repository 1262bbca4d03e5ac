"""A profiler's SQLite file. In: a path. Out: its tables, read without trust in them.

Idea: the file is opened read-only and never written beside; only real tables are read (a view of a stranger may never
end), each column only where it holds what it should, and rows come in bounded pieces. Where the file is compressed or
in an archive, a copy is made, since SQLite needs a file of its own.
Not handled: what the tables mean, which the sources know.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from traceforge.errors import InputUnusableError
from traceforge.reading.plain_file import plain_file
from traceforge.reading.table_file import Row, TableFile, quoted

MAGIC = b"SQLite format 3\0"
_LONGEST_VALUE_BYTES = 64 * 1024 * 1024
_MOST_IDS = 500
_HINT = "copy it again, or export it again (nsys export --type sqlite, rocprofv3 --output-format rocpd)"

# The second, where what SQLite says of the damage quotes bytes that are no text; the third, where a row claims to be of
# gigabytes, for which SQLite asks the system in one piece.
_DAMAGE = (sqlite3.Error, UnicodeDecodeError, MemoryError)


class SqliteFile(TableFile):
    """Tables of a file of SQLite.

    Attributes:
        numbered: tables whose `id` is their key, so that no two rows have one.
    """

    def __init__(self, connection: sqlite3.Connection, shown: str) -> None:
        super().__init__(shown)
        self._connection = connection
        self.numbered: set[str] = set()
        listed = self.rows(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
        )
        for (name,) in listed:
            info = self.rows(f"PRAGMA table_xinfo({quoted(str(name))})")
            if [str(row[1]) for row in info if row[5]] == ["id"]:
                self.numbered.add(str(name))
            # hidden = 0: neither computed nor of a virtual table.
            self.columns[str(name)] = frozenset(str(row[1]) for row in info if row[6] == 0)

    def pieces(self, query: str, parameters: Sequence[object], most: int) -> Iterator[list[Row]]:
        """See `TableFile.pieces`."""
        try:
            cursor = self._connection.execute(query, parameters)
            while rows := cursor.fetchmany(most):
                yield rows
        except _DAMAGE as error:
            raise _refused(error, self._shown) from error

    def _held(self, table: str, column: str, kind: str) -> str:
        name = quoted(column)
        if kind == "blob":
            return f"CASE WHEN TYPEOF({name}) IN ('blob', 'text') THEN CAST({name} AS BLOB) END"
        return f"CASE WHEN TYPEOF({name}) = '{kind}' THEN {name} END"

    def _found_texts(self, ids: Sequence[int]) -> Iterator[Row]:
        value = self.text("StringIds", "value")
        for first in range(0, len(ids), _MOST_IDS):
            asked = ids[first : first + _MOST_IDS]
            marks = ", ".join("?" * len(asked))
            yield from self.rows(f"SELECT id, {value} FROM StringIds WHERE id IN ({marks})", asked)


@contextmanager
def open_sqlite(path: Path) -> Iterator[SqliteFile]:
    """Open a file for reading.

    Raises:
        InputUnusableError: it is no SQLite file, or a damaged one.
    """
    with plain_file(path, MAGIC, ".sqlite") as file:
        connection = None
        try:
            # Immutable: no lock, no journal, nothing written beside somebody's file.
            connection = sqlite3.connect(f"file:{quote(str(file))}?mode=ro&immutable=1", uri=True)
            connection.text_factory = _lenient_text
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE_BYTES)
            connection.execute("PRAGMA trusted_schema = OFF")
            yield SqliteFile(connection, str(path))
        except _DAMAGE as error:
            raise _refused(error, str(path)) from error
        finally:
            if connection is not None:
                connection.close()


def table_names(path: Path) -> bytes:
    """The magic of SQLite and the names of a file's tables, as its first bytes would have them.

    Raises:
        InputUnusableError: it is no SQLite file, or a damaged one.
    """
    with open_sqlite(path) as database:
        return MAGIC + "".join(f"CREATE TABLE {name}\n" for name in sorted(database.columns)).encode()


def _refused(error: Exception, shown: str) -> InputUnusableError:
    why = "there is no memory for a row as long as it claims to be" if isinstance(error, MemoryError) else error
    return InputUnusableError(f"the SQLite file is damaged: {why}", where=shown, hint=_HINT)


def _lenient_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
