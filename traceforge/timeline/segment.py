"""What each rank was doing when. Reads raw events by class and matched arrivals; fills timeline.segment.

Each rank's intervals become layers in the order compute, transfer, wait, copy, input, runtime, idle; the first that
is active at an instant names its phase. A rank without device events uses host operations in the place of kernels,
and outside of them the innermost named annotation. Times of unaligned ranks stay on their own clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.store.database import Store
from traceforge.timeline.layers import Intervals, active, cut, first_active, join, subtract, union

_WINDOWS = "SELECT run_id, rank, iteration, start_ns, end_ns FROM timeline.window ORDER BY run_id, rank, start_ns"

_RANKS = """
SELECT r.run_id, r.rank, r.source_id, r.has_device, COALESCE(k.offset_ns, 0), COALESCE(k.drift_ppb, 0),
  COALESCE(k.raw_anchor_ns, 0)
FROM align.rank AS r
JOIN align.clock AS k USING (run_id, rank)
ORDER BY r.run_id, r.rank
"""

# The training thread is the one that marks steps (the one with most host events where none does).
_EVENTS = """
WITH event AS (
  SELECT e.track_id, e.raw_start_ns AS start_ns, e.raw_start_ns + e.duration_ns AS end_ns,
    c.class
  FROM raw.kineto_event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.source_id = ? AND e.phase = 'X' AND e.duration_ns > 0
),
training AS (
  SELECT track_id FROM event
  WHERE class IN ('iteration', 'operation', 'annotation')
  GROUP BY track_id
  ORDER BY COUNT(*) FILTER (WHERE class = 'iteration') DESC, COUNT(*) DESC, track_id
  LIMIT 1
)
SELECT class, start_ns - ? - (start_ns - ?) * ? // 1000000000 AS start_ns,
  end_ns - ? - (end_ns - ?) * ? // 1000000000 AS end_ns,
  track_id = (SELECT track_id FROM training) AS on_training_thread
