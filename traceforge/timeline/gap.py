"""Why a device had nothing to do. Reads timeline.segment, raw events and align.*; fills timeline.gap.

A gap is a stretch of an iteration in which no kernel and no copy runs on any stream of the device. Its one cause is
what held the training thread for most of it (`gap_cause` in `vocabulary.toml`, or a copy call). Otherwise what ends the
gap decides: work launched after the gap began came late from the host; work launched before was held up on the device
(its streams and events). Where the trace does not say, or nothing ends the gap, it is unknown.
"""

from itertools import chain

import numpy as np
import polars as pl

from traceforge.align.clock_course import ClockCourse, read_course
from traceforge.store.database import Store
from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.layers import Intervals, Times, covered_before, union
from traceforge.vocabulary import vocabulary

_RANKS = "SELECT run_id, rank, source_id FROM align.rank WHERE has_device ORDER BY run_id, rank"

_IDLE = """
SELECT iteration, activity, start_ns, duration_ns
FROM timeline.segment
WHERE run_id = ? AND rank = ? AND phase IN ('input', 'runtime', 'idle')
ORDER BY start_ns
"""

# Start of each device event, and of the host call that launched it.
_LAUNCHES = """
WITH event AS (
  SELECT c.canonical_category AS category, e.correlation, e.raw_start_ns
  FROM raw.kineto_event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.source_id = ? AND e.phase = 'X'
    AND c.canonical_category IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_runtime', 'cuda_driver')
),
launch AS (
  SELECT correlation, MIN(raw_start_ns) AS raw_launch_ns
  FROM event
  WHERE category IN ('cuda_runtime', 'cuda_driver') AND correlation IS NOT NULL
  GROUP BY correlation
)
SELECT d.raw_start_ns, l.raw_launch_ns
FROM event AS d
LEFT JOIN launch AS l USING (correlation)
WHERE d.category IN ('kernel', 'gpu_memcpy', 'gpu_memset')
ORDER BY d.raw_start_ns, l.raw_launch_ns
"""

_COPY_CALLS = """
SELECT raw_start_ns, raw_start_ns + duration_ns AS raw_end_ns
FROM raw.kineto_event
WHERE source_id = ? AND phase = 'X' AND duration_ns > 0 AND category IN ('cuda_runtime', 'cuda_driver', 'Runtime')
  AND (name LIKE 'cudaMemcpy%' OR name LIKE 'hipMemcpy%' OR name LIKE 'cuMemcpy%')
"""

