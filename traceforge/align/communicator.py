"""The groups of ranks that communicate. Reads align.call and the groups listed; fills align.communicator."""

import polars as pl

from traceforge.align.groups import assign_groups
from traceforge.store.database import Store

_DESCRIPTIONS = """
-- PyTorch writes `undefined` where the program described no group.
SELECT r.run_id, g.process_group_name AS name, MIN(NULLIF(g.description, 'undefined')) AS description
FROM raw.process_group AS g
JOIN align.rank AS r USING (source_id)
GROUP BY r.run_id, g.process_group_name
"""


def rows(store: Store) -> pl.DataFrame:
    """One row a group that calls join."""
    found = store.once(assign_groups).communicators
    described = found.join(store.query(_DESCRIPTIONS), on=["run_id", "name"], how="left", maintain_order="left")
    return described.with_columns(pl.col("description").fill_null(""), size=pl.col("ranks").list.len().cast(pl.Int64))
