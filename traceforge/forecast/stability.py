"""How steady a run is. In: iteration times, own times, last arrivers, owners of delay. Out: forecast.stability.

A cluster can be slow although no machine is: when every rank is sound by itself but each step waits for whichever
happens to be last, the coupling is at fault. That is said only with its evidence: waiting is large, no rank is
lastingly late, no part is found guilty, and the last arriver changes about as often as chance would have it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.forecast.order_statistics import parts_of
from traceforge.forecast.own_time import own_time
from traceforge.forecast.points import run_ids
from traceforge.store.database import Store
from traceforge.units import format_share

Array = NDArray[np.float64]

LEAST_ITERATIONS = 10
_PER = 100

# A rank is lastingly late above this share of an iteration; waiting is large above that one. What lasts does not make
# the waiting where it is at most this share of it. The last arriver changes as chance has it where it changes at least
# so many times as often.
SOUND = 0.02
COUPLED = 0.05
LASTING = 0.25
CHANCE = 0.7

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


@dataclass(frozen=True, slots=True)
class Trend:
    """A slope over iterations, as a share of the mean per 100 iterations, with its 95 % interval."""

    per_hundred: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


def trend(numbers: Array, values: Array, mean: float) -> Trend:
    """The trend of values by iteration number; successive errors that are alike widen the interval."""
    distance = numbers - numbers.mean()
    width = float((distance**2).sum())
    slope = float(distance @ values) / width
    left = values - values.mean() - slope * distance
    spread = float((left**2).sum()) / max(1, len(left) - 2)
    follow = float(left[1:] @ left[:-1]) / max(float((left**2).sum()), 1e-300)
    inflation = (1 + max(0.0, follow)) / (1 - min(0.95, max(0.0, follow)))
    error = 2 * (spread * inflation / width) ** 0.5
    scale = _PER / mean if mean else 0.0
    return Trend(slope * scale, (slope - error) * scale, (slope + error) * scale)


def changes(owners: Sequence[object]) -> float:
    """Share of successive pairs whose owner differs."""
    return sum(a != b for a, b in pairwise(owners)) / (len(owners) - 1)


def by_chance(owners: Sequence[object]) -> float:
    """The same, expected if each were drawn at random with the frequency that it has."""
    _, counts = np.unique([str(owner) for owner in owners], return_counts=True)
    return float(1 - ((counts / counts.sum()) ** 2).sum())


def of_iterations(numbers: Array, duration_ns: Array) -> Iterator[Measure]:
    """Variation, tail and trends of iteration times."""
    count, mean = len(duration_ns), float(duration_ns.mean())
    cv = float(duration_ns.std(ddof=1)) / mean
    error = cv / (2 * (count - 1)) ** 0.5 * 1.96
    yield Measure("cv", cv, max(0.0, cv - error), cv + error, count, "Standard deviation over mean of iteration times.")
    median = float(np.median(duration_ns))
    for name, share, least in (("p95_over_median", 0.95, 20), ("p99_over_median", 0.99, 100)):
        if count >= least:
            value = float(np.quantile(duration_ns, share)) / median
            yield Measure(
                name, value, None, None, count, f"The slowest {format_share(1 - share)} take at least so many medians."
            )
    for name, values, of in (
        ("duration_trend", duration_ns, "Iteration time"),
        ("variation_trend", np.abs(duration_ns - median), "Distance from the median iteration time"),
    ):
        found = trend(numbers, values, mean)
        said = "rises" if found.per_hundred > 0 else "falls"
        text = f"{of} {said} by {format_share(abs(found.per_hundred))} of an iteration per {_PER} iterations."
        meaning = text if found.is_clear else f"{of} shows no trend: its interval includes none."
        yield Measure(name, found.per_hundred, found.low, found.high, count, meaning)


def of_ranks(numbers: Array, own_ns: Array, mean_ns: float) -> Iterator[Measure]:
    """The most lasting lateness of a rank, its share, and the drift of the slowest."""
    parts = parts_of(own_ns)
    worst = int(parts.persistent[0].argmax())
    lasting = float(parts.persistent[0].max() - np.median(parts.persistent[0])) / mean_ns
    count = len(own_ns)
    error = 1.96 * float(parts.transient[:, worst].std()) / count**0.5 / mean_ns
    much = f"{format_share(SOUND)} is much"
    meaning = f"Lasting lateness of the slowest rank against the median one, over the iteration ({much})."
    yield Measure("lasting_lateness", lasting, lasting - error, lasting + error, count, meaning)
    share = parts.persistent_share
    meaning = "Share of the variance between ranks that persists: of machines, not of moments."
    yield Measure("persistent_share", share, None, None, count, meaning)
    ahead = own_ns[:, worst] - np.median(own_ns, axis=1)
    found = trend(numbers, ahead, mean_ns)
    meaning = "The slowest rank falls further behind." if found.low > 0 else "The slowest rank does not fall behind."
    yield Measure("slowest_drift", found.per_hundred, found.low, found.high, count, meaning)


def of_owners(name: str, what: str, owners: Sequence[object]) -> Measure:
    """How often an owner changes, against chance."""
    share, chance = changes(owners), by_chance(owners)
    meaning = (
        f"How often {what} changes from one iteration to the next; drawn at random it would in {format_share(chance)}."
    )
    return Measure(name, share, None, None, len(owners) - 1, meaning)


def verdict(
    waiting: float, lasting: Measure, churn: float, chance: float, count: int, *, is_found: bool = False
) -> Measure:
    """The outlook in one sentence, with its evidence; `is_found` where attribution is sure of a culprit."""
    late, lower, upper = lasting.value or 0.0, lasting.low or 0.0, lasting.high or 0.0
    evidence = (
        f"waiting is {format_share(waiting)} of the time, the slowest rank is lastingly {format_share(max(0.0, late))}"
        f" late, the last arriver changes in {format_share(churn)} of iterations"
    )
    if waiting < COUPLED:
        meaning = f"Ranks wait little for one another: {evidence}."
    elif is_found or lower > SOUND:
        meaning = f"A part is not healthy: {evidence}."
    elif upper < max(SOUND, LASTING * waiting) and chance > 0 and churn >= CHANCE * chance:
        meaning = f"Each part is healthy, the coupling is not: {evidence}, as chance would have it."
    else:
        meaning = f"Whether parts or coupling are at fault cannot be told: {evidence}."
    return Measure("verdict", None, None, None, count, meaning)


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, measure); none below ten judged iterations."""
    result: list[dict[str, object]] = []
    for run_id in run_ids(store):
        result += [{"run_id": run_id, **asdict(measure)} for measure in _measures(store, run_id)]
    schema = {"value": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(result, infer_schema_length=None, schema_overrides=schema if result else None)


def _measures(store: Store, run_id: int) -> Iterator[Measure]:
    frame = store.query(_ITERATIONS, [run_id])
    if frame.height < LEAST_ITERATIONS:
        return
    numbers, duration = frame["iteration"].to_numpy().astype(np.float64), frame["duration_ns"].to_numpy()
    mean = float(duration.mean())
    yield from of_iterations(numbers, duration)
    own = own_time(store, run_id)
    lasting = None
    if own is not None and len(own.ranks) > 1 and len(own.iterations) >= LEAST_ITERATIONS:
        for measure in of_ranks(own.iterations.astype(np.float64), own.own_ns, mean):
            lasting = measure if measure.measure == "lasting_lateness" else lasting
            yield measure
    last = store.query(_LAST, [run_id])["owner"].to_list()
    bottleneck = store.query(_OWNER, [run_id])["owner"].to_list()
    if len(bottleneck) >= LEAST_ITERATIONS:
        yield of_owners("bottleneck_churn", "the cause with the most delay", bottleneck)
    if len(last) < LEAST_ITERATIONS:
        return
    yield of_owners("last_arriver_churn", "the rank that the others wait for most", last)
    if lasting is not None:
        waiting = float(store.query(_WAITING, [run_id]).item() or 0.0)
        found = bool(store.query(_FOUND, [run_id]).item())
        yield verdict(waiting, lasting, changes(last), by_chance(last), len(last), is_found=found)
