"""Curves of a database. In: forecast.point, forecast.outlook, replay.calibration. Out: a `ScalePoint` a run, its curve.

A run's curve is made of the runs of the same database that compare to it (see `comparison`); the others are named
with the field in which they differ. Runs that lie on one curve share one fit.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from traceforge.forecast.comparison import FieldDifference, differences
from traceforge.forecast.ensemble import Ensemble, fit_ensemble
from traceforge.forecast.regime import SPANS_HOSTS
from traceforge.forecast.scale_point import Lateness, ScalePoint, StepTerms
from traceforge.store.database import Store
from traceforge.thresholds import forecast as thresholds

Row = dict[str, Any]

_FACTS = ("compute_ns", "dtype", "algorithm", "nccl_version", "size_bytes", "operations", "hosts", "group_ranks")

_COUPLING = """
SELECT run_id, GREATEST(0, coefficient) AS spread
FROM replay.calibration
WHERE mechanism = 'arrival_spread' AND verdict = 'identifiable' AND coefficient IS NOT NULL
"""

_LATENESS = """
SELECT o.run_id, o.ranks // p.ranks AS factor, o.slowest_ns, o.low_ns, o.high_ns
FROM forecast.outlook AS o
JOIN (SELECT run_id, MIN(ranks) AS ranks FROM forecast.outlook GROUP BY run_id) AS p USING (run_id)
WHERE o.method IN ('measured', 'rank_blocks')
ORDER BY o.run_id, factor
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
    late: dict[int, dict[int, Lateness]] = {}
    for run_id, factor, *times_ns in store.rows(_LATENESS):
        late.setdefault(run_id, {})[int(factor)] = Lateness(*(time / 1e9 for time in times_ns))
    return {row["run_id"]: _point(row, spread.get(row["run_id"], 0.0), late.get(row["run_id"], {})) for row in rows}


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


def _point(row: Mapping[str, Any], spread: float, lateness: Mapping[int, Lateness]) -> ScalePoint:
    ranks, step_ns, error_ns = int(row["ranks"]), float(row["step_ns"]), row["step_error_ns"]
    facts = {name: row[name] for name in _FACTS if row[name] is not None and row[name] != ""}
    crossing = row["crossing_share"]
    if row["hosts"] is not None:
        # What counts is where the bytes go: groups within a host do not cross, however many hosts there are.
        crosses = row["hosts"] > 1 if crossing is None else crossing >= thresholds.CROSSING_SHARE
        facts[SPANS_HOSTS] = "yes" if crosses else "no"
    return ScalePoint(
        name=row["run_name"],
        ranks=ranks,
        throughput=ranks * 1e9 / step_ns,
        error=None if error_ns is None else error_ns / step_ns,
        cv=row["cv"],
        terms=_terms(row, spread),
        facts=facts,
        lateness=lateness,
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
