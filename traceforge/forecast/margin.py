"""Fills forecast.margin: where the time of one more rank goes."""

import polars as pl

from traceforge.forecast.curve import marginal_parts, one_more_rank
from traceforge.forecast.fitted import fitted
from traceforge.forecast.goodput import Assumptions
from traceforge.forecast.plan import scales_to_plan
from traceforge.store.database import Store


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, number of ranks, part); none without a curve."""
    result: list[dict[str, object]] = []
    for run_id, found in fitted(store, with_band=False).items():
        ensemble = found.ensemble
        if ensemble is None:
            continue
        for ranks in scales_to_plan(ensemble)[1:]:
            verdict = one_more_rank(ensemble, ranks)
            result += [
                {"run_id": run_id, "ranks": ranks, "part": part, "share": share, "one_more_rank": verdict}
                for part, share in marginal_parts(ensemble, ranks, Assumptions()).items()
            ]
    return pl.DataFrame(result, infer_schema_length=None)
