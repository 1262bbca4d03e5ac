"""A forecast put together. In: measured runs, or points of a file, and assumptions. Out: `Answer`, ready to print.

Databases are read one after another, so that runs of several can lie on one curve.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from traceforge.errors import InputUnusableError, UsageError
from traceforge.forecast.comparison import differences, unknown_fields
from traceforge.forecast.curve import Limit, limits, marginal_parts, one_more_rank
from traceforge.forecast.ensemble import Ensemble, fit_ensemble
from traceforge.forecast.goodput import Assumptions, sensitivity
from traceforge.forecast.missing_measurement import MissingMeasurement, missing_for
from traceforge.forecast.next_measurement import Candidate, next_measurements
from traceforge.forecast.plan import PlanRow, plan, plan_of_points, scales_to_plan
from traceforge.forecast.points import Curve, points_of
from traceforge.forecast.scale_point import ScalePoint
from traceforge.forecast.what_if import Recorded, WhatIfRow, recorded_of, what_ifs
from traceforge.store.database import Store
from traceforge.thresholds import forecast as thresholds
from traceforge.units import plural

NOTHING_MEASURED = "no run has two judged iterations in a row, so that no throughput was measured"
NOTHING_MEASURED_HINT = '`traceforge sql DB "FROM forecast.missing_measurement"` lists what to record'
_TABLES = {
    "terms": """
SELECT term, duration_ns AS duration_ns_per_iteration, duration_ns / SUM(duration_ns) OVER () AS share
FROM (
  UNPIVOT (
    SELECT compute_ns AS compute, exposed_transfer_ns AS exposed_transfer, waiting_ns AS waiting,
      communication_ns AS communication, copy_ns AS copy, input_ns AS input, runtime_ns AS runtime, idle_ns AS idle
    FROM forecast.point
    WHERE run_id = ?
  ) ON COLUMNS(*) INTO NAME term VALUE duration_ns
)
WHERE duration_ns > 0
ORDER BY share DESC, term
""",
    "outlook": "SELECT * EXCLUDE (run_id) FROM forecast.outlook WHERE run_id = ? ORDER BY ranks",
    "stability": "SELECT * EXCLUDE (run_id) FROM forecast.stability WHERE run_id = ?",
}
_DROPPED = """
SELECT r.run_name, COUNT(i.iteration) AS iterations, COUNT(*) FILTER (NOT i.is_warmup AND NOT i.is_partial) AS judged
FROM meta.run AS r
LEFT JOIN timeline.iteration AS i USING (run_id)
WHERE NOT EXISTS (SELECT 1 FROM forecast.point AS p WHERE p.run_id = r.run_id AND p.step_ns IS NOT NULL)
GROUP BY r.run_id, r.run_name
ORDER BY r.run_id
"""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run of a database.

    Attributes:
        tables: terms of an iteration, and rows of forecast.outlook and forecast.stability.
    """

    point: ScalePoint
    recorded: Recorded
    tables: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of other numbers of ranks.

    Attributes:
        points: one a run, or line of a file, by ascending ranks.
        ensemble: None where all lie at one scale.
        unit: what the throughput counts.
        plan: at measured scales, twice and four times the largest, and where it was asked for.
        knees, parts, one_more: empty without a curve; parts and one_more at the largest measured scale.
        what_ifs: of the run with the most ranks; empty for points of a file.
        next_measurement: None without a band.
        sensitivity: cost of a sample at the largest scale, with an assumption at half and twice.
        unknown: fields that could not be compared.
        needs: what to measure for a curve, or to make it surer, and why.
        runs: the measured runs, by ascending ranks; empty for points of a file.
    """

    points: list[ScalePoint]
    ensemble: Ensemble | None
    assumed: Assumptions
    unit: str
    plan: list[PlanRow]
    knees: list[Limit]
    parts: dict[str, float]
    one_more: str | None
    what_ifs: list[WhatIfRow]
    next_measurement: Candidate | None
    sensitivity: dict[str, tuple[float, float]]
    unknown: list[str]
    needs: list[MissingMeasurement]
    runs: list[MeasuredRun]


def measured_runs(store: Store, names: Sequence[str] = ()) -> list[MeasuredRun]:
    """Runs of a database; all that have a point where no names are given."""
    result = []
    for run_id, point in points_of(store).items():
        if names and point.name not in names:
            continue
        tables = {name: store.records(sql, [run_id]) for name, sql in _TABLES.items()}
        result.append(MeasuredRun(point, recorded_of(store, run_id), tables))
    return result


def dropped_runs(store: Store, names: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Runs that `measured_runs` leaves out although they were asked for, and why."""
    rows = store.rows(_DROPPED)
    return [(name, _why_dropped(iterations, judged)) for name, iterations, judged in rows if not names or name in names]


