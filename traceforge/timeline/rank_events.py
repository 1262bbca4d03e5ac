"""Events of ranks by class, on the common clock. In: raw events. Out: `RankEvents`, arrays of one rank each.

The training thread is the one that marks steps; where none does, the one with most operations and annotations, and
where there are none of these, the one that launches most.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import ClockCourse, read_courses
from traceforge.align.rank_batches import RankBatch, RankFile
from traceforge.store.database import Store
from traceforge.timeline.layers import Intervals, Times, in_turn, union
from traceforge.vocabulary import IGNORED, vocabulary

_KINDS = """
SELECT k.source_id, k.kind_id, LIST_POSITION($4, c.class) - 1 AS code, COALESCE(k.track_id, -1) AS track_id
FROM raw.event_kind AS k
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM k.category AND c.name = k.name
WHERE k.source_id IN (SELECT UNNEST($1)) AND k.source_id BETWEEN $2 AND $3
  AND k.phase = 'X' AND LIST_CONTAINS($4, c.class)
  -- An annotation that stands for the step says no more of what the rank did than ProfilerStep does.
  AND NOT EXISTS (
    SELECT 1 FROM align.rank AS r
    JOIN align.step AS s USING (run_id, rank)
    WHERE r.source_id = k.source_id AND r.has_device AND c.class = 'annotation'
      AND s.annotation IN (k.name, REGEXP_REPLACE(k.name, '[0-9]+', '#'))
  )
"""

_EVENTS = """
SELECT source_id, kind_id, raw_start_ns, duration_ns
FROM raw.occurrence
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3
  AND raw_start_ns IS NOT NULL AND duration_ns > 0
"""

_MARKING = ("iteration", "operation", "annotation")
_LAUNCHING = ("launch",)
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
    """Complete events of a rank by class, and those of its training thread; a class without events is absent."""

    of_class: Mapping[str, Events]
    training: Mapping[str, Events]


def classes() -> list[str]:
    """Classes of events that say what a rank does."""
    return [one.name for one in vocabulary().classes if one.name != IGNORED]


def read_events(store: Store, batch: RankBatch) -> Iterator[tuple[RankFile, RankEvents]]:
    """The events of each rank of a batch."""
    names = classes()
    kinds, events = batch.by_file(store, _KINDS, [names]), batch.by_file(store, _EVENTS)
    courses = read_courses(store, batch.run_id)
    for one in batch.ranks:
        found = [(one, _of_rank(kinds.of(one.source_id), events.of(one.source_id), courses[one.rank]))]
        if one is batch.ranks[-1]:
            del kinds, events  # as large as what is handed over, which nothing here holds either
        yield found.pop()


def _of_rank(kinds: pl.DataFrame, events: pl.DataFrame, clock: ClockCourse) -> RankEvents:
    kind_ids = kinds["kind_id"].to_numpy()
    # As narrow as they may be: there are millions of events.
    code_of = np.full(int(kind_ids.max(initial=-1)) + 2, NO_CLASS, dtype=np.int16)
    track_of = np.full(len(code_of), -1, dtype=np.int32)
    code_of[kind_ids], track_of[kind_ids] = kinds["code"].to_numpy(), kinds["track_id"].to_numpy()
    code, track = np.empty(events.height, dtype=np.int16), np.empty(events.height, dtype=np.int32)
    parts, first = _parts(events), 0
    for part in parts:
        # Kinds of no class share the last place.
        kind = np.minimum(part["kind_id"].to_numpy(), len(code_of) - 1)
        own = slice(first, first + len(kind))
        code[own], track[own] = code_of[kind], track_of[kind]
        first = own.stop
    is_training = track == _training_track(code, track)
    del track
    return by_class(code, _times(parts, clock), is_training)


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


def _times(parts: Sequence[pl.DataFrame], clock: ClockCourse) -> Iterator[tuple[Times, Times]]:
    """Starts and ends on the common clock, some at a time."""
    for part in parts:
        start = part["raw_start_ns"].to_numpy()
        yield clock.aligned(start), clock.aligned(start + part["duration_ns"].to_numpy())


def _training_track(code: NDArray[np.integer[Any]], track: NDArray[np.integer[Any]]) -> int:
    """Number of the training thread; one that no event has where nothing marks it."""
    names = classes()
    tracks, counts = track[:0], track[:0]
    for marks in (_MARKING, _LAUNCHING):
        if not len(tracks):
            is_mark = np.isin(code, [names.index(name) for name in marks])
            tracks, counts = np.unique(track[is_mark], return_counts=True)
    if not len(tracks):
        return int(np.iinfo(np.int64).min)
    with_steps, own = np.unique(track[code == names.index("iteration")], return_counts=True)
    steps = np.zeros(len(tracks), dtype=np.int64)
    steps[np.searchsorted(tracks, with_steps)] = own
    return int(tracks[np.lexsort((tracks, -counts, -steps))[0]])


def by_class(
    code: NDArray[np.integer[Any]], times: Iterable[tuple[Times, Times]], on_training_thread: NDArray[np.bool_]
) -> RankEvents:
    """Events by class, in their order.

    Args:
        code: place of each event's class in `classes()`, or `NO_CLASS`.
        times: starts and ends of all events, some at a time.
        on_training_thread: whether each is.
    """
    numbers, counts = np.unique(code, return_counts=True)
    found = {
        number: (_room(count), np.empty(count, dtype=np.bool_))
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        if number != NO_CLASS
    }
    filled = dict.fromkeys(found, 0)
    first = 0
    for start_ns, end_ns in times:
        some = slice(first, first + len(start_ns))
        for number in found.keys() & np.unique(code[some]).tolist():
            inside, (events, is_training) = np.flatnonzero(code[some] == number), found[number]
            place = slice(filled[number], filled[number] + len(inside))
            events.starts_ns[place], events.ends_ns[place] = start_ns[inside], end_ns[inside]
            is_training[place] = on_training_thread[some][inside]
            filled[number] = place.stop
        first = some.stop
    names = classes()
    every = {names[number]: events for number, (events, _) in found.items()}
    own = {names[number]: one[0].those(one[1]) for number, one in found.items() if one[1].any()}
    return RankEvents(every, own)


def _room(count: int) -> Events:
    return Events(np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64))
