"""Tables written out before a database is closed. In: its connection. Out: a log that is nearly empty.

Idea: DuckDB writes what its log still holds as it closes, and takes all memory it may for that: 220 MB for 3 million
rows of one kind. With a limit and one thread it takes 40 MB. Not handled: what does not fit into the limit; closing
writes it as it would have without this, or the log keeps it.
"""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_WRITTEN_WITH_BYTES = 64 * 1024 * 1024


def write_out(connection: "duckdb.DuckDBPyConnection", catalog: str, file: Path | None) -> None:
    """Write the tables of a database, in little memory; it is to be closed next.

    Args:
        connection: to DuckDB.
        catalog: the database's name there.
        file: None of one that has none, or is not to be written.
    """
    import duckdb

    log = None if file is None else Path(f"{file}.wal")
    if log is None or not log.exists():
        return  # A short log may stand for much: large pieces of tables are in the file, and are written once more.
    ((usual,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    try:
        connection.execute(f"SET threads = 1; SET memory_limit = '{_WRITTEN_WITH_BYTES} B'")
    except duckdb.Error:
        return  # Settings are locked, or more is in use: it closes as it would have without this.
    try:
        connection.execute(f"CHECKPOINT {catalog}")
    except duckdb.Error:
        with contextlib.suppress(duckdb.Error):  # to set a limit takes memory, too
            connection.execute(f"SET memory_limit = '{usual}'")
