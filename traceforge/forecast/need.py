"""Fills forecast.need: what is missing for a curve, or would narrow its band most."""

from collections.abc import Iterator

import polars as pl

from traceforge.forecast.comparison import unknown_fields
from traceforge.forecast.ensemble import FURTHEST, Ensemble
from traceforge.forecast.fitted import Fitted, fitted
from traceforge.forecast.next_measurement import next_measurements
from traceforge.store.database import Store

_RUNS = """
SELECT r.run_id,
  COALESCE(r.world_size, (SELECT COUNT(*) FROM align.rank AS k WHERE k.run_id = r.run_id)) AS ranks,
  COALESCE(p.iterations, 0) AS iterations
FROM meta.run AS r
LEFT JOIN forecast.point AS p USING (run_id)
ORDER BY r.run_id
"""

Need = tuple[str, str]

_ONE_POINT = (
    "One scale is one point: any curve through it would be invented. Fits on few scales miss by 5 to 20 % when they"
    " extrapolate to twice the size, so three or more scales are wanted."
)
_ENOUGH_ITERATIONS = 10


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, thing that is missing)."""
    found = fitted(store, with_band=False)
    result = []
    for run_id, ranks, iterations in store.query(_RUNS).iter_rows():
        needs = [*of_curve(found.get(run_id), ranks), *_of_iterations(iterations)]
        result += [{"run_id": run_id, "item": item, "why": why} for item, why in needs]
    return pl.DataFrame(result, infer_schema_length=None)


def of_curve(found: Fitted | None, ranks: int) -> Iterator[Need]:
    """What a run's curve lacks.

    Args:
        ranks: number of ranks of the run; 0 where it is not known.
    """
    curve = found.curve if found else None
    scales = {point.ranks for point in curve.points} if curve else set()
    if len(scales) < 2:
        yield _other_scales(ranks), _ONE_POINT
        yield (
            "Batch size per rank, element type, algorithm and NCCL version of each run",
            "Runs that differ in these are not points of one curve.",
        )
    elif len(scales) == 2:
        yield (
            "The same job at a third scale",
            ("Two points test no model: the line through them is Amdahl's by assumption, and it has no band."),
        )
    if found and found.ensemble:
        yield from _of_points(found.ensemble)
    for refused in curve.refused.values() if curve else ():
        first = refused[0]
        yield f"Run {first.name} with the same {first.field}", f"It is left out of the curve: {first.detail}."


def _other_scales(ranks: int) -> str:
    if ranks == 0:
        return "The same job at three or more scales"
    return f"The same job at two or more other scales than {'one rank' if ranks == 1 else f'{ranks} ranks'}"


def _of_points(ensemble: Ensemble) -> Iterator[Need]:
    unknown = unknown_fields(ensemble.points)
    if unknown:
        yield (
            f"The {', '.join(unknown)} of each run",
            "No file states it for all of them; it is taken for equal, and a curve of unlike runs would mislead.",
        )
    if len(ensemble.points) < 3:
        return
    target = int(FURTHEST * ensemble.largest.ranks)
    candidates = next_measurements(ensemble, target)
    if candidates and candidates[0].width < candidates[0].width_now:
        best = candidates[0]
        why = (
            f"Of the scales tried it narrows the forecast for {target} ranks most: the models now differ by a factor"
            f" of {best.width_now:.2f} there, those that would still agree with it by {best.width:.2f}."
        )
        yield f"The same job at {best.ranks} ranks", why


def _of_iterations(iterations: int) -> Iterator[Need]:
    if iterations < _ENOUGH_ITERATIONS:
        why = f"This run has {iterations}; the slowest rank of many is set by rare delays, which few do not show."
        yield f"At least {_ENOUGH_ITERATIONS} judged iterations per run", why
