"""Which ranks are read together. Reads align.rank; fills align.rank_batch, by which tables are made in parts."""

import polars as pl

from traceforge.align.rank_batches import planned_batches
from traceforge.store.database import Store

_COLUMNS = ("run_id", "first_rank", "last_rank", "first_source_id", "last_source_id")


def rows(store: Store) -> pl.DataFrame:
    """One row a batch of ranks."""
    found = []
    for batch in planned_batches(store):
        files = [one.source_id for one in batch.ranks]
        found.append((batch.run_id, batch.ranks[0].rank, batch.ranks[-1].rank, min(files), max(files)))
    return pl.DataFrame(found, schema=dict.fromkeys(_COLUMNS, pl.Int32), orient="row")
