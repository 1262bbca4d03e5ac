"""Tables of a profiler's export. In: nothing. Out: what a source may ask of them, in whatever kind of file they are.

Idea: a source asks in plain SQL that SQLite and DuckDB both understand, with columns that are given as what they hold:
a column that is missing, or holds something else, is NULL. Not handled: what the tables mean, which the sources know.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

Row = tuple[Any, ...]


class TableFile(ABC):
    """Tables of a file, or of a folder of files.

    Attributes:
        columns: names of the columns of each table.
        unreadable: tables, and columns such as `NVTX_EVENTS.text`, that are there and cannot be read.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._texts: dict[int, str] = {}
        self.columns: dict[str, frozenset[str]] = {}
        self.unreadable: list[str] = []

    @abstractmethod
    def pieces(self, query: str, parameters: Sequence[object], most: int) -> Iterator[list[Row]]:
        """Rows of a query, so many at a time.

        Raises:
            InputUnusableError: the file is damaged.
        """

    @abstractmethod
    def _held(self, table: str, column: str, kind: str) -> str:
        """SQL of a column that exists, where it holds an `integer`, a `text` or a `blob`, else NULL."""

    @abstractmethod
    def _found_texts(self, ids: Sequence[int]) -> Iterator[Row]:
        """Number and text of the rows of StringIds that have some numbers."""

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a small query.

        Raises:
            InputUnusableError: the file is damaged.
        """
        return [row for piece in self.pieces(query, parameters, 10_000) for row in piece]

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is a table with these columns."""
        return table in self.columns and self.columns[table].issuperset(columns)

    def count(self, table: str) -> int:
        """Rows of a table; 0 where there is none."""
        return int(self.rows(f"SELECT COUNT(*) FROM {quoted(table)}")[0][0]) if table in self.columns else 0

    def integer(self, table: str, column: str) -> str:
        """SQL of a column where it holds an integer, else NULL; also where there is no such column."""
        return self._held(table, column, "integer") if self.has(table, column) else "NULL"

    def text(self, table: str, column: str) -> str:
        """SQL of a column where it holds a text, likewise."""
        return self._held(table, column, "text") if self.has(table, column) else "NULL"

    def blob(self, table: str, column: str) -> str:
        """SQL of the bytes of a column, whether they are declared as such or as text, likewise."""
        return self._held(table, column, "blob") if self.has(table, column) else "NULL"

    def texts(self, ids: Sequence[int | None]) -> dict[int, str]:
        """What StringIds says of some numbers."""
        new = sorted({number for number in ids if number is not None} - self._texts.keys())
        if new and self.has("StringIds", "id", "value"):
            self._texts |= {number: text for number, text in self._found_texts(new) if text is not None}
        return self._texts


def quoted(name: str) -> str:
    """A name as SQL's identifier."""
    return '"' + name.replace('"', '""') + '"'
