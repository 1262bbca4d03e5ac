"""The tables of a history. In: the `.sql` files of this folder. Out: documents, and an open file."""

from functools import cache
from importlib import resources
from pathlib import Path

from traceforge.store.documents import Document, load_folder
from traceforge.store.history_file import HistoryFile, holds_mark


@cache
def history_tables() -> tuple[Document, ...]:
    """The documented tables, by name."""
    documents = load_folder(Path(str(resources.files("traceforge.history"))), "history")
    return tuple(sorted(documents, key=lambda document: document.name))


def is_history(path: Path) -> bool:
    """Whether a file is marked as a history, of whatever form."""
    return path.is_file() and holds_mark(path)


def open_history(path: Path, *, read_only: bool = True) -> HistoryFile:
    """A history; waits while another process writes it.

    Raises:
        InputUnusableError: there is none, or it is no history.
    """
    return HistoryFile(path, history_tables(), read_only=read_only)
