"""Fills forecast.knee: knees and peak of every run's curve."""

import polars as pl

from traceforge.forecast.curve import limits
from traceforge.forecast.fitted import fitted
from traceforge.store.database import Store


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, knee); none without a curve."""
    result: list[dict[str, object]] = []
    for run_id, found in fitted(store, with_band=False).items():
        result += [
            {"run_id": run_id, "knee": limit.name, "ranks": limit.ranks, "low": limit.low, "high": limit.high}
            for limit in (limits(found.ensemble) if found.ensemble else ())
        ]
    return pl.DataFrame(result, infer_schema_length=None)
