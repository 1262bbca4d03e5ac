"""All or nothing. In: a connection. Out: a block whose changes are kept whole, or undone where it raises."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """What happens inside is undone if it raises."""
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        with suppress(duckdb.Error):  # where the error has ended it: that one is to be told
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
