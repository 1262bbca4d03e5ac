"""What ends the gaps of a device, and which calls meet them. In: raw events, the idle stretches. Out: `GapEvents`.

Of millions of events these are few: they are read in pieces, and what meets no idle stretch is let go at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import ClockCourse, read_courses
from traceforge.align.rank_batches import Parts, RankBatch
from traceforge.store.database import Store
from traceforge.timeline.layers import Times

# What runs on the device.
_WORK = """
SELECT e.source_id, e.raw_start_ns, e.correlation
FROM raw.event AS e
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE e.source_id IN (SELECT UNNEST($1)) AND e.source_id BETWEEN $2 AND $3 AND e.event_id BETWEEN $4 AND $5
  AND e.phase = 'X' AND e.raw_start_ns IS NOT NULL AND c.canonical_category IN ('kernel', 'gpu_memcpy', 'gpu_memset')
"""

# Calls to the device's runtime and driver, on whatever thread.
_CALLS = """
SELECT e.source_id, e.name, e.correlation, e.raw_start_ns, COALESCE(e.duration_ns, 0) AS duration_ns,
  e.category IN ('cuda_runtime', 'cuda_driver', 'Runtime')
    AND (e.name LIKE 'cudaMemcpy%' OR e.name LIKE 'hipMemcpy%' OR e.name LIKE 'cuMemcpy%') AS is_copy
FROM raw.event AS e
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE e.source_id IN (SELECT UNNEST($1)) AND e.source_id BETWEEN $2 AND $3 AND e.event_id BETWEEN $4 AND $5
  AND e.phase = 'X' AND e.raw_start_ns IS NOT NULL AND c.canonical_category IN ('cuda_runtime', 'cuda_driver')
"""

Edges = tuple[Times, Times]


@dataclass(frozen=True, slots=True)
class DeviceCalls:
    """Calls of a rank to its device that meet an idle stretch, in any order; shapes (calls,).

    Attributes:
        row: place of each in `GapEvents.names`.
        starts_ns, ends_ns: on the common clock.
        is_copy: whether it copies.
    """

    row: Times
    starts_ns: Times
    ends_ns: Times
    is_copy: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Launched:
    """What ends idle stretches of a rank, by start; of equal starts the earliest launch first. On the common clock."""

    starts_ns: Times
    launches_ns: Times
    is_launched: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GapEvents:
    """What is known of the devices of a batch, by rank.

    Attributes:
        work: of each rank.
        calls: of each rank.
        names: of all calls.
    """

    work: Mapping[int, Launched]
    calls: Mapping[int, DeviceCalls]
    names: pl.Series


def read_device(store: Store, batch: RankBatch, idle: Parts) -> GapEvents:
    """What meets and what ends idle stretches.

    Args:
        idle: start_ns and duration_ns of the stretches of each rank, in order of time and apart.
    """
    courses = store.once(read_courses, batch.run_id)
    edges = {one.rank: edges_of(idle.of(one.rank)) for one in batch.ranks}
    ending = _by_rank(
        (rank, _ending(found, edges[rank], courses[rank])) for rank, found in _of_ranks(store, batch, _WORK)
    )
    calling: dict[int, list[pl.DataFrame]] = {one.rank: [] for one in batch.ranks}
    launching: dict[int, list[pl.DataFrame]] = {one.rank: [] for one in batch.ranks}
    for rank, found in _of_ranks(store, batch, _CALLS):
        launching[rank].append(found.select("correlation", "raw_start_ns").join(ending[rank], "correlation", "semi"))
        calling[rank].append(_meeting(found, edges[rank], courses[rank]))
    calls = {rank: pl.concat(frames) for rank, frames in calling.items()}
    work = {rank: _launched(ending[rank], pl.concat(frames), courses[rank]) for rank, frames in launching.items()}
    return GapEvents(work, dict(_numbered(calls)), pl.concat([found["name"] for found in calls.values()]))


def edges_of(stretches: pl.DataFrame) -> Edges:
    """Starts and ends of stretches that have start_ns and duration_ns."""
    starts = stretches["start_ns"].to_numpy()
    return starts, starts + stretches["duration_ns"].to_numpy()


def _of_ranks(store: Store, batch: RankBatch, sql: str) -> Iterator[tuple[int, pl.DataFrame]]:
    for piece in batch.in_pieces(store, sql):
        for one in batch.ranks:
            yield one.rank, piece.of(one.source_id)


def _by_rank(parts: Iterator[tuple[int, pl.DataFrame]]) -> dict[int, pl.DataFrame]:
    found: dict[int, list[pl.DataFrame]] = {}
    for rank, part in parts:
        found.setdefault(rank, []).append(part)
    return {rank: pl.concat(frames) for rank, frames in found.items()}


def _ending(work: pl.DataFrame, edges: Edges, clock: ClockCourse) -> pl.DataFrame:
    """Of what runs on a device, what begins when an idle stretch ends."""
    starts, ends = clock.aligned(work["raw_start_ns"].to_numpy()), edges[1]
    place = np.searchsorted(ends, starts)
    place[place == len(ends)] = 0
    is_end = ends[place] == starts if len(ends) else np.zeros(len(starts), dtype=np.bool_)
    return work.select("correlation", start_ns=pl.Series(starts)).filter(is_end)


def _meeting(calls: pl.DataFrame, edges: Edges, clock: ClockCourse) -> pl.DataFrame:
    """Calls that meet an idle stretch, on the common clock."""
    raw_start = calls["raw_start_ns"].to_numpy()
    starts, ends = clock.aligned(raw_start), clock.aligned(raw_start + calls["duration_ns"].to_numpy())
    meets = np.searchsorted(edges[1], starts, side="right") < np.searchsorted(edges[0], ends)
    timed = calls.select("name", "is_copy", start_ns=pl.Series(starts), end_ns=pl.Series(ends))
    return timed.filter(meets & (calls["duration_ns"].to_numpy() > 0))


def _launched(ending: pl.DataFrame, launching: pl.DataFrame, clock: ClockCourse) -> Launched:
    first = launching.group_by("correlation").agg(raw_launch_ns=pl.col("raw_start_ns").min())
    found = ending.join(first, on="correlation", how="left").sort("start_ns", "raw_launch_ns", nulls_last=True)
    launches = clock.aligned(found["raw_launch_ns"].fill_null(0).to_numpy())
    return Launched(found["start_ns"].to_numpy(), launches, found["raw_launch_ns"].is_not_null().to_numpy())


def _numbered(calls: Mapping[int, pl.DataFrame]) -> Iterator[tuple[int, DeviceCalls]]:
    first = 0
    for rank, own in calls.items():
        row = first + np.arange(own.height)
        yield rank, DeviceCalls(row, *(own[name].to_numpy() for name in ("start_ns", "end_ns", "is_copy")))
        first += own.height
