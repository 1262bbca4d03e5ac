"""What a database or a history answers, as a table for people. In: a path, SQL. Out: an open store, rows on stdout."""

from pathlib import Path
from typing import TYPE_CHECKING

from traceforge.cli.console import MAX_TABLE_ROWS, note, print_table
from traceforge.errors import InputUnusableError

if TYPE_CHECKING:
    from traceforge.store.database import Store
    from traceforge.store.history_file import HistoryFile


def opened_for_sql(db: Path) -> "Store | HistoryFile":
    """A trace database, or a history."""
    from traceforge import api

    try:
        return api.open_store(db)
    except InputUnusableError:
        from traceforge.history.tables import is_history, open_history

        if is_history(db):
            return open_history(db)
        raise


def print_answer(store: "Store | HistoryFile", statement: str) -> None:
    """The first rows of an answer, without polars, which takes longer to load than most questions take."""
    found = store.preview(statement, MAX_TABLE_ROWS)
    print_table(found.names, found.rows, further=found.further)
    if not found.rows:
        note("no rows")
