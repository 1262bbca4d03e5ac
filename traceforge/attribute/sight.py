"""What would have been found. Reads what the search left; fills attribute.sight."""

import polars as pl

from traceforge.attribute.finding import load_search
from traceforge.attribute.findings.sight import sights
from traceforge.store.database import Store

_SCHEMA = {
    "run_id": pl.Int32,
    "subject_kind": pl.String,
    "cause": pl.String,
    "pattern": pl.String,
    "smallest_delay_ns_per_iteration": pl.Int64,
}


def rows(store: Store) -> pl.DataFrame:
    """One row a kind of subject and cause."""
    result = []
    for run_id in store.run_ids():
        searched = store.once(load_search, run_id)
        for one in sights(searched.run, searched.left, searched.transfers_ns) if searched else ():
            smallest = None if one.smallest_ns is None else round(one.smallest_ns)
            result.append((run_id, one.subject_kind, one.cause, one.pattern, smallest))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")
