"""Opens an export of Nsight Systems. In: a path. Out: its tables, of which kind of file it is."""

from contextlib import AbstractContextManager
from pathlib import Path

from traceforge.files import tables_of
from traceforge.reading.table_file import TableFile


def open_export(path: Path) -> AbstractContextManager[TableFile]:
    """Open a SQLite file, or a folder of Parquet files (`nsys export --type parquetdir`), for reading.

    Raises:
        InputUnusableError: it is damaged.
    """
    if tables_of(path):
        from traceforge.reading.parquet_folder import open_parquet

        return open_parquet(path)
    from traceforge.reading.sqlite_file import open_sqlite

    return open_sqlite(path)
