"""Compute calls of the ranks of pipelines by their launch. In: raw events. Out: `PipelineWork`, one a rank.

A call is a kernel at the time of its launch; on a rank without a device it is an operation of the training thread.
What is launched inside of autograd's engine is backward work, and annotations of `torch.distributed.pipelining` say
which turn it is. Not handled: kernels whose launch was not recorded, and graphs launched as a whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import read_courses
from traceforge.align.rank_batches import RankBatch, RankFile
from traceforge.store.database import Store
from traceforge.timeline.layers import active, union

Integers = NDArray[np.int64]
NONE = -1

# Letters of turns: forward, full backward, and its input and weight parts.
LETTERS = "FBIW"

_KINDS = r"""
WITH classed AS (
  SELECT k.source_id, k.kind_id, k.name, COALESCE(k.track_id, -1) AS track,
    CASE
      WHEN c.class = 'compute' THEN 'kernel'
      WHEN c.canonical_category IN ('cuda_runtime', 'cuda_driver') THEN 'launch'
      WHEN STARTS_WITH(k.name, 'autograd::engine::evaluate_function') THEN 'autograd'
      WHEN c.class = 'operation' THEN 'operation'
      WHEN c.canonical_category = 'user_annotation'
        AND REGEXP_FULL_MATCH(k.name, 'PP:\d+[FBIW]\d+|(Forward|Backward) \d+') THEN 'turn'
    END AS part
  FROM raw.event_kind AS k
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM k.category AND c.name = k.name
  WHERE k.source_id IN (SELECT UNNEST($1)) AND k.source_id BETWEEN $2 AND $3 AND k.phase = 'X'
)
SELECT source_id, kind_id, track, name, part,
  CAST(NULLIF(REGEXP_EXTRACT(name, '^PP:(\d+)', 1), '') AS BIGINT) AS stage,
  CASE WHEN STARTS_WITH(name, 'Forward') THEN 'F' WHEN STARTS_WITH(name, 'Backward') THEN 'B'
    ELSE REGEXP_EXTRACT(name, '^PP:\d+([FBIW])', 1) END AS letter,
  CAST(NULLIF(REGEXP_EXTRACT(name, '(\d+)$', 1), '') AS BIGINT) AS microbatch
FROM classed
WHERE part IS NOT NULL
ORDER BY source_id, kind_id
"""

_EVENTS = """
SELECT source_id, kind_id, raw_start_ns AS start_ns, raw_start_ns + duration_ns AS end_ns,
  COALESCE(correlation, -1) AS correlation
FROM raw.occurrence
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3
  AND raw_start_ns IS NOT NULL AND duration_ns IS NOT NULL
