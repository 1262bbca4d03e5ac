"""Lag of telemetry against the trace. Reads fabric.telemetry_series, timeline.segment; fills fabric.telemetry_lag.

Idea: power (or the share of active SMs) rises and falls with what the device computes. The lag is where readings and
computed share correlate best, if that is beyond chance for all lags tried, and no other lag comes close: a steady or a
strictly periodic load has no edges that tell. Then the host's clock is taken for the tool's, which is said.
Not handled: a tool whose lag changes during the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.stats import t_p_value
from traceforge.store.database import Store
from traceforge.thresholds import fabric as thresholds

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

_SAMPLES = """
SELECT t.run_id, t.source_id, r.time_basis, t.rank, t.metric, s.raw_at_ns, s.value,
  align.ahead_ns(s.raw_at_ns, p) AS ahead_ns
FROM fabric.telemetry_series AS t
JOIN raw.telemetry_series AS r USING (source_id, series_id)
JOIN raw.telemetry_sample AS s USING (source_id, series_id)
ASOF LEFT JOIN align.clock_piece AS p
  ON p.run_id = t.run_id AND p.rank = t.clock_rank AND COALESCE(s.raw_at_ns, 0) >= p.raw_from_ns
WHERE t.rank IS NOT NULL AND t.run_id = ? AND t.source_id = ?
  AND t.metric IN ('sm_active_share', 'power_w', 'busy_share', 'sm_clock_mhz')