FROM event
ORDER BY start_ns, end_ns DESC
"""

_COMMUNICATION = """
SELECT a.arrival_ns AS start_ns, a.end_ns, c.last_arrival_ns
FROM timeline.arrival AS a
JOIN timeline.collective AS c USING (run_id, collective_id)
WHERE a.run_id = ? AND a.rank = ?
ORDER BY a.arrival_ns
"""

# Host activities in the order in which they explain a gap on the device.
_ACTIVITIES = (
    "input", "checkpoint", "garbage_collection", "allocator", "synchronisation", "launch", "operation", "annotation",
)  # fmt: skip
_ACTIVITY_NAMES = pl.Series([*_ACTIVITIES, "unnamed"])
_BUSY = ("compute", "copy")

_SCHEMA = {
    "run_id": pl.Int32,
    "iteration": pl.Int32,
    "rank": pl.Int32,
    "phase": pl.String,
    "activity": pl.String,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "hidden_communication_ns": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class RankLayers:
    """A rank's intervals.

    Attributes:
        phases: phase name and intervals, in order of precedence; a name may come twice.
        remainder: phase of the instants that no layer covers.
        activities: what the host did, in the order in which it explains a gap (see `_ACTIVITIES`).
        communication: all communication, hidden or not.
    """

    phases: tuple[tuple[str, Intervals], ...]
    remainder: str
    activities: tuple[Intervals, ...]
    communication: Intervals


def rows(store: Store) -> pl.DataFrame:
    """Consecutive segments of every iteration of every rank."""
    windows = store.query(_WINDOWS)
    frames = []
    for run_id, rank, source_id, has_device, offset_ns, drift_ppb, raw_anchor_ns in store.query(_RANKS).iter_rows():
        shift = [offset_ns, raw_anchor_ns, drift_ppb]
        events = store.query(_EVENTS, [source_id, *shift, *shift])
        layers = rank_layers(events, store.query(_COMMUNICATION, [run_id, rank]), has_device=has_device)
        own = windows.filter((pl.col("run_id") == run_id) & (pl.col("rank") == rank))
        frames += [
            segments(layers, (start_ns, end_ns)).with_columns(
                run_id=pl.lit(run_id), rank=pl.lit(rank), iteration=pl.lit(iteration)
            )
            for _, _, iteration, start_ns, end_ns in own.iter_rows()
        ]
    if not frames:
        return pl.DataFrame(schema=_SCHEMA)
    return pl.concat(frames).select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def rank_layers(events: pl.DataFrame, matched: pl.DataFrame, *, has_device: bool) -> RankLayers:
    """Layers of one rank.

    Args:
        events: class, start_ns, end_ns, on_training_thread of every complete event.
        matched: start_ns, end_ns and last_arrival_ns of this rank's matched collectives.
        has_device: whether device kernels were recorded.
    """
    by_class = {str(key[0]): frame for key, frame in events.group_by("class")}
    training = {name: frame.filter(pl.col("on_training_thread")) for name, frame in by_class.items()}
    communication = _of(by_class, "communication" if has_device else "host_communication")
    transfer, wait = _split(matched, communication)
    activities = tuple(_of(training, name) for name in _ACTIVITIES)
    phases = [
        ("transfer", transfer),
        ("wait", wait),
        ("copy", _of(by_class, "copy")),
        ("input", activities[0]),
    ]
    if has_device:
        layers = [("compute", _of(by_class, "compute")), *phases, ("runtime", join(*activities[1:]))]
        return RankLayers(tuple(layers), "idle", activities, communication)
    # Host operations stand in for kernels; what fetches data or awaits communication is none.
    excluded = join(activities[0], _of(training, "communication_call"))
    working, enclosing = _operations(training)
    operations = subtract(working, excluded)
    pauses = join(_of(training, "checkpoint"), _of(training, "garbage_collection"))
    named = join(enclosing, _of(training, "annotation"))
    layers = [("compute", operations), *phases, ("runtime", pauses), ("compute", named)]
    return RankLayers(tuple(layers), "runtime", activities, communication)


def _operations(training: Mapping[str, pl.DataFrame]) -> tuple[Intervals, Intervals]:
    """Host operations that work, and those that enclose a communication call and may block in it."""
    operations, calls = training.get("operation"), training.get("communication_call")
    if operations is None or calls is None:
        return _of(training, "operation"), _NOTHING
    call_starts = np.append(np.sort(calls["start_ns"].to_numpy()), np.iinfo(np.int64).max)
    next_call = call_starts[np.searchsorted(call_starts, operations["start_ns"].to_numpy())]
    encloses = pl.Series(next_call < operations["end_ns"].to_numpy())
    return _of({"working": operations.filter(~encloses)}, "working"), _of(
        {"enclosing": operations.filter(encloses)}, "enclosing"
    )


def _split(matched: pl.DataFrame, communication: Intervals) -> tuple[Intervals, Intervals]:
    """Transfer and wait. Communication without partners cannot be split; it counts as transfer."""
    arrivals, ends, last = (matched[name] for name in ("start_ns", "end_ns", "last_arrival_ns"))
    turning = pl.select(pl.max_horizontal(arrivals, pl.min_horizontal(last, ends))).to_series()
    wait, sending = _union(arrivals, turning), _union(turning, ends)
    return join(sending, subtract(communication, join(wait, sending))), wait


def segments(layers: RankLayers, window: tuple[int, int]) -> pl.DataFrame:
    """Consecutive segments that fill a window exactly, neighbours differing in phase or activity."""
    intervals = [*(layer for _, layer in layers.phases), *layers.activities, layers.communication]
    cuts = cut(intervals, window)
    starts, durations = cuts[:-1], np.diff(cuts)
    names = pl.Series([*(name for name, _ in layers.phases), layers.remainder])
    phase = names.gather(first_active([layer for _, layer in layers.phases], starts))
    activity = _ACTIVITY_NAMES.gather(first_active(layers.activities, starts))
    hidden = np.where((phase == "compute").to_numpy() & active(layers.communication, starts), durations, 0)
    pieces = pl.DataFrame(
        {"phase": phase, "activity": activity, "start_ns": starts, "duration_ns": durations,
         "hidden_communication_ns": hidden}
    ).with_columns(activity=pl.when(~pl.col("phase").is_in(_BUSY)).then("activity"))  # fmt: skip
    return (
        pieces.group_by(pl.struct("phase", "activity").rle_id().alias("piece"), maintain_order=True)
        .agg(pl.first("phase", "activity", "start_ns"), pl.sum("duration_ns", "hidden_communication_ns"))
        .drop("piece")
    )


_NOTHING = Intervals(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def _of(by_class: Mapping[str, pl.DataFrame], name: str) -> Intervals:
    frame = by_class.get(name)
    return _NOTHING if frame is None else _union(frame["start_ns"], frame["end_ns"])


def _union(starts_ns: pl.Series, ends_ns: pl.Series) -> Intervals:
    return union(starts_ns.to_numpy().astype(np.int64), ends_ns.to_numpy().astype(np.int64))