def _why_dropped(iterations: int, judged: int) -> str:
    if not iterations:
        return "no iteration was recorded"
    if not judged:
        return f"none of {plural(iterations, 'iteration')} can be judged (no steps marked, cut off, or warm-up)"
    return f"only {judged} of {plural(iterations, 'iteration')} can be judged, and no two in a row"


def answer(
    runs: Sequence[MeasuredRun], listed: Sequence[ScalePoint], assumed: Assumptions, asked: Sequence[int] = ()
) -> Answer:
    """The forecast from runs and points of a file.

    Args:
        asked: further numbers of ranks to plan for.

    Raises:
        InputUnusableError: two points are not comparable; the field is named.
        UsageError: points of a file beside runs, whose throughputs count samples, without a batch to join them by;
            several runs, all at one scale.
    """
    runs = sorted(runs, key=lambda run: run.point.ranks)
    points = sorted([run.point for run in runs] + _in_iterations(listed, runs, assumed), key=lambda point: point.ranks)
    _refuse_unlike(points)
    if not runs:
        assumed = replace(assumed, batch=None)
    ensemble = fit_ensemble(points)
    if ensemble is None and len(runs) > 1:
        names = ", ".join(one.point.name for one in runs)
        raise UsageError("all runs are at one scale, which makes no curve", hint=f"name one with --run: {names}")
    planned = plan_of_points(points, assumed) if ensemble is None else _planned(ensemble, assumed, asked)
    largest = points[-1].ranks
    candidates = next_measurements(ensemble) if ensemble else []
    unit = assumed.batch or 1.0
    return Answer(
        points=points,
        ensemble=ensemble,
        assumed=assumed,
        unit="samples" if assumed.batch or not runs else "iterations x ranks",
        plan=planned,
        knees=limits(ensemble) if ensemble else [],
        parts=marginal_parts(ensemble, largest, assumed) if ensemble else {},
        one_more=one_more_rank(ensemble, largest) if ensemble else None,
        what_ifs=what_ifs(runs[-1].point, ensemble, runs[-1].recorded, assumed) if runs else [],
        next_measurement=candidates[0] if candidates else None,
        sensitivity=sensitivity(unit * points[-1].throughput, largest, assumed),
        unknown=unknown_fields(points) if len(points) > 1 else [],
        needs=list(missing_for(Curve(dict(enumerate(points)), {}, ensemble), points[0].ranks)),
        runs=list(runs),
    )


def _in_iterations(listed: Sequence[ScalePoint], runs: Sequence[MeasuredRun], assumed: Assumptions) -> list[ScalePoint]:
    if not listed or not runs:
        return list(listed)
    if assumed.batch is None:
        raise UsageError(
            "throughputs of a file count samples, those of traces iterations",
            hint="give --batch, the samples per rank and iteration, to join them",
        )
    return [replace(point, throughput=point.throughput / assumed.batch) for point in listed]


def _refuse_unlike(points: Sequence[ScalePoint]) -> None:
    for other in points[1:]:
        found = differences(points[0], other)
        if found:
            raise InputUnusableError(
                f"`{points[0].name}` and `{other.name}` are not points of one curve: their {found[0].field} differs"
                f" ({found[0].detail})",
                hint="take only runs that are alike, with --run NAME for each",
            )


def _planned(ensemble: Ensemble, assumed: Assumptions, asked: Sequence[int]) -> list[PlanRow]:
    furthest = thresholds.FURTHEST_BAND * ensemble.largest.ranks
    if any(not 1 <= ranks <= furthest for ranks in asked):
        raise UsageError(
            f"--ranks must lie between 1 and {furthest}, {thresholds.FURTHEST_BAND} times the largest measured scale",
            hint="measure at a larger scale first",
        )
    return plan(ensemble, sorted({*scales_to_plan(ensemble), *asked}), assumed)
