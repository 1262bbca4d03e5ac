"""Files of a database that are damaged. In: what DuckDB says of a failure. Out: an error that names the file, or None.

Idea: blocks of a DuckDB file have checksums, and DuckDB says where one is wrong. Of Parquet it often says neither the
file nor a kind of error, which all that is wrong with SQL has. So only such a failure, or one that names a partition,
has the partitions read once more: all, then halves, until the file is found.
Not handled: bytes of a partition that changed and can still be read; nothing tells them from others.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from traceforge.errors import InputUnusableError

_WRONG_BLOCK, _CUT = "Corrupt database file", "Could not read enough bytes"
# `Invalid Error` is what DuckDB calls an error that has no kind, where it hands one to another library.
_KIND = re.compile(r"\b(?!Invalid Error)[A-Z][a-zA-Z]* Error: ")
_WHOLE_ROWS = "SELECT COUNT(HASH(one)) FROM read_parquet(?, hive_partitioning = false) AS one"
_LONGEST_REASON = 200
COPY_OR_INGEST = "copy the database again as a whole, or ingest the traces into a new one"

Read = Callable[[Sequence[str]], str | None]
"""Reads Parquet files; gives what DuckDB says of a failure."""


def damaged_file(said: str, file: Path | None, *, hint: str = COPY_OR_INGEST) -> InputUnusableError | None:
    """That a DuckDB file is damaged.

    Args:
        said: by DuckDB.
        file: that was read.
        hint: what to do.
    """
    if _WRONG_BLOCK in said:
        why = "a block is not as it was written"
    elif _CUT in said and file is not None and str(file.absolute()) in said:
        why = "it is cut short"
    else:
        return None
    return InputUnusableError(f"this file is damaged: {why}", where=str(file), hint=hint)


def damaged_partition(said: str, files: Mapping[str, Sequence[str]]) -> InputUnusableError | None:
    """That a partition is damaged.

    Args:
        said: by DuckDB.
        files: of each table, all that are read.
    """
    named = {table: own for table, paths in files.items() if (own := [path for path in paths if path in said])}
    if _KIND.search(said) and not named:
        return None
    return first_unreadable(named or files)


def first_unreadable(files: Mapping[str, Sequence[str]]) -> InputUnusableError | None:
    """The first file whose rows cannot all be read.

    Args:
        files: Parquet files of each table.
    """
    import duckdb

    with duckdb.connect() as connection:

        def read(paths: Sequence[str]) -> str | None:
            try:
                connection.execute(_WHOLE_ROWS, [list(paths)]).fetchall()
            except duckdb.Error as error:
                return str(error)
            return None

        for table, paths in files.items():
            if found := _first_of(paths, read):
                path, reason = found
                what = f"this file of the database is damaged: rows of {table} cannot be read ({_short(reason)})"
                return InputUnusableError(what, where=path, hint=COPY_OR_INGEST)
    return None


def _first_of(paths: Sequence[str], read: Read) -> tuple[str, str] | None:
    if not paths or (reason := read(paths)) is None:
        return None
    if len(paths) == 1:
        return paths[0], reason
    middle = len(paths) // 2
    return _first_of(paths[:middle], read) or _first_of(paths[middle:], read)


def _short(reason: str) -> str:
    return " ".join(reason.split())[:_LONGEST_REASON]
