"""Fills forecast.stability: how steady a run is, by its iteration times, own times, last arrivers and owners of delay.

A cluster can be slow although no machine is: when every rank is sound by itself but each step waits for whichever
happens to be last, the coupling is at fault. The verdict says so only with evidence: waiting is large, no rank is
lastingly late, no part was found at fault, and the last arriver changes about as often as chance would have it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.forecast.order_statistics import parts_of
from traceforge.forecast.own_time import own_time
from traceforge.forecast.points import curves
from traceforge.forecast.restart import Restart, restarts, windows
from traceforge.stats import Trend, bootstrap_interval, mean_interval, slope
from traceforge.store.database import Store
from traceforge.thresholds import forecast as thresholds
from traceforge.units import format_ns, format_share, plural

Array = NDArray[np.float64]

_PER = 100

_ITERATIONS = """
SELECT iteration, CAST(duration_ns AS DOUBLE) AS duration_ns FROM timeline.iteration
WHERE run_id = ? AND NOT is_warmup AND NOT is_partial ORDER BY iteration
"""

_LAST = """
WITH caused AS (
  SELECT iteration, last_rank, SUM(skew_ns) AS skew_ns FROM timeline.collective
  WHERE run_id = ? AND iteration IS NOT NULL AND complete GROUP BY ALL
)
SELECT iteration, ARG_MAX(last_rank, (skew_ns, -last_rank)) AS owner FROM caused GROUP BY iteration ORDER BY iteration
"""

_OWNER = """
WITH owned AS (
  SELECT iteration, cause, SUM(delay_ns) AS delay_ns FROM attribute.delay
  WHERE run_id = ? AND delay_ns > 0 GROUP BY ALL
)
SELECT iteration, ARG_MAX(cause, (delay_ns, cause)) AS owner FROM owned GROUP BY iteration ORDER BY iteration
"""

_FOUND = """
SELECT COUNT(*) FROM attribute.finding
WHERE run_id = ? AND confidence IN ('high', 'medium') AND subject_kind <> 'job'
"""

_WAITING = """
SELECT SUM(p.duration_ns) FILTER (WHERE p.phase = 'wait') / SUM(p.duration_ns)
FROM timeline.phase AS p JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE p.run_id = ? AND NOT i.is_warmup AND NOT i.is_partial
"""


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of forecast.stability without its run; see there for the fields."""

    measure: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    meaning: str


def trend(numbers: Array, values: Array, mean: float) -> Trend:
    """The slope of values by iteration number, as a share of the mean per 100 iterations."""
    scale = _PER / mean if mean else 0.0
    return Trend(*(scale * end for end in slope(numbers, values)))


def changes(owners: Sequence[object]) -> float:
    """Share of successive pairs whose owner differs."""
    return sum(a != b for a, b in pairwise(owners)) / (len(owners) - 1)


def by_chance(owners: Sequence[object]) -> float:
    """The same, expected if each were drawn at random with the frequency that it has."""
    _, counts = np.unique([str(owner) for owner in owners], return_counts=True)
    return float(1 - ((counts / counts.sum()) ** 2).sum())


def of_iterations(numbers: Array, duration_ns: Array) -> Iterator[Measure]:
    """Variation, tail and trends of iteration times."""
    count, mean, median = len(duration_ns), float(duration_ns.mean()), float(np.median(duration_ns))
    low, high = bootstrap_interval(duration_ns, _variation, np.random.default_rng(0)) or (None, None)
    cv = float(_variation(duration_ns[None])[0])
    yield Measure("cv", cv, low, high, count, "Standard deviation over mean of iteration times.")
    for name, share, least in (
        ("p95_over_median", 0.95, thresholds.LEAST_FOR_P95),
        ("p99_over_median", 0.99, thresholds.LEAST_FOR_P99),
    ):
        if count >= least:
            value = float(np.quantile(duration_ns, share)) / median
            meaning = f"One iteration in {round(1 / (1 - share))} takes at least this many times the median."
            yield Measure(name, value, None, None, count, meaning)
    for name, values, of in (
        ("duration_trend", duration_ns, "Iteration time"),
        ("variation_trend", np.abs(duration_ns - median), "Distance from the median iteration time"),
    ):
        found = trend(numbers, values, mean)
        change = f"{'rises' if found.value > 0 else 'falls'} by {format_share(abs(found.value))}"
        text = f"{of} {change} of an iteration per {_PER} iterations."
        meaning = text if found.is_clear else f"{of} shows no trend over {_PER} iterations: the interval includes 0."
        yield Measure(name, *found, count, meaning)


def _variation(duration_ns: Array) -> Array:
    """Standard deviation over mean along the last axis."""
    result: Array = duration_ns.std(axis=-1, ddof=1) / duration_ns.mean(axis=-1)
    return result


