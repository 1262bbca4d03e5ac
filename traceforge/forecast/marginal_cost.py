"""Fills forecast.marginal_cost: where the time of one more rank goes."""

from collections.abc import Iterator

import polars as pl

from traceforge.forecast.curve import marginal_parts, one_more_rank
from traceforge.forecast.goodput import Assumptions
from traceforge.forecast.plan import scales_to_plan
from traceforge.forecast.points import Curve, Row, rows_of_curves
from traceforge.store.database import Store


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, number of ranks, part); none without a curve."""
    return rows_of_curves(store, marginal_cost_rows)


def marginal_cost_rows(curve: Curve) -> Iterator[Row]:
    """Where the time of one more rank goes, at every planned scale but the smallest."""
    ensemble = curve.ensemble
    if ensemble is None:
        return
    for ranks in scales_to_plan(ensemble)[1:]:
        verdict = one_more_rank(ensemble, ranks)
        for part, share in marginal_parts(ensemble, ranks, Assumptions()).items():
            yield {"ranks": ranks, "part": part, "share": share, "one_more_rank": verdict}
