"""How a device spent its recorded time. Reads raw events by class; fills timeline.device_time.

Over the whole file and all streams, each instant once, by the definitions of Holistic Trace Analysis' temporal
breakdown (idle, compute, non-compute), but in integer ns: half-open intervals, nothing rounded, no step left out.
"""

from dataclasses import astuple, dataclass

import polars as pl

from traceforge.align.rank_batches import rank_batches
from traceforge.store.database import Store
from traceforge.timeline.layers import Intervals, intersect, join, length_ns, union

_EVENTS = """
SELECT e.source_id, c.class, e.raw_start_ns AS start_ns, e.raw_start_ns + e.duration_ns AS end_ns
FROM raw.event AS e
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE e.source_id IN (SELECT UNNEST($1)) AND e.source_id BETWEEN $2 AND $3
  AND e.phase = 'X' AND c.class IN ('compute', 'communication', 'copy')
  AND e.raw_start_ns IS NOT NULL AND e.duration_ns IS NOT NULL
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "events": pl.Int64,
    "span_duration_ns": pl.Int64,
    "busy_duration_ns": pl.Int64,
    "idle_duration_ns": pl.Int64,
    "compute_duration_ns": pl.Int64,
    "non_compute_duration_ns": pl.Int64,
    "communication_duration_ns": pl.Int64,
    "overlap_duration_ns": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """Times of a device, ns; see the columns of timeline.device_time."""

    events: int
    span_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    non_compute_ns: int
    communication_ns: int
    overlap_ns: int


def rows(store: Store) -> pl.DataFrame:
    """One row a rank with device events."""
    found: list[tuple[int, ...]] = []
    for batch in rank_batches(store):
        events = batch.by_file(store, _EVENTS)
        found += [
            (batch.run_id, one.rank, *astuple(device_time(own)))
            for one in batch.ranks
            if one.has_device and not (own := events.of(one.source_id)).is_empty()
        ]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def device_time(events: pl.DataFrame) -> DeviceTime:
    """Times from class (compute, communication, copy), start_ns and end_ns of at least one device event."""
    compute, communication, copy = (_of(events, name) for name in ("compute", "communication", "copy"))
    span = int(events["end_ns"].to_numpy().max()) - int(events["start_ns"].to_numpy().min())
    busy = length_ns(join(compute, communication, copy))
    return DeviceTime(
        events.height, span, busy, span - busy, length_ns(compute), busy - length_ns(compute),
        length_ns(communication), length_ns(intersect(communication, compute)),
    )  # fmt: skip


def _of(events: pl.DataFrame, name: str) -> Intervals:
    own = (events["class"] == name).to_numpy()
    return union(events["start_ns"].to_numpy()[own], events["end_ns"].to_numpy()[own])
