"""Curves of a database. In: forecast.point, replay.calibration. Out: one `ScalePoint` a run, and its fitted curve.

A run's curve is made of the runs of the same database that compare to it (see `comparison`); the others are named
with the field in which they differ. Runs that lie on one curve share one fit.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from traceforge.forecast.comparison import FieldDifference, differences
from traceforge.forecast.ensemble import Ensemble, fit_ensemble
from traceforge.forecast.scale_point import ScalePoint, StepTerms
from traceforge.store.database import Store

Row = dict[str, Any]

_FACTS = ("compute_ns", "dtype", "algorithm", "nccl_version", "size_bytes", "operations")

_COUPLING = """
SELECT run_id, GREATEST(0, coefficient) AS spread
FROM replay.calibration
WHERE mechanism = 'arrival_spread' AND verdict = 'identifiable' AND coefficient IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Curve:
    """Runs that lie on the curve of one of them.

    Attributes:
        points: by run; the run itself first.
        refused: runs left out, with the fields in which they differ.
        ensemble: None where all points lie at one scale.
    """

    points: Mapping[int, ScalePoint]
    refused: Mapping[int, list[FieldDifference]]
    ensemble: Ensemble | None


def points_of(store: Store) -> dict[int, ScalePoint]:
    """The point of each run that has one, by run_id; throughput counts iterations a second times ranks."""
    spread = dict(store.rows(_COUPLING))
    rows = store.records("FROM forecast.point WHERE step_ns > 0 ORDER BY run_id")
    return {row["run_id"]: _point(row, spread.get(row["run_id"], 0.0)) for row in rows}


def curves(store: Store) -> dict[int, Curve]:
    """The fitted curve of every run that has a point."""
    points = points_of(store)
    ensembles: dict[frozenset[int], Ensemble | None] = {}
    found = {}
    for run_id, own in points.items():
        others = {other: differences(own, point) for other, point in points.items() if other != run_id}
        used = {run_id: own} | {other: points[other] for other, differs in others.items() if not differs}
        members = frozenset(used)
        if members not in ensembles:
            ensembles[members] = fit_ensemble(list(used.values()))
        refused = {other: differs for other, differs in others.items() if differs}
        found[run_id] = Curve(used, refused, ensembles[members])
    return found


def rows_of_curves(store: Store, rows: Callable[[Curve], Iterable[Row]]) -> pl.DataFrame:
    """A table with rows of each run that has a point, from its curve."""
    found = [{"run_id": run_id, **row} for run_id, curve in store.once(curves).items() for row in rows(curve)]
    return pl.DataFrame(found, infer_schema_length=None)


def _point(row: Mapping[str, Any], spread: float) -> ScalePoint:
    ranks, step_ns, error_ns = int(row["ranks"]), float(row["step_ns"]), row["step_error_ns"]
    facts = {name: row[name] for name in _FACTS if row[name] is not None and row[name] != ""}
    if row["hosts"] is not None:
        facts["spans_hosts"] = "yes" if row["hosts"] > 1 else "no"
    return ScalePoint(
        name=row["run_name"],
        ranks=ranks,
        throughput=ranks * 1e9 / step_ns,
        error=None if error_ns is None else error_ns / step_ns,
        cv=row["cv"],
        terms=_terms(row, spread),
        facts=facts,
    )


def _terms(row: Mapping[str, Any], spread: float) -> StepTerms | None:
    """Where the time goes; None where waiting and transfer are not told apart."""
    if row["waiting_ns"] is None:
        return None
    waiting_s = row["waiting_ns"] / 1e9
    communication_ns = row["exposed_transfer_ns"] + row["hidden_transfer_ns"]
    return StepTerms(
        local_s=row["local_ns"] / 1e9,
        exposed_s=row["exposed_transfer_ns"] / 1e9,
        hidden_s=row["hidden_transfer_ns"] / 1e9,
        waiting_s=waiting_s,
        contention_s=min(spread * waiting_s, communication_ns / 1e9),
    )
