"""Fills forecast.scale: the curve of every run, or its one point.

The numbers of ranks are those measured, their doublings up to four times the largest, and enough between for a line.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.forecast.ensemble import FURTHEST, Ensemble
from traceforge.forecast.fitted import fitted
from traceforge.forecast.scale_point import ScalePoint
from traceforge.store.database import Store

Array = NDArray[np.float64]

_LINE_POINTS = 24
# Of the normal distribution, for the interval of a measured point.
_TWO_SIDED_95 = 1.96


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, model, number of ranks)."""
    result: list[dict[str, object]] = []
    for run_id, found in fitted(store, with_band=True).items():
        points, ensemble = found.curve.points, found.ensemble
        base = min(points, key=lambda point: point.ranks)
        result.append({"run_id": run_id, **measured_row(points[0], base)})
        if ensemble is not None:
            result += [{"run_id": run_id, **row} for row in curve_rows(ensemble, ranks_to_show(ensemble))]
    return pl.DataFrame(result, infer_schema_length=None)


def ranks_to_show(ensemble: Ensemble) -> Array:
    """Numbers of ranks for a curve, ascending and whole."""
    first, last = ensemble.smallest.ranks, ensemble.largest.ranks
    doublings = [last * factor for factor in (1, 2, FURTHEST)]
    line = np.geomspace(first, FURTHEST * last, _LINE_POINTS).round()
    return np.unique(np.concatenate([line, doublings, [point.ranks for point in ensemble.points]])).astype(np.float64)


def measured_row(point: ScalePoint, base: ScalePoint) -> dict[str, object]:
    """A measured point as a row."""
    pace = point.throughput / point.ranks
    off = None if point.error is None else _TWO_SIDED_95 * point.error
    return {
        "model": "measured",
        "ranks": point.ranks,
        "value": pace,
        "low": None if off is None else pace / (1 + off),
        "high": None if off is None or off >= 1 else pace / (1 - off),
        "extrapolated": False,
        "throughput": point.throughput,
        "efficiency": pace / (base.throughput / base.ranks),
    }


def curve_rows(ensemble: Ensemble, ranks: Array) -> Iterator[dict[str, object]]:
    """The ensemble and its models at these numbers of ranks."""
    base = ensemble.smallest.throughput / ensemble.smallest.ranks
    found = ensemble.predict(ranks)
    for name, value, low, high in [
        ("ensemble", found.value, found.low, found.high),
        *((one.model.name, ranks / one.fit.step_s(ranks)[0], None, None) for one in ensemble.members),
    ]:
        for at, count in enumerate(ranks):
            throughput = _number(value[at])
            yield {
                "model": name,
                "ranks": int(count),
                "value": None if throughput is None else throughput / count,
                "low": None if low is None or np.isnan(low[at]) else float(low[at]) / count,
                "high": None if high is None or np.isnan(high[at]) else float(high[at]) / count,
                "extrapolated": bool(found.extrapolated[at]),
                "throughput": throughput,
                "efficiency": None if throughput is None else throughput / count / base,
            }


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
