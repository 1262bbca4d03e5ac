"""A folder that holds a Parquet file a table. In: a path. Out: its tables, read without trust in them.

Idea: DuckDB reads them in pieces; it sees these files and no others, and loads no extension. A table that is damaged,
or a column whose text is no UTF-8, counts as unreadable, and the others are read. Nsight Systems writes the bytes of
NVTX's payloads into a column that it declares to be text; where they are none, DuckDB refuses that column.
Not handled: what the tables mean, which the sources know.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from traceforge.errors import InputUnusableError
from traceforge.files import plain_tables
from traceforge.reading.plain_file import plain_file
from traceforge.reading.table_file import Row, TableFile, quoted

MAGIC = b"PAR1"
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "threads": 1,
}
_MEMORY_LIMIT = "512MB"
_HINT = "export the report again (nsys export --type parquetdir), or as SQLite (nsys export --type sqlite)"
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"})
_FRACTIONS = frozenset({"FLOAT", "DOUBLE"})  # into which pandas turns integers where some are missing
# Long ones, which are read once; all other texts are tried when the folder is opened.
_NOT_TRIED = frozenset({("StringIds", "value"), ("NVTX_EVENTS", "text")})


class ParquetFolder(TableFile):
    """Tables of a folder."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Path], shown: str) -> None:
        super().__init__(shown)
        self._connection = connection
        self._types: dict[tuple[str, str], str] = {}
        for name, path in tables.items():
            place = str(path).replace("'", "''")
            scan = f"read_parquet('{place}', hive_partitioning = false)"
            try:
                connection.execute(f"CREATE OR REPLACE VIEW {quoted(name)} AS SELECT * FROM {scan}")
                described = connection.execute(f"DESCRIBE {quoted(name)}").fetchall()
            except duckdb.Error:
                self.unreadable.append(name)
                continue
            types = {str(row[0]): str(row[1]) for row in described}
            usable = [column for column, kind in types.items() if kind != "VARCHAR" or self._is_text(name, column)]
            self.columns[name] = frozenset(usable)
            self._types |= {(name, column): types[column] for column in usable}

    def _is_text(self, table: str, column: str) -> bool:
        """Whether a column that is declared to be text can be read."""
        if (table, column) in _NOT_TRIED:
            return True
        try:
            self._connection.execute(f"SELECT MAX(LENGTH({quoted(column)})) FROM {quoted(table)}").fetchall()
        except duckdb.Error:
            self.unreadable.append(f"{table}.{column}")
            return False
        return True

    def pieces(self, query: str, parameters: Sequence[object], most: int) -> Iterator[list[Row]]:
        """See `TableFile.pieces`."""
        try:
            # A cursor of its own: another query may begin before this one has ended.
            cursor = self._connection.cursor().execute(query, parameters)
            while rows := cursor.fetchmany(most):
                yield rows
        except duckdb.Error as error:
            what = f"a Parquet file is damaged: {str(error).splitlines()[0]}"
            raise InputUnusableError(what, where=self._shown, hint=_HINT) from error

    def _held(self, table: str, column: str, kind: str) -> str:
        name, declared = quoted(column), self._types[table, column]
        if kind == "text":
            return name if declared == "VARCHAR" else "NULL"
        if kind == "blob":
            return {"BLOB": name, "VARCHAR": f"ENCODE({name})"}.get(declared, "NULL")
        if declared in _INTEGERS:
            return f"CAST({name} AS BIGINT)"
        if declared in _FRACTIONS:
            return f"TRY_CAST({name} AS BIGINT)"
        # As SQLite keeps what is beyond 63 bits.
        wrapped = f"CASE WHEN {name} < 9223372036854775808 THEN {name} ELSE {name}::HUGEINT - 18446744073709551616 END"
        return f"CAST({wrapped} AS BIGINT)" if declared == "UBIGINT" else "NULL"

    def _found_texts(self, ids: Sequence[int]) -> Iterator[Row]:
        number, value = self.integer("StringIds", "id"), self.text("StringIds", "value")
        yield from self.rows(
            f"SELECT {number}, {value} FROM StringIds WHERE {number} IN (SELECT UNNEST($1::BIGINT[]))", [list(ids)]
        )


@contextmanager
def open_parquet(path: Path) -> Iterator[ParquetFolder]:
    """Open a folder for reading.

    Raises:
        InputUnusableError: none of its tables can be read.
    """
    with plain_tables(path) as tables, _opened(tables, path) as folder:
        yield folder


@contextmanager
def open_parquet_file(path: Path, table: str) -> Iterator[ParquetFolder]:
    """Open one file for reading, as a table of a name.

    Raises:
        InputUnusableError: it cannot be read.
    """
    # A copy or link of a plain name: DuckDB reads wildcards in names of files.
    with plain_file(path, MAGIC, ".parquet") as file, tempfile.TemporaryDirectory(prefix="traceforge-") as scratch:
        place = Path(scratch, "table.parquet")
        place.symlink_to(file.resolve())
        with _opened({table: place}, path) as folder:
            yield folder


def column_names(path: Path) -> bytes:
    """The first bytes of a Parquet file and the names of its columns, which it holds at its end.

    Raises:
        InputUnusableError: it cannot be read.
    """
    with open_parquet_file(path, "file") as folder:
        return MAGIC + "".join(f"\n{name}" for name in sorted(folder.columns["file"])).encode()


@contextmanager
def _opened(tables: Mapping[str, Path], path: Path) -> Iterator[ParquetFolder]:
    with confined([str(table) for table in tables.values()]) as connection:
        folder = ParquetFolder(connection, tables, str(path))
        if not folder.columns:
            raise InputUnusableError("none of the Parquet files can be read", where=str(path), hint=_HINT)
        yield folder


@contextmanager
def confined(files: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database that sees these files and no others, and has a limit of memory."""
    with duckdb.connect(":memory:", config=_SETTINGS) as connection:
        connection.execute(f"SET memory_limit = '{_MEMORY_LIMIT}'")
        connection.execute("SET allowed_paths = $1", [list(files)])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
