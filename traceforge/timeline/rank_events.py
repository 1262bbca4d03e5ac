"""Events of ranks by class, on the common clock. In: raw events. Out: `RankEvents`, arrays of one rank each.

The training thread is the one that marks steps; where none does, the one with most operations and annotations, and
where there are none of these, the one that launches most. A thread of the backward pass that launches work goes on for
it: PyTorch runs that of a device on a thread of its own, for which the training thread waits.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import ClockCourse, read_courses
from traceforge.align.rank_batches import Parts, RankBatch, RankFile
from traceforge.store.database import Store
from traceforge.timeline.layers import Intervals, Times, in_turn, union
from traceforge.vocabulary import IGNORED, vocabulary

_KINDS = """
WITH counted AS (
  SELECT source_id, kind_id, COUNT(*) AS events
  FROM raw.occurrence
  WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3
    AND raw_start_ns IS NOT NULL AND duration_ns > 0
  GROUP BY ALL
),
step AS (
  SELECT DISTINCT r.source_id, s.annotation
  FROM align.rank AS r
  JOIN align.step AS s USING (run_id, rank)
  WHERE r.has_device AND s.annotation IS NOT NULL
)
SELECT k.source_id, k.kind_id, LIST_POSITION($4, c.class) - 1 AS code, COALESCE(k.track_id, -1) AS track_id, n.events,
  c.class = 'operation' AND REGEXP_MATCHES(k.name, $5) AS is_backward
FROM raw.event_kind AS k
JOIN counted AS n USING (source_id, kind_id)
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM k.category AND c.name = k.name
WHERE k.source_id IN (SELECT UNNEST($1)) AND k.source_id BETWEEN $2 AND $3
  AND k.phase = 'X' AND LIST_CONTAINS($4, c.class)
  -- An annotation that stands for the step says no more of what the rank did than ProfilerStep does.
  AND NOT EXISTS (
    SELECT 1 FROM step AS s
    WHERE s.source_id = k.source_id AND c.class = 'annotation' AND align.is_step_name(k.name, s.annotation)
  )
"""

_EVENTS = """
SELECT source_id, kind_id, raw_start_ns, duration_ns
FROM raw.occurrence
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3 AND event_id BETWEEN $4 AND $5
  AND raw_start_ns IS NOT NULL AND duration_ns > 0
