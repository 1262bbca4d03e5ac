"""Fills forecast.missing_measurement: what is missing for a curve, or would narrow its band most."""

from collections.abc import Iterator

import polars as pl

from traceforge.forecast.comparison import unknown_fields
from traceforge.forecast.ensemble import Ensemble
from traceforge.forecast.next_measurement import next_measurements
from traceforge.forecast.points import Curve, curves
from traceforge.store.database import Store
from traceforge.thresholds import forecast as thresholds

_RUNS = """
SELECT r.run_id,
  COALESCE(r.world_size, (SELECT COUNT(*) FROM align.rank AS k WHERE k.run_id = r.run_id)) AS ranks,
  COALESCE(p.iterations, 0) AS iterations
FROM meta.run AS r
LEFT JOIN forecast.point AS p USING (run_id)
ORDER BY r.run_id
"""

MissingMeasurement = tuple[str, str]
"""What to measure, and why."""

_ONE_POINT = (
    "One scale is one point: any curve through it would be invented. Fits on few scales miss by 5 to 20 % when they"
    " extrapolate to twice the size, so three or more scales are wanted."
)


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, thing that is missing)."""
    found = store.once(curves)
    result = []
    for run_id, ranks, iterations in store.rows(_RUNS):
        missing = [*missing_for(found.get(run_id), ranks), *_missing_iterations(iterations)]
        result += [{"run_id": run_id, "item": item, "why": why} for item, why in missing]
    return pl.DataFrame(result, infer_schema_length=None)


def missing_for(curve: Curve | None, ranks: int) -> Iterator[MissingMeasurement]:
    """What a run's curve lacks.

    Args:
        curve: None where the run has no point.
        ranks: number of ranks of the run; 0 where it is not known.
    """
    scales = {point.ranks for point in curve.points.values()} if curve else set()
    if len(scales) < 2:
        yield _other_scales(ranks), _ONE_POINT
        yield (
            "Batch size per rank, element type, algorithm and NCCL version of each run",
            "Runs that differ in these are not points of one curve.",
        )
    elif len(scales) < thresholds.LEAST_SCALES:
        yield (
            "The same job at a third scale",
            "Two points test no model: the line through them is Amdahl's by assumption, and it has no band.",
        )
    if curve and curve.ensemble:
        yield from _for_ensemble(curve.ensemble)
    for refused in curve.refused.values() if curve else ():
        first, *others = refused
        details = "; ".join([first.detail, *(f"{one.field}: {one.detail}" for one in others)])
        yield f"Run {first.name} with the same {first.field}", f"It is left out of the curve: {details}."


def _missing_iterations(iterations: int) -> Iterator[MissingMeasurement]:
    if iterations < thresholds.ENOUGH_ITERATIONS:
        why = f"This run has {iterations}; the slowest rank of many is set by rare delays, which few do not show."
        yield f"At least {thresholds.ENOUGH_ITERATIONS} judged iterations per run", why


def _other_scales(ranks: int) -> str:
    if ranks == 0:
        return "The same job at three or more scales"
    return f"The same job at two or more other scales than {'one rank' if ranks == 1 else f'{ranks} ranks'}"


def _for_ensemble(ensemble: Ensemble) -> Iterator[MissingMeasurement]:
    unknown = unknown_fields(ensemble.points)
    if unknown:
        yield (
            f"The {', '.join(unknown)} of each run",
            "No file states it for all of them; it is taken for equal, and a curve of unlike runs would mislead.",
        )
    best = next(iter(next_measurements(ensemble)), None)
    if best and best.width < best.width_now:
        why = (
            f"Of the scales tried it narrows the forecast for {ensemble.furthest} ranks most: the models now differ by"
            f" a factor of {best.width_now:.2f} there, those that would still agree with it by {best.width:.2f}."
        )
        yield f"The same job at {best.ranks} ranks", why
