"""Which ranks are read together. Reads align.rank; fills align.rank_batch, by which tables are made in parts."""

import polars as pl

from traceforge.align.rank_batches import planned_batches
from traceforge.store.database import Store

_SCHEMA = {
    "run_id": pl.Int32,
    "first_rank": pl.Int32,
    "last_rank": pl.Int32,
    "first_source_id": pl.Int32,
    "last_source_id": pl.Int32,
    "most_events": pl.Int64,
}


def rows(store: Store) -> pl.DataFrame:
    """One row a batch of ranks."""
    found = []
    for batch in planned_batches(store):
        ranks, files = ([getattr(one, name) for one in batch.ranks] for name in ("rank", "source_id"))
        found.append((batch.run_id, ranks[0], ranks[-1], min(files), max(files), batch.most_events))
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")
