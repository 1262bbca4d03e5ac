"""What a planner reads of each number of ranks. In: a curve, or points of one scale, and assumptions. Out: `PlanRow`.

Every number is worked out from the throughput and its band; what no trace contains (prices, failures) is in
`Assumptions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.forecast.curve import marginal_efficiency
from traceforge.forecast.ensemble import Ensemble
from traceforge.forecast.goodput import Assumptions, cost_per_sample, energy_per_sample_j, job_time, reliability
from traceforge.forecast.scale_point import ScalePoint
from traceforge.stats import NORMAL


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One number of ranks; see forecast.scale for the fields, and `JobTime` for those of the job.

    Attributes:
        refusal: why nothing is said of the throughput; None where something is.
    """

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
    refusal: str | None = None


def plan(ensemble: Ensemble, ranks: Sequence[int] | NDArray[np.float64], assumed: Assumptions) -> list[PlanRow]:
    """The plan at these numbers of ranks; throughput in samples where `assumed` knows the batch."""
    at = np.asarray(ranks, dtype=np.float64)
    unit = assumed.batch or 1.0
    found = ensemble.predict(at)
    marginal = marginal_efficiency(ensemble, at)
    result = []
    for place, count in enumerate(ranks):
        band = tuple(
            None if np.isnan(x[place]) else unit * float(x[place]) for x in (found.value, found.low, found.high)
        )
        added = None if band[0] is None else float(marginal[place])
        row = _row(int(count), bool(found.extrapolated[place]), band, unit * ensemble.base_per_rank, added, assumed)
        result.append(replace(row, refusal=ensemble.boundary.refusal(count)))
    return result


def plan_of_points(points: Sequence[ScalePoint], assumed: Assumptions) -> list[PlanRow]:
    """The plan at measured scales alone; efficiency against the first."""
    unit = assumed.batch or 1.0
    base = unit * points[0].throughput / points[0].ranks
    result = []
    for point in points:
        value, off = unit * point.throughput, NORMAL * (point.error or 0.0)
        # A throughput is one over a time, whose interval is symmetric.
        ends = (None, None) if point.error is None else (value / (1 + off), value / (1 - off) if off < 1 else None)
        result.append(_row(point.ranks, False, (value, *ends), base, None, assumed))
    return result


def scales_to_plan(ensemble: Ensemble) -> list[int]:
    """Measured scales and doublings, up to the furthest that a value is given for."""
    return [point.ranks for point in ensemble.points] + [ensemble.largest.ranks * 2, ensemble.furthest]


def _row(
    ranks: int,
    extrapolated: bool,
    band: tuple[float | None, ...],
    base: float,
    added: float | None,
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
        marginal_efficiency=added,
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
