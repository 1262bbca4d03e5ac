"""What a database answers. In: SQL with its parameters. Out: a polars frame, plain rows, or numpy arrays.

Idea: a frame for many rows; for few ones plain values, which come in half the time and without loading polars.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceforge.errors import InputUnusableError, QueryError
from traceforge.store.arrow import ArrowStream, readable
from traceforge.store.damage import damaged_file
from traceforge.store.preview import Preview, preview

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import polars as pl

_NO_TABLE = re.compile(r'Table with name "?([\w.]+)"? does not exist')
_GUESS = re.compile(r'\s*Did you mean "[^"]*"\?')
_REFUSED = "the database refused the query: "
_TABLES = """
SELECT schema_name || '.' || table_name AS name FROM duckdb_tables() WHERE NOT internal AND schema_name <> 'main'
UNION ALL
SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal AND schema_name <> 'main'
ORDER BY name
"""


class Answers:
    """Ways to ask one connection. All raise `QueryError` where the database refuses the SQL.

    Where a file of the database is damaged, they raise `InputUnusableError`.
    """

    path: Path | None
    _connection: "duckdb.DuckDBPyConnection"

    def query(self, sql: str, parameters: Sequence[object] = ()) -> "pl.DataFrame":
        """Result of a query as a polars frame.

        Raises:
            QueryError: the database refused the SQL.
        """
        import polars as pl

        with self._refusals_of_queries():
            relation: duckdb.DuckDBPyRelation | None = self._connection.sql(sql, params=list(parameters))
            if relation is None:
                return pl.DataFrame()
            try:
                return pl.Series(values=ArrowStream(readable(relation))).struct.unnest()
            except pl.exceptions.ComputeError as error:  # what DuckDB says of rows behind the first ones
                raise self._failure(error) from error

    def preview(self, sql: str, count: int) -> Preview:
        """The first rows of a query, without loading polars.

        Raises:
            QueryError: the database refused the SQL.
        """
        with self._refusals_of_queries():
            return preview(self._connection, sql, count)

    def refuse_other_than_query(self, sql: str) -> None:
        """Refuse what would change what later questions see: a table of the session, a variable, `USE`.

        Raises:
            QueryError: it is not one query that only reads, or the database cannot read it.
        """
        import duckdb

        with self._refusals_of_queries():
            kinds = [statement.type for statement in self._connection.extract_statements(sql)]
        if kinds != [duckdb.StatementType.SELECT]:
            hint = "SELECT, FROM, WITH, DESCRIBE, SUMMARIZE or SHOW; a PIVOT names its values: ON column IN (…)"
            found = ", ".join(kind.name for kind in kinds) or "nothing"
            raise QueryError(f"only one query that reads is answered here, and this is {found}", hint=hint)

    def interrupt(self) -> None:
        """End the query that another thread has asked; that one gets a `QueryError`."""
        self._connection.interrupt()

    def run_ids(self) -> list[int]:
        """All runs, in the order in which they were added."""
        return [run_id for (run_id,) in self.rows("SELECT run_id FROM meta.run ORDER BY run_id")]

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Result of a query as plain tuples: for few rows quicker than a frame, and without loading polars.

        Raises:
            QueryError: the database refused the SQL.
        """
        with self._refusals_of_queries():
            return self._connection.execute(sql, list(parameters)).fetchall()

    def records(self, sql: str, parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        """The same with the names of the columns.

        Raises:
            QueryError: the database refused the SQL.
        """
        with self._refusals_of_queries():
            answer = self._connection.execute(sql, list(parameters))
            names, rows = [column[0] for column in answer.description or ()], answer.fetchall()
        if len(set(names)) < len(names):
            raise QueryError(f"two columns share a name: {', '.join(names)}")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def value(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """The one value of a query that gives one row of one column.

        Raises:
            QueryError: the database refused the SQL.
        """
        ((found,),) = self.rows(sql, parameters)
        return found

    def arrays(self, sql: str, parameters: Sequence[object] = ()) -> "dict[str, np.ndarray[Any, Any]]":
        """Result of a query as one numpy array a column; NULLs make a column of floats or objects."""
        frame = self.query(sql, parameters)
        return {name: frame[name].to_numpy() for name in frame.columns}

    @contextmanager
    def _refusals_of_queries(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except duckdb.Error as error:
            if isinstance(error, duckdb.CatalogException) and (missing := _NO_TABLE.search(str(error))):
                said = _GUESS.sub("", str(error))
                raise QueryError(f"{_REFUSED}{said}", hint=self._hint_of_tables(missing[1])) from error
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> InputUnusableError | QueryError:
        return self.damage_behind(str(error)) or QueryError(f"{_REFUSED}{error}")

    def damage_behind(self, said: str) -> InputUnusableError | None:
        """The file that is damaged, where that is why DuckDB failed."""
        return damaged_file(said, self.path)

    def _hint_of_tables(self, missing: str) -> str:
        """Which tables have a name like one that is not there. DuckDB's own guess names no schema, and our marks."""
        import duckdb

        every = "`traceforge sql DB --list` lists all tables"
        try:
            names = [name for (name,) in self._connection.execute(_TABLES).fetchall()]
        except duckdb.Error:  # within a transaction that it has ended
            return every
        of_last: dict[str, list[str]] = {}
        for name in names:
            of_last.setdefault(name.partition(".")[2], []).append(name)
        last = missing.rpartition(".")[2]
        like = of_last.get(last) or [name for near in get_close_matches(last, of_last, 3) for name in of_last[near]]
        return f"did you mean {' or '.join(like[:3])}? {every}" if like else every