"""

_MARKING = ("iteration", "operation", "annotation")
_LAUNCHING = ("launch",)
_WHEREVER = ("communication", "copy", "compute", "host_communication")
_AT_ONCE = 131_072

NO_CLASS = -1
"""Stands for the class of an event that says nothing of what a rank does."""


@dataclass(frozen=True, slots=True)
class Events:
    """Events in any order, which may overlap; shapes (events,)."""

    starts_ns: Times
    ends_ns: Times

    def union(self) -> Intervals:
        """When any of them runs."""
        return union(self.starts_ns, self.ends_ns)

    def those(self, chosen: NDArray[np.bool_]) -> "Events":
        """Some of them; the same arrays where it is all."""
        return self if chosen.all() else Events(self.starts_ns[chosen], self.ends_ns[chosen])


NO_EVENTS = Events(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class RankEvents:
    """Complete events of a rank by class; a class without events is absent.

    Attributes:
        wherever: what computes, copies or communicates, on whatever stream or thread.
        training: all that the training thread does, and what threads of the backward pass do for it.
    """

    wherever: Mapping[str, Events]
    training: Mapping[str, Events]


def classes() -> list[str]:
    """Classes of events that say what a rank does."""
    return [one.name for one in vocabulary().classes if one.name != IGNORED]


def read_events(store: Store, batch: RankBatch) -> Iterator[tuple[RankFile, RankEvents]]:
    """The events of each rank of a batch."""
    kinds = batch.by_file(store, _KINDS, [classes(), vocabulary().backward_operations])
    courses = store.once(read_courses, batch.run_id)
    pieces: Iterable[Parts] = batch.in_pieces(store, _EVENTS)
    if len(batch.ranks) > 1:
        pieces = list(pieces)  # of small ranks, which share one
    for one in batch.ranks:
        own = (piece.of(one.source_id) for piece in pieces)
        yield one, by_class(kinds.of(one.source_id), own, courses[one.rank])


def _parts(events: pl.DataFrame) -> list[pl.DataFrame]:
    """Some events at a time: of all of them memory would hold copies. What was read out of turn is put in order.

    Few are one part in any order: a part costs more than to sort its events.
    """
    if events.height <= _AT_ONCE:
        return [events]
    in_order = in_turn(events["raw_start_ns"].to_numpy())
    return [
        events.slice(first, min(_AT_ONCE, until - first))
        for since, until in ([(0, events.height)] if in_order is None else in_order)
        for first in range(since, until, _AT_ONCE)
    ]


def _training_tracks(kinds: pl.DataFrame) -> set[int]:
    """Numbers of the training thread and of those of its backward pass; none where nothing marks it."""
    names = classes()
    code = pl.col("code")
    for marks in (_MARKING, _LAUNCHING):
        marking = kinds.filter(code.is_in([names.index(name) for name in marks]))
        if not marking.is_empty():
            steps = pl.col("events").filter(code == names.index("iteration")).sum()
            tracks = marking.group_by("track_id").agg(steps=steps, events=pl.col("events").sum())
            first = tracks.sort("steps", "events", "track_id", descending=[True, True, False])["track_id"][0]
            launching = kinds.filter(code == names.index("launch"))["track_id"]
            backward = kinds.filter("is_backward", pl.col("track_id").is_in(launching.implode()))["track_id"]
            return {int(first), *backward.to_list()}
    return set()


def by_class(kinds: pl.DataFrame, pieces: Iterable[pl.DataFrame], clock: ClockCourse) -> RankEvents:
    """Events by class, in their order; there may be millions, of which only what is asked for is kept.

    Args:
        kinds: kind_id, code (the place of its class in `classes()`), track_id, the number of events of each, and
            is_backward: whether they are operations of the backward pass.
        pieces: kind_id, raw_start_ns and duration_ns of all events, some at a time; of kinds that are not listed, too.
        clock: of the rank.
    """
    kind_ids = kinds["kind_id"].to_numpy()
    code_of = np.full(int(kind_ids.max(initial=-1)) + 2, NO_CLASS, dtype=np.int16)
    is_own_of = np.zeros(len(code_of), dtype=np.bool_)
    code_of[kind_ids] = kinds["code"].to_numpy()
    is_own_of[kind_ids] = kinds["track_id"].is_in(_training_tracks(kinds)).to_numpy()
    names = classes()
    every = _Filling.of(kinds.filter(pl.col("code").is_in([names.index(name) for name in _WHEREVER])))
    own = _Filling.of(kinds.filter(pl.Series(is_own_of[kind_ids])))
    for part in (part for piece in pieces for part in _parts(piece)):
        # Kinds of no class share the last place.
        kind = np.minimum(part["kind_id"].to_numpy(), len(code_of) - 1)
        start = part["raw_start_ns"].to_numpy()
        start_ns, end_ns = clock.aligned(start), clock.aligned(start + part["duration_ns"].to_numpy())
        code = code_of[kind]
        every.take(code, start_ns, end_ns)
        own.take(np.where(is_own_of[kind], code, NO_CLASS), start_ns, end_ns)
    return RankEvents(*({names[code]: one for code, one in filling.events.items()} for filling in (every, own)))


class _Filling:
    """Events by the number of their class, as far as there is room for it."""

    def __init__(self, sizes: Mapping[int, int]) -> None:
        """Make room for so many events of each."""
        self.events = {code: _room(count) for code, count in sizes.items()}
        self.filled = dict.fromkeys(self.events, 0)

    @classmethod
    def of(cls, kinds: pl.DataFrame) -> "_Filling":
        """Room for the events of these kinds."""
        return cls(dict(kinds.group_by("code").agg(pl.col("events").sum()).sort("code").iter_rows()))

    def take(self, code: NDArray[np.int16], start_ns: Times, end_ns: Times) -> None:
        """Put events behind those of their class."""
        for number in self.events.keys() & np.unique(code).tolist():
            inside, events = np.flatnonzero(code == number), self.events[number]
            place = slice(self.filled[number], self.filled[number] + len(inside))
            events.starts_ns[place], events.ends_ns[place] = start_ns[inside], end_ns[inside]
            self.filled[number] = place.stop


def _room(count: int) -> Events:
    return Events(np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64))