# Calls to the device's runtime and driver, on whatever thread.
_CALLS = """
SELECT e.name, e.raw_start_ns, e.raw_start_ns + e.duration_ns AS raw_end_ns
FROM raw.kineto_event AS e
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE e.source_id = ? AND e.phase = 'X' AND e.duration_ns > 0 AND e.raw_start_ns IS NOT NULL
  AND c.canonical_category IN ('cuda_runtime', 'cuda_driver')
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "iteration": pl.Int32,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "cause": pl.String,
    "cause_ns": pl.Int64,
    "launch_lead_ns": pl.Int64,
    "call": pl.String,
    "call_ns": pl.Int64,
}


def rows(store: Store) -> pl.DataFrame:
    """One row a gap of each rank with a device."""
    frames = []
    for run_id, rank, source_id in store.query(_RANKS).iter_rows():
        idle = store.query(_IDLE, [run_id, rank])
        if idle.is_empty():
            continue
        clock = read_course(store, run_id, rank)
        launches = store.query(_LAUNCHES, [source_id])
        copies = store.arrays(_COPY_CALLS, [source_id])
        start, launch = (_aligned(launches[name], clock) for name in ("raw_start_ns", "raw_launch_ns"))
        copying = union(*(clock.aligned(copies[name]) for name in ("raw_start_ns", "raw_end_ns")))
        found = gaps(idle, copying, pl.DataFrame({"start_ns": start, "launch_ns": launch}))
        calls = store.query(_CALLS, [source_id])
        edges = {f"{edge}_ns": _aligned(calls[f"raw_{edge}_ns"], clock) for edge in ("start", "end")}
        found = with_longest_call(found, calls.select("name").with_columns(**edges))
        frames.append(found.with_columns(run_id=pl.lit(run_id), rank=pl.lit(rank)))
    if not frames:
        return pl.DataFrame(schema=_SCHEMA)
    return pl.concat(frames).select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def _aligned(raw_ns: pl.Series, clock: ClockCourse) -> pl.Series:
    known = raw_ns.fill_null(0).to_numpy().astype(np.int64)
    return pl.Series(clock.aligned(known)).zip_with(raw_ns.is_not_null(), pl.Series([None], dtype=pl.Int64))


def gaps(idle: pl.DataFrame, copying: Intervals, work: pl.DataFrame) -> pl.DataFrame:
    """Gaps of one rank with their causes.

    Args:
        idle: iteration, activity, start_ns and duration_ns of the stretches without device work, in order of time.
        copying: when the host is inside a copy call.
        work: start_ns and launch_ns (null when unknown) of what runs on the device, by start and launch.
    """
    ends = pl.col("start_ns") + pl.col("duration_ns")
    begins = (pl.col("start_ns") != ends.shift(1)) | (pl.col("iteration") != pl.col("iteration").shift(1))
    pieces = idle.with_columns(gap=begins.fill_null(value=True).cum_sum())
    pieces = pieces.with_columns(copy_ns=pl.Series(_inside(copying, pieces)))
    held = _held_amounts()
    found = pieces.group_by("gap", maintain_order=True).agg(
        pl.first("iteration", "start_ns"), pl.sum("duration_ns"), **held
    )
    longest = pl.max_horizontal(list(held))
    particular = pl.coalesce(pl.when(pl.col(name) == longest).then(pl.lit(name)) for name in held)
    is_held = longest >= thresholds.LEAST_HELD_SHARE * pl.col("duration_ns")
    lead = _launch_lead(found["start_ns"].to_numpy(), (found["start_ns"] + found["duration_ns"]).to_numpy(), work)
    return found.with_columns(launch_lead_ns=lead).select(
        "iteration", "start_ns", "duration_ns", "launch_lead_ns",
        cause=pl.when(is_held)
        .then(particular)
        .when(pl.col("launch_lead_ns").is_null())
        .then(pl.lit("unknown"))
        .when(pl.col("launch_lead_ns") <= 0)
        .then(pl.lit("late_launch"))
        .otherwise(pl.lit("device_queue")),
        cause_ns=pl.when(is_held).then(longest).otherwise("duration_ns"),
    )  # fmt: skip


def with_longest_call(found: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """The same gaps with the call that fills most of each, by name, and how long; null where there is none.

    Args:
        found: start_ns and duration_ns of gaps that are apart, in order of time.
        calls: name, start_ns and end_ns.
    """
    starts, ends = found["start_ns"].to_numpy(), (found["start_ns"] + found["duration_ns"]).to_numpy()
    since, until = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    first, last = np.searchsorted(ends, since, side="right"), np.searchsorted(starts, until)
    met = np.maximum(last - first, 0)
    call = np.repeat(np.arange(len(met)), met)
    gap = first[call] + np.arange(len(call)) - np.repeat(np.cumsum(met) - met, met)
    inside = np.minimum(until[call], ends[gap]) - np.maximum(since[call], starts[gap])
    spent = pl.DataFrame({"gap": gap, "call": calls["name"].gather(call), "call_ns": inside})
    # Threads may be in one call at once: no call fills more than the gap.
    longest = (
        spent.group_by("gap", "call")
        .agg(pl.sum("call_ns"))
        .sort("gap", "call_ns", "call", descending=[False, True, False])
        .unique("gap", keep="first", maintain_order=True)
    )
    numbered = found.with_row_index("gap").with_columns(pl.col("gap").cast(pl.Int64))
    joined = numbered.join(longest, on="gap", how="left", maintain_order="left").drop("gap")
    return joined.with_columns(pl.min_horizontal("call_ns", pl.col("duration_ns")).alias("call_ns")).with_columns(
        call_ns=pl.when(pl.col("call").is_not_null()).then("call_ns")
    )


def _held_amounts() -> dict[str, pl.Expr]:
    """How long each of what may hold the training thread did, ns, by name of the gap; by precedence."""
    activity, duration, copying = pl.col("activity"), pl.col("duration_ns"), pl.col("copy_ns")
    firm: dict[str, list[str]] = {}
    yielding: dict[str, list[str]] = {}
    for one in vocabulary().activities:
        if one.gap_cause is not None:
            (yielding if one.yields_to_copy else firm).setdefault(one.gap_cause, []).append(one.name)
    # A copy call counts as a copy, whatever its class.
    copied = copying.filter(~activity.is_in(list(chain(*firm.values())))).sum()
    return {
        **{cause: duration.filter(activity.is_in(names)).sum() for cause, names in firm.items()},
        "copy_wait": copied,
        **{cause: (duration - copying).filter(activity.is_in(names)).sum() for cause, names in yielding.items()},
    }


def _inside(copying: Intervals, pieces: pl.DataFrame) -> Times:
    starts = pieces["start_ns"].to_numpy()
    lasting = copying.ends_ns - copying.starts_ns
    until, since = (
        covered_before(copying.starts_ns, lasting, instants)
        for instants in (starts + pieces["duration_ns"].to_numpy(), starts)
    )
    result: Times = until - since
    return result


def _launch_lead(starts_ns: Times, ends_ns: Times, work: pl.DataFrame) -> pl.Series:
    """How long before each gap began the work that ends it was launched, ns; null where unknown."""
    place = np.searchsorted(work["start_ns"].to_numpy(), ends_ns)
    ended = pl.DataFrame({"gap_end": ends_ns, "gap_start": starts_ns, "place": place})
    numbered = work.with_row_index("place").with_columns(pl.col("place").cast(pl.Int64))
    joined = ended.join(numbered, on="place", how="left", maintain_order="left")
    lead = pl.when(pl.col("start_ns") == pl.col("gap_end")).then(pl.col("gap_start") - pl.col("launch_ns"))
    return joined.select(lead.alias("launch_lead_ns")).to_series()
