"""What a planner reads of each number of ranks. In: a curve, or one point, and assumptions. Out: `PlanRow`.

Every number is worked out from the throughput and its band; what no trace tells (prices, failures) is in
`Assumptions`. Fills forecast.plan with the default assumptions; the command line takes others.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from traceforge.forecast.curve import marginal_efficiency
from traceforge.forecast.ensemble import FURTHEST, Ensemble
from traceforge.forecast.fitted import fitted
from traceforge.forecast.goodput import (
    Assumptions,
    cost_per_sample,
    energy_per_sample_j,
    job_time,
    reliability,
)
from traceforge.forecast.scale_point import ScalePoint
from traceforge.store.database import Store


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One number of ranks; see forecast.plan for the fields, and `JobTime` for those of the job."""

    ranks: int
    extrapolated: bool
    throughput: float | None
    throughput_low: float | None
    throughput_high: float | None
    efficiency: float | None
    efficiency_low: float | None
    efficiency_high: float | None
    marginal_efficiency: float | None
    work_share: float
    checkpoint_interval_s: float
    cost_per_sample: float | None
    cost_low: float | None
    cost_high: float | None
    energy_per_sample_j: float | None
    hours: float | None = None
    hours_low: float | None = None
    hours_high: float | None = None
    failures: float | None = None
    cost: float | None = None


def plan(ensemble: Ensemble, ranks: Sequence[int], assumed: Assumptions) -> list[PlanRow]:
    """The plan at these numbers of ranks; throughput in samples where `assumed` knows the batch."""
    at = np.array(ranks, dtype=np.float64)
    unit = assumed.batch or 1.0
    found = ensemble.predict(at)
    base = ensemble.smallest.throughput / ensemble.smallest.ranks
    marginal = marginal_efficiency(ensemble.value, at, base)
    result = []
    for place, count in enumerate(ranks):
        band = tuple(
            None if np.isnan(x[place]) else unit * float(x[place]) for x in (found.value, found.low, found.high)
        )
        gained = None if band[0] is None else float(marginal[place])
        result.append(_row(count, bool(found.extrapolated[place]), band, unit * base, gained, assumed))
    return result


def plan_of_points(points: Sequence[ScalePoint], assumed: Assumptions) -> list[PlanRow]:
    """The plan at measured scales alone, where no curve can be drawn."""
    unit = assumed.batch or 1.0
    base = unit * points[0].throughput / points[0].ranks
    result = []
    for point in points:
        off = None if point.error is None else 1.96 * point.error
        value = unit * point.throughput
        band = (value, None, None) if off is None else (value, value * (1 - off), value * (1 + off))
        result.append(_row(point.ranks, False, band, base, None, assumed))
    return result


def scales_to_plan(ensemble: Ensemble) -> list[int]:
    """Measured scales and doublings, up to the furthest that a value is given for."""
    last = ensemble.largest.ranks
    return [point.ranks for point in ensemble.points] + [last * 2, int(last * FURTHEST)]


def _row(
    ranks: int,
    extrapolated: bool,
    band: tuple[float | None, ...],
    base: float,
    gained: float | None,
    assumed: Assumptions,
) -> PlanRow:
    value, low, high = band
    rel = reliability(ranks, assumed)
    job = None if assumed.samples is None else job_time(assumed.samples, ranks, band, assumed)
    efficiency, efficiency_low, efficiency_high = (None if x is None else x / ranks / base for x in band)
    cost, cost_high, cost_low = (None if x is None else cost_per_sample(x, ranks, assumed) for x in band)
    return PlanRow(
        ranks=ranks,
        extrapolated=extrapolated,
        throughput=value,
        throughput_low=low,
        throughput_high=high,
        efficiency=efficiency,
        efficiency_low=efficiency_low,
        efficiency_high=efficiency_high,
        marginal_efficiency=gained,
        work_share=rel.share,
        checkpoint_interval_s=rel.interval_s,
        cost_per_sample=cost,
        cost_low=cost_low,
        cost_high=cost_high,
        energy_per_sample_j=None if value is None else energy_per_sample_j(value, ranks, assumed),
        hours=job.hours if job else None,
        hours_low=job.low_hours if job else None,
        hours_high=job.high_hours if job else None,
        failures=job.failures if job else None,
        cost=job.cost if job else None,
    )


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, number of ranks), at the default assumptions."""
    result: list[dict[str, object]] = []
    for run_id, found in fitted(store, with_band=True).items():
        ensemble = found.ensemble
        if ensemble is None:
            planned = plan_of_points(found.curve.points[:1], Assumptions())
        else:
            planned = plan(ensemble, scales_to_plan(ensemble), Assumptions())
        result += [{"run_id": run_id, **asdict(row)} for row in planned]
    frame = pl.DataFrame(result, infer_schema_length=None)
    return frame.drop("hours", "hours_low", "hours_high", "failures", "cost", strict=False)
