"""Which files are read together. Reads meta.source; fills align.file_batch, by which tables are made in parts."""

import polars as pl

from traceforge.align.rank_batches import planned_files
from traceforge.store.database import Store


def rows(store: Store) -> pl.DataFrame:
    """One row a batch of files."""
    schema = {"first_source_id": pl.Int32, "last_source_id": pl.Int32}
    return pl.DataFrame(list(planned_files(store)), schema=schema, orient="row")
