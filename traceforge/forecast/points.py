"""Scale points of a database. In: forecast.point, replay.calibration. Out: one `ScalePoint` a run, and its curve.

A run's curve is made of the runs of the same database that compare to it (see `comparison`); the others are named
with the field in which they differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceforge.forecast.comparison import Difference, differences
from traceforge.forecast.scale_point import ScalePoint, Terms
from traceforge.store.database import Store

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
        run_ids: those used, the run itself first, in step with `points`.
        points: one a run.
        refused: runs left out, by id, with the fields in which they differ.
    """

    run_ids: tuple[int, ...]
    points: tuple[ScalePoint, ...]
    refused: Mapping[int, tuple[Difference, ...]]


def points_of(store: Store) -> dict[int, ScalePoint]:
    """The point of each run that has one, by run_id; throughput counts iterations a second times ranks."""
    spread = dict(store.query(_COUPLING).rows())
    rows = store.query("FROM forecast.point WHERE step_ns > 0 ORDER BY run_id").to_dicts()
    return {row["run_id"]: _point(row, spread.get(row["run_id"], 0.0)) for row in rows}


def curve_of(run_id: int, points: Mapping[int, ScalePoint]) -> Curve:
    """The curve that a run lies on."""
    own = points[run_id]
    used, refused = [run_id], {}
    for other, point in points.items():
        if other == run_id:
            continue
        found = differences(own, point)
        if found:
            refused[other] = tuple(found)
        else:
            used.append(other)
    return Curve(tuple(used), tuple(points[each] for each in used), refused)


def curves(store: Store) -> Mapping[int, Curve]:
    """The curve of every run that has a point."""
    points = points_of(store)
    return {run_id: curve_of(run_id, points) for run_id in points}


def run_ids(store: Store) -> Sequence[int]:
    """All runs, whether or not they have a point."""
    return [int(run_id) for run_id in store.query("SELECT run_id FROM meta.run ORDER BY run_id")["run_id"]]


def _point(row: Mapping[str, Any], spread: float) -> ScalePoint:
    ranks, step_ns, error_ns = int(row["ranks"]), float(row["step_ns"]), row["step_error_ns"]
    waiting_s = row["waiting_ns"] / 1e9
    communication_ns = row["exposed_transfer_ns"] + row["hidden_transfer_ns"]
    terms = Terms(
        local_s=row["local_ns"] / 1e9,
        exposed_s=row["exposed_transfer_ns"] / 1e9,
        hidden_s=row["hidden_transfer_ns"] / 1e9,
        waiting_s=waiting_s,
        contention_s=min(spread * waiting_s, communication_ns / 1e9),
    )
    facts = {name: row[name] for name in _FACTS if row[name] is not None and row[name] != ""}
    if row["hosts"] is not None:
        facts["spans_hosts"] = "yes" if row["hosts"] > 1 else "no"
    return ScalePoint(
        name=row["run_name"],
        ranks=ranks,
        throughput=ranks * 1e9 / step_ns,
        error=None if error_ns is None else error_ns / step_ns,
        cv=row["cv"],
        terms=terms,
        facts=facts,
    )