def of_ranks(numbers: Array, own_ns: Array, mean_ns: float) -> Iterator[Measure]:
    """The most lasting lateness of a rank, its share, and the drift of the slowest."""
    parts, count = parts_of(own_ns), len(own_ns)
    worst = int(parts.persistent[0].argmax())
    late = (own_ns[:, worst] - own_ns.mean(axis=1) - np.median(parts.persistent[0])) / mean_ns
    much = f"{format_share(thresholds.LASTING_LATENESS)} is much"
    meaning = f"How late the slowest rank stays behind the median one, as a share of the iteration ({much})."
    low, high = mean_interval(late) or (None, None)
    yield Measure("lasting_lateness", float(late.mean()), low, high, count, meaning)
    meaning = "Share of the variance between ranks that stays with the same ranks: of machines, not of moments."
    yield Measure("persistent_share", parts.persistent_share, None, None, count, meaning)
    found = trend(numbers, own_ns[:, worst] - np.median(own_ns, axis=1), mean_ns)
    meaning = "The slowest rank falls further behind." if found.low > 0 else "The slowest rank does not fall behind."
    yield Measure("slowest_drift", *found, count, meaning)


def of_owners(name: str, what: str, owners: Sequence[object]) -> Measure:
    """How often an owner changes, against chance."""
    meaning = (
        f"How often {what} changes from one iteration to the next"
        f" (expected by chance: {format_share(by_chance(owners))})."
    )
    return Measure(name, changes(owners), None, None, len(owners) - 1, meaning)


def of_restart(restart: Restart) -> Measure:
    """A restart, with the number of repeated iterations."""
    meaning = (
        f"This run goes on from within run {restart.earlier}: {plural(restart.iterations, 'iteration')} were done twice"
        f" ({format_ns(restart.repeated_ns)}), {format_ns(restart.gap_ns)} after that run ended."
    )
    return Measure("repeated_iterations", float(restart.iterations), None, None, 1, meaning)


def verdict(
    waiting: float, lasting: Measure, churn: float, chance: float, count: int, *, is_found: bool = False
) -> Measure:
    """The outlook in one sentence, with its evidence; `is_found` where attribution is sure of a culprit."""
    late, lower, upper = lasting.value or 0.0, lasting.low or 0.0, lasting.high or 0.0
    who = f"who is last changes in {format_share(churn)} of iterations" if churn else "the same rank is always last"
    evidence = (
        f"waiting is {format_share(waiting)} of the time, the slowest rank is on average {format_share(max(0.0, late))}"
        f" of an iteration late, and {who}"
    )
    explained = max(thresholds.LASTING_LATENESS, thresholds.LASTING_PART_OF_WAITING * waiting)
    if waiting < thresholds.LARGE_WAITING:
        meaning = f"Ranks wait little for one another: {evidence}."
    elif lower > thresholds.LASTING_LATENESS:
        meaning = f"One part of the job is slow: {evidence}."
    elif is_found:
        meaning = f"What the verdict names is slow, and no rank is certain to lag behind throughout: {evidence}."
    elif upper < explained and chance > 0 and churn >= thresholds.CHURN_OF_CHANCE * chance:
        meaning = f"No part is slow, yet ranks wait for one another: {evidence}, as chance would have it."
    else:
        meaning = f"Whether one part is slow or ranks merely take turns is not clear: {evidence}."
    return Measure("verdict", None, None, None, count, meaning)


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, measure), and one a restart."""
    result: list[dict[str, object]] = []
    recorded, found = windows(store), store.once(curves)
    for run_id in store.run_ids():
        restarted = restarts(run_id, found[run_id].points, recorded) if run_id in found else []
        measures = [*_measures(store, run_id), *map(of_restart, restarted)]
        result += [{"run_id": run_id, **asdict(measure)} for measure in measures]
    return pl.DataFrame(result, infer_schema_length=None)


def _measures(store: Store, run_id: int) -> Iterator[Measure]:
    """The measures of a run; none where it has few judged iterations."""
    frame = store.query(_ITERATIONS, [run_id])
    if frame.height < thresholds.LEAST_STABILITY_ITERATIONS:
        return
    numbers, duration = frame["iteration"].to_numpy().astype(np.float64), frame["duration_ns"].to_numpy()
    yield from of_iterations(numbers, duration)
    own, lasting = store.once(own_time, run_id), None
    if own is not None and len(own.ranks) > 1 and len(own.iterations) >= thresholds.LEAST_STABILITY_ITERATIONS:
        lasting, *others = of_ranks(own.iterations.astype(np.float64), own.own_ns, float(duration.mean()))
        yield from (lasting, *others)
    bottleneck = store.query(_OWNER, [run_id])["owner"].to_list()
    if len(bottleneck) >= thresholds.LEAST_STABILITY_ITERATIONS:
        yield of_owners("bottleneck_churn", "the cause with the most delay", bottleneck)
    last = store.query(_LAST, [run_id])["owner"].to_list()
    if len(last) < thresholds.LEAST_STABILITY_ITERATIONS:
        return
    yield of_owners("last_arriver_churn", "the rank that the others wait for most", last)
    if lasting is not None:
        waiting = float(store.value(_WAITING, [run_id]) or 0.0)
        found = bool(store.value(_FOUND, [run_id]))
        yield verdict(waiting, lasting, changes(last), by_chance(last), len(last), is_found=found)
