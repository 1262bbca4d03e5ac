"""Tables of the report. In: rows and columns. Out: finished texts, which the templates escape."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

NOTHING = "—"
"""What stands in a cell without a value."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table; numbers are set right, `code` in a fixed-width face, `wide` texts may break.

    Attributes:
        cell: the finished text of a row.
        optional: left out where no row has anything in it.
    """

    title: str
    cell: Callable[[Any], str]
    numeric: bool = False
    code: bool = False
    wide: bool = False
    optional: bool = False


def number(title: str, cell: Callable[[Any], str], *, optional: bool = False) -> TableColumn:
    """A column of numbers."""
    return TableColumn(title, cell, numeric=True, optional=optional)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of finished texts.

    Attributes:
        omitted: number of further rows that are not shown.
        summary: text of the fold the table hides behind; None shows it openly.
        queries: names of the queries behind it, where it is no part of a figure that names them.
    """

    template: ClassVar[str] = "table"
    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[str]]
    omitted: int = 0
    summary: str | None = None
    queries: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        rows: Sequence[Any],
        columns: Sequence[TableColumn],
        most: int | None = None,
        summary: str | None = None,
        queries: Sequence[str] = (),
    ) -> "Table":
        """A table of these rows, the first `most` of them shown."""
        shown = rows[:most]
        cells = [[column.cell(row) for column in columns] for row in shown]
        kept = [place for place, column in enumerate(columns) if not (column.optional and _is_empty(cells, place))]
        texts = [[row[place] for place in kept] for row in cells]
        return cls([columns[place] for place in kept], texts, len(rows) - len(shown), summary, queries)


def _is_empty(cells: Sequence[Sequence[str]], place: int) -> bool:
    return all(row[place] == NOTHING for row in cells)