"""

_PARTS = ("kernel", "launch", "autograd", "operation", "turn")


@dataclass(frozen=True, slots=True)
class PipelineWork:
    """Compute calls of a rank, by launch; shapes (calls,).

    Attributes:
        launch_ns: on the rank's own clock.
        issue_ns: the same on the common clock.
        start_ns, end_ns: when it runs, on the common clock.
        is_backward: whether autograd's engine launched it.
        name: number of its name.
        turn: which annotated turn launched it, `NONE` for none.
        letter, stage, microbatch: of each annotated turn as it says, `NONE` for what it does not say; shapes (turns,).
    """

    launch_ns: Integers
    issue_ns: Integers
    start_ns: Integers
    end_ns: Integers
    is_backward: NDArray[np.bool_]
    name: Integers
    turn: Integers
    letter: Integers
    stage: Integers
    microbatch: Integers


@dataclass(frozen=True, slots=True)
class _WorkRows:
    """Events of a file; shapes (events,)."""

    kind: Integers
    start_ns: Integers
    end_ns: Integers
    correlation: Integers

    def take(self, places: Integers | NDArray[np.bool_]) -> "_WorkRows":
        return _WorkRows(*(getattr(self, field)[places] for field in self.__slots__))


def read_pipeline_work(store: Store, batch: RankBatch) -> Iterator[tuple[RankFile, PipelineWork]]:
    """The compute calls of each rank of a batch."""
    kinds, events = batch.by_file(store, _KINDS), batch.by_file(store, _EVENTS)
    courses = store.once(read_courses, batch.run_id)
    for one in batch.ranks:
        own = kinds.of(one.source_id)
        part, rows = _read(own, events.of(one.source_id))
        by_part = {name: rows.take(part == number) for number, name in enumerate(_PARTS)}
        calls, launch_ns = _on_device(by_part) if one.has_device else _on_host(by_part, own)
        order = np.argsort(launch_ns, kind="stable")
        calls, launch_ns = calls.take(order), launch_ns[order]
        turns = by_part["turn"].take(np.argsort(by_part["turn"].start_ns, kind="stable"))
        clock = courses[one.rank]
        yield (
            one,
            PipelineWork(
                launch_ns,
                clock.aligned(launch_ns),
                clock.aligned(calls.start_ns),
                clock.aligned(calls.end_ns),
                active(union(by_part["autograd"].start_ns, by_part["autograd"].end_ns), launch_ns),
                _name_numbers(own)[calls.kind],
                _inside(turns, launch_ns),
                *_said(own, turns.kind),
            ),
        )


def _read(kinds: pl.DataFrame, events: pl.DataFrame) -> tuple[Integers, _WorkRows]:
    """Part that each event plays, for those that play one, and the events with places in `kinds`."""
    kind_ids = kinds["kind_id"].to_numpy().astype(np.int64)
    place_of = np.full(int(kind_ids.max(initial=-1)) + 2, NONE)
    place_of[kind_ids] = np.arange(len(kind_ids))
    place = place_of[np.minimum(events["kind_id"].to_numpy(), len(place_of) - 1)]
    kept = np.flatnonzero(place != NONE)
    parts = kinds["part"].replace_strict(_PARTS, range(len(_PARTS)), return_dtype=pl.Int64).to_numpy()
    times = (events[name].to_numpy()[kept].astype(np.int64) for name in ("start_ns", "end_ns", "correlation"))
    return parts[place[kept]], _WorkRows(place[kept], *times)


def _on_device(by_part: dict[str, _WorkRows]) -> tuple[_WorkRows, Integers]:
    """Kernels whose launch is known, and when that was."""
    kernels, launches = by_part["kernel"], by_part["launch"]
    launches = launches.take(launches.correlation >= 0)
    launches = launches.take(np.lexsort((launches.start_ns, launches.correlation)))
    if not len(launches.kind):
        return kernels.take(np.zeros(0, dtype=np.int64)), launches.start_ns
    place = np.minimum(np.searchsorted(launches.correlation, kernels.correlation), len(launches.kind) - 1)
    known = (launches.correlation[place] == kernels.correlation) & (kernels.correlation >= 0)
    return kernels.take(known), launches.start_ns[place[known]]


def _on_host(by_part: dict[str, _WorkRows], kinds: pl.DataFrame) -> tuple[_WorkRows, Integers]:
    """Operations of the thread that has most of them."""
    operations = by_part["operation"]
    tracks = kinds["track"].to_numpy()[operations.kind]
    if not len(tracks):
        return operations, operations.start_ns
    names, counts = np.unique(tracks, return_counts=True)
    own = operations.take(tracks == names[np.argmax(counts)])
    return own, own.start_ns


def _inside(spans: _WorkRows, at_ns: Integers) -> Integers:
    """The span, of some that follow one another, that is around each instant; `NONE` where there is none."""
    place = np.searchsorted(spans.start_ns, at_ns, side="right") - 1
    if not len(spans.kind):
        return place
    result: Integers = np.where((place >= 0) & (at_ns < spans.end_ns[place]), place, NONE)
    return result


def _name_numbers(kinds: pl.DataFrame) -> Integers:
    return kinds["name"].rank("dense").to_numpy().astype(np.int64)


def _said(kinds: pl.DataFrame, turns: Integers) -> tuple[Integers, Integers, Integers]:
    """Letter as a place in `LETTERS`, stage and micro-batch of annotated turns."""
    letter = kinds["letter"].replace_strict(list(LETTERS), range(len(LETTERS)), default=NONE, return_dtype=pl.Int64)
    stage, microbatch = (kinds[name].fill_null(NONE).to_numpy().astype(np.int64) for name in ("stage", "microbatch"))
    return letter.to_numpy()[turns], stage[turns], microbatch[turns]
