"""Frames gathered into batches. In: frames of any size by table. Out: batches of bounded size, handed to the store."""

from collections.abc import Callable

import polars as pl

from traceforge.records import Batch

BATCH_ROWS = 122_880  # a row group of DuckDB


class Batches:
    """Hands over the rows of each table once there are enough.

    Args:
        emit: takes each batch.
        batch_rows: how many rows a batch holds, up to one frame more.
    """

    def __init__(self, emit: Callable[[Batch], None], batch_rows: int = BATCH_ROWS) -> None:
        self._emit = emit
        self._batch_rows = batch_rows
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._row_counts: dict[str, int] = {}

    def add(self, table: str, rows: pl.DataFrame) -> None:
        """Take rows of a table."""
        self._frames.setdefault(table, []).append(rows)
        self._row_counts[table] = self._row_counts.get(table, 0) + rows.height
        if self._row_counts[table] >= self._batch_rows:
            self._hand_over(table)

    def flush(self) -> None:
        """Hand over what is left."""
        for table in list(self._frames):
            self._hand_over(table)

    def _hand_over(self, table: str) -> None:
        self._row_counts[table] = 0
        rows = pl.concat(self._frames.pop(table), rechunk=False)
        if rows.height:
            self._emit(Batch(table, rows))
