"""Fills forecast.member: for every run, which other runs compare to it."""

import polars as pl

from traceforge.forecast.points import curves, points_of
from traceforge.store.database import Store


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, run on its curve) or (run, run left out, field)."""
    points = points_of(store)
    result: list[dict[str, object]] = []
    for run_id, curve in curves(store).items():
        said = [(other, None, None) for other in curve.run_ids]
        said += [(other, one.field, one.detail) for other, found in curve.refused.items() for one in found]  # type: ignore[misc]
        for other, field, detail in sorted(said, key=lambda entry: (points[entry[0]].ranks, entry[0])):
            result.append(
                {
                    "run_id": run_id,
                    "member_run_id": other,
                    "name": points[other].name,
                    "ranks": points[other].ranks,
                    "throughput": points[other].throughput,
                    "cv": points[other].cv,
                    "is_used": field is None,
                    "field": field,
                    "detail": detail,
                }
            )
    return pl.DataFrame(result, infer_schema_length=None)