ORDER BY t.rank, t.metric, s.raw_at_ns
"""
_FILES = "SELECT DISTINCT run_id, source_id FROM fabric.telemetry_series WHERE rank IS NOT NULL ORDER BY ALL"
_COMPUTE = """
SELECT rank, start_ns, start_ns + duration_ns AS end_ns FROM timeline.segment
WHERE run_id = ? AND phase = 'compute' AND LIST_CONTAINS(?, rank) ORDER BY rank, start_ns
"""
_SPAN = "SELECT MIN(start_ns), MAX(start_ns + duration_ns) FROM timeline.iteration WHERE run_id = ?"
# What follows the load most closely, first.
_FOLLOWS = ("sm_active_share", "power_w", "busy_share")
_QUARTER_HOUR_NS = 15 * 60 * 1_000_000_000
_MOST_QUARTERS = 56  # zones lie within 14 hours of UTC
_MOST_RANKS = 8
_MOST_SAMPLES = 20_000
_STEPS_AN_INTERVAL = 4
_SCHEMA = {
    "run_id": pl.Int32, "source_id": pl.Int32, "status": pl.String, "zone_ns": pl.Int64, "lag_ns": pl.Int64,
    "step_ns": pl.Int64, "interval_ns": pl.Int64, "correlation": pl.Float64, "rival_correlation": pl.Float64,
    "samples": pl.Int64, "zones": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    """What one device was read to do, and what its rank computed.

    Attributes:
        at_ns, value: readings, by the host's clock as it stands on the trace's; of shape (samples,).
        start_ns, end_ns: stretches of compute, aligned clock, in order; of shape (stretches,).
    """

    at_ns: Int64s
    value: Float64s
    start_ns: Int64s
    end_ns: Int64s

    def computed_share(self, until_ns: Float64s, window_ns: float) -> Float64s:
        """Share of compute in the windows that end at some times."""
        edges = np.stack([self.start_ns, self.end_ns], axis=1).ravel().astype(np.float64)
        lasts = np.stack([np.zeros(len(self.start_ns)), self.end_ns - self.start_ns], axis=1).ravel()
        spent = np.cumsum(lasts)
        share: Float64s = (
            np.interp(until_ns, edges, spent) - np.interp(until_ns - window_ns, edges, spent)
        ) / window_ns
        return share


@dataclass(frozen=True, slots=True)
class LagFit:
    """How well lags fit; None where none could be tried."""

    lag_ns: int
    step_ns: int
    correlation: float | None
    rival: float | None
    samples: int
    is_sure: bool


def rows(store: Store) -> pl.DataFrame:
    """One row a file."""
    found = [_file(store, run_id, source_id) for run_id, source_id in store.rows(_FILES)]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _file(store: Store, run_id: int, source_id: int) -> dict[str, Any]:
    known = {"run_id": run_id, "source_id": source_id, "samples": 0, "zones": 0}
    samples = store.query(_SAMPLES, [run_id, source_id])
    timed = samples.filter(pl.col("raw_at_ns").is_not_null())
    first_ns, last_ns = store.rows(_SPAN, [run_id])[0]
    if timed.is_empty():
        return known | {"status": "no_times"}
    interval_ns = _interval_ns(timed)
    known |= {"interval_ns": interval_ns}
    if first_ns is None:
        return known | {"status": "elsewhere"}
    timed = timed.with_columns(at_ns=pl.col("raw_at_ns") - pl.col("ahead_ns").fill_null(0))
    zones = _zones(timed, first_ns, last_ns)
    if timed["time_basis"][0] == "utc":
        zones = [zone for zone in zones if zone == 0]
    at_ns = timed["at_ns"]
    # Readings may lie around the trace and none within.
    within = [zone for zone in zones if (at_ns - zone).is_between(first_ns, last_ns).any()]
    if not (fitting := within or zones):
        return known | {"status": "elsewhere"}
    fits = {zone: lag_of(_loads(store, run_id, timed, zone), interval_ns, first_ns, last_ns) for zone in fitting}
    best = max(fits, key=lambda zone: (fits[zone].is_sure, fits[zone].correlation or 0.0, -abs(zone)))
    fit = fits[best]
    known |= {"zones": len(fitting)}
    if len(fitting) > 1 and not fit.is_sure and 0 not in fitting:
        return known | {"status": "unclear"}
    zone = best if fit.is_sure or 0 not in fitting else 0
    fit = fits[zone]
    return known | {
        "status": "measured" if fit.is_sure else "assumed", "zone_ns": zone, "step_ns": fit.step_ns,
        "lag_ns": fit.lag_ns if fit.is_sure else None, "correlation": fit.correlation, "rival_correlation": fit.rival,
        "samples": fit.samples,
    }  # fmt: skip


def _interval_ns(timed: pl.DataFrame) -> int:
    """Median time between readings of one series."""
    gaps = timed.select(pl.col("raw_at_ns").diff().over("rank", "metric")).to_series().drop_nulls()
    return max(int(median), 1) if isinstance(median := gaps.median(), int | float) else 1


def _zones(timed: pl.DataFrame, first_ns: int, last_ns: int) -> list[int]:
    """Zones in which the file overlaps the trace."""
    at_ns = timed["at_ns"].to_numpy()
    least, most = int(at_ns.min()), int(at_ns.max())
    every = [n * _QUARTER_HOUR_NS for n in range(-_MOST_QUARTERS, _MOST_QUARTERS + 1)]
    return [zone for zone in every if least - zone <= last_ns and most - zone >= first_ns]


def _loads(store: Store, run_id: int, timed: pl.DataFrame, zone_ns: int) -> list[DeviceLoad]:
    """Readings and compute of the first ranks that have a metric that follows the load."""
    metric = next((name for name in _FOLLOWS if (timed["metric"] == name).any()), None)
    first_ns, last_ns = store.rows(_SPAN, [run_id])[0]
    near = thresholds.MOST_LAG_NS + 2 * _interval_ns(timed)
    chosen = timed.filter(
        pl.col("metric").eq_missing(pl.lit(metric))
        & (pl.col("at_ns") - zone_ns).is_between(first_ns - near, last_ns + near)
    ).head(_MOST_RANKS * _MOST_SAMPLES)
    ranks = chosen["rank"].unique().sort().to_list()[:_MOST_RANKS]
    compute = store.query(_COMPUTE, [run_id, ranks])
    loads = []
    for rank in ranks:
        own, spans = chosen.filter(pl.col("rank") == rank), compute.filter(pl.col("rank") == rank)
        starts, ends = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
        loads.append(DeviceLoad(own["at_ns"].to_numpy() - zone_ns, own["value"].to_numpy(), starts, ends))
    return loads


def lag_of(loads: Sequence[DeviceLoad], interval_ns: int, first_ns: int, last_ns: int) -> LagFit:
    """The lag at which readings follow the load best.

    Args:
        interval_ns: between readings; each stands for the time since the one before.
        first_ns, last_ns: the trace, outside which nothing is known of the load.
    """
    step_ns = max(interval_ns // _STEPS_AN_INTERVAL, 1)
    reach = max(thresholds.MOST_LAG_NS, 2 * interval_ns) // step_ns
    steps = np.arange(-reach, reach + 1)[:: max(1, reach // _MOST_SAMPLES)]
    found = [_correlation(loads, int(step) * step_ns, interval_ns, first_ns, last_ns) for step in steps]
    least = max((count for _, count in found), default=0) * thresholds.LEAST_LAG_COVERAGE
    told = [
        (r, int(step), count)
        for step, (r, count) in zip(steps, found, strict=True)
        if r is not None and count >= max(least, thresholds.LEAST_LAG_SAMPLES)
    ]
    if not told:
        return LagFit(0, step_ns, None, None, max((count for _, count in found), default=0), is_sure=False)
    best, step, count = max(told)
    others = [r for r, other, _ in told if abs(other - step) * step_ns > 2 * interval_ns]
    rival = max(others, default=None)
    chance = len(told) * _chance(best, count)
    is_apart = rival is None or best - rival >= thresholds.LAG_MARGIN
    is_sure = best >= thresholds.LEAST_LAG_CORRELATION and chance <= thresholds.LAG_CHANCE and is_apart
    return LagFit(step * step_ns, step_ns, best, rival, count, is_sure)


def _correlation(
    loads: Sequence[DeviceLoad], lag_ns: int, interval_ns: int, first_ns: int, last_ns: int
) -> tuple[float | None, int]:
    """Correlation over all devices, each about its own mean, and the readings of the device that has most."""
    shares, values, most = [], [], 0
    for load in loads:
        until = load.at_ns - lag_ns
        inside = (until - interval_ns >= first_ns) & (until <= last_ns)
        if inside.sum() < 2 or not len(load.start_ns):
            continue
        share = load.computed_share(until[inside].astype(np.float64), float(interval_ns))
        shares.append(share - share.mean())
        values.append(load.value[inside] - load.value[inside].mean())
        most = max(most, int(inside.sum()))
    if not shares:
        return None, 0
    x, y = np.concatenate(shares), np.concatenate(values)
    spread = float(np.sqrt((x * x).mean()))
    scale = float(np.sqrt((x * x).sum() * (y * y).sum()))
    if spread < thresholds.LEAST_LOAD_SPREAD or not scale > 0:
        return None, most
    return float((x * y).sum() / scale), most


def _chance(correlation: float, samples: int) -> float:
    """Probability that unrelated readings correlate as well at one lag."""
    degrees = samples - 2
    t = correlation * np.sqrt(degrees / max(1 - correlation**2, np.finfo(float).tiny))
    return float(t_p_value(t, degrees)) / 2
