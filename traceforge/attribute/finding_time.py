"""When findings of slow compute hold. Reads what attribute.finding reads; fills attribute.finding_time.

Idea: telemetry is asked before the findings are written, since their next steps follow from its answer.
"""

import polars as pl

from traceforge.attribute.finding import load_findings
from traceforge.store.database import Store

_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.Int32,
    "finding_id": pl.Int32,
    "ranks": pl.List(pl.Int32),
    "first_iteration": pl.Int64,
    "last_iteration": pl.Int64,
}


def rows(store: Store) -> pl.DataFrame:
    """One row a finding of slow compute of some ranks, but not of the whole job."""
    found = [
        one.row | {"finding_id": number}
        for run_id in store.run_ids()
        for number, one in enumerate(store.once(load_findings, run_id))
        if one.row["cause"] == "slow_compute" and one.row["subject_kind"] in ("rank", "ranks", "host")
    ]
    return pl.DataFrame([[row[name] for name in _SCHEMA] for row in found], schema=_SCHEMA, orient="row")
