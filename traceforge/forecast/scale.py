"""Fills forecast.scale: the measured points of every run's curve, the ensemble through them, and each of its models."""

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import polars as pl

from traceforge.forecast.curve import throughput_of
from traceforge.forecast.ensemble import Ensemble
from traceforge.forecast.goodput import Assumptions
from traceforge.forecast.plan import plan, plan_of_points, scales_to_plan
from traceforge.forecast.points import Curve, Row, rows_of_curves
from traceforge.store.database import Store

_LINE_POINTS = 24


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, model or measured run, number of ranks)."""
    return rows_of_curves(store, scale_rows)


def scale_rows(curve: Curve) -> Iterator[Row]:
    """The measured runs of a curve, and where there are several scales the ensemble and its models."""
    points = sorted(curve.points.items(), key=lambda item: item[1].ranks)
    measured = plan_of_points([point for _, point in points], Assumptions())
    for (run_id, _), planned in zip(points, measured, strict=True):
        yield {"model": "measured", "measured_run_id": run_id, **_scale_row(asdict(planned))}
    if curve.ensemble is None:
        return
    ensemble, base = curve.ensemble, curve.ensemble.base_per_rank
    rows = [asdict(row) for row in plan(ensemble, _ranks_to_show(ensemble), Assumptions())]
    yield from ({"model": "ensemble", **_scale_row(row)} for row in rows)
    for member in ensemble.members:
        throughput = throughput_of(member)(np.array([row["ranks"] for row in rows], dtype=np.float64))
        for row, value in zip(rows, throughput, strict=True):
            if row["refusal"] is not None:
                continue
            alone = {"ranks": row["ranks"], "extrapolated": row["extrapolated"], "throughput": float(value)}
            alone["efficiency"] = alone["throughput"] / row["ranks"] / base
            yield {"model": member.model.name, **alone, "value": alone["throughput"] / row["ranks"]}


def _scale_row(planned: Row) -> Row:
    """A row of forecast.scale from one of the plan."""
    ranks = planned["ranks"]
    throughputs = {"value": "throughput", "low": "throughput_low", "high": "throughput_high"}
    paces = {name: None if planned[of] is None else planned[of] / ranks for name, of in throughputs.items()}
    kept = (
        "ranks", "extrapolated", "throughput", "efficiency", "efficiency_low", "efficiency_high", "marginal_efficiency",
        "work_share", "cost_per_sample", "cost_low", "cost_high", "refusal",
    )  # fmt: skip
    return paces | {name: planned[name] for name in kept}


def _ranks_to_show(ensemble: Ensemble) -> list[int]:
    """Numbers of ranks for a line: those to plan, and enough between."""
    line = np.geomspace(ensemble.smallest.ranks, ensemble.furthest, _LINE_POINTS).round().astype(int).tolist()
    return sorted({*line, *scales_to_plan(ensemble)})
