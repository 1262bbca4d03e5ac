"""The rows of one source as partitions. In: batches. Out: Parquet files below a folder, and what is in them.

Runs in the process that reads the source, so that the one that registers partitions only renames files. A file has all
columns of its table but `source_id`, which the name of its folder will hold, in the types of the table: what does not
fit, an unknown column or a NULL where there may be none, costs the source, as it would in a DuckDB file.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from traceforge.errors import QueryError
from traceforge.records import Batch, SourceSummary
from traceforge.store.folder import Partition, part_name
from traceforge.store.migrations import facts_form

if TYPE_CHECKING:
    import polars as pl

# Read in stretches of numbers or times: the least and the largest of each file say which files hold any of them.
_READ_BY_RANGE = frozenset({"raw.occurrence"})
_PART_BYTES = 8 * 1024 * 1024  # in memory; several batches of a large file, all of a small one


@dataclass(frozen=True, slots=True)
class PartitionedFile:
    """A file that was read into partitions, which wait for their place.

    Attributes:
        summary: what it says about itself.
        folder: where they are, one folder a table.
        partitions: what they are; their `source_id` is not known yet.
        size_bytes: of all of them on disk.
    """

    summary: SourceSummary
    folder: Path
    partitions: tuple[Partition, ...]
    size_bytes: int


class PartitionWriter:
    """Writes the rows of one source.

    Args:
        folder: of its own; need not exist.
        mark: begins the names of the files.
    """

    def __init__(self, folder: Path, mark: str) -> None:
        self._folder = folder
        self._mark = mark
        self._held: dict[str, list[pl.DataFrame]] = defaultdict(list)
        self._held_bytes: dict[str, int] = defaultdict(int)
        self._written: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def write(self, batch: Batch) -> None:
        """Take rows of one table.

        Raises:
            QueryError: they do not fit the table.
        """
        if batch.rows.is_empty():
            return
        rows = fitted(batch)
        self._held[batch.table].append(rows)
        self._held_bytes[batch.table] += int(rows.estimated_size())
        if self._held_bytes[batch.table] >= _PART_BYTES:
            self._write_part(batch.table)

    def finish(self, summary: SourceSummary) -> PartitionedFile:
        """Write what is still held."""
        for table in [table for table, held in self._held.items() if held]:
            self._write_part(table)
        partitions = tuple(
            Partition(-1, table, self._mark, len(parts), sum(rows for rows, _ in parts), sum(size for _, size in parts))
            for table, parts in sorted(self._written.items())
        )
        return PartitionedFile(summary, self._folder, partitions, sum(one.size_bytes for one in partitions))

    def _write_part(self, table: str) -> None:
        import polars as pl

        rows = pl.concat(self._held[table], rechunk=False)
        self._held[table], self._held_bytes[table] = [], 0
        # Parents are not made: once an interrupted ingest has removed the spool folder, nothing shall bring it back.
        self._folder.mkdir(exist_ok=True)
        folder = self._folder / table
        folder.mkdir(exist_ok=True)
        path = folder / part_name(self._mark, len(self._written[table]))
        rows.write_parquet(path, compression="lz4", statistics=table in _READ_BY_RANGE)
        self._written[table].append((rows.height, path.stat().st_size))


def fitted(batch: Batch) -> "pl.DataFrame":
    """The rows with all columns of their table, in order and in its types."""
    import polars as pl

    columns = _columns(batch.table)
    if unknown := set(batch.rows.columns) - columns.keys():
        raise QueryError(f"{batch.table} has no column {', '.join(sorted(unknown))}")
    # Series by series: a projection of the frame costs more than a small file has rows.
    rows = batch.rows
    fitted = pl.DataFrame(
        [
            rows[name].cast(dtype) if name in rows.columns else pl.Series(name, dtype=dtype).clear(rows.height)
            for name, dtype in columns.items()
        ]
    )
    required = facts_form()[batch.table].required - {"source_id"}
    if empty := [name for name in sorted(required) if fitted[name].null_count()]:
        raise QueryError(f"{batch.table} has rows without {', '.join(empty)}")
    return fitted


@cache
def _columns(table: str) -> "dict[str, pl.DataType]":
    """Columns of a raw table but `source_id`, with their types."""
    document = facts_form().get(table)
    if document is None or document.kind != "TABLE":
        raise QueryError(f"there is no table {table}")
    return {name: _dtype(kind) for name, kind in document.types.items() if name != "source_id"}


def _dtype(kind: str) -> "pl.DataType":
    import polars as pl

    plain = {
        "INTEGER": pl.Int32(),
        "BIGINT": pl.Int64(),
        "UBIGINT": pl.UInt64(),
        "VARCHAR": pl.String(),
        "BOOLEAN": pl.Boolean(),
        "DOUBLE": pl.Float64(),
    }
    return pl.List(plain[kind.removesuffix("[]")]) if kind.endswith("[]") else plain[kind]
