"""Events of ranks by class, on the common clock. In: raw events. Out: `RankEvents`, arrays of one rank each.

The training thread is the one that marks steps; where none does, the one with most operations and annotations, and
where there are none of these, the one that launches most.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import ClockCourse, read_courses
from traceforge.align.rank_batches import RankBatch, RankFile
from traceforge.store.database import Store
from traceforge.timeline.layers import Intervals, Times, union
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


@dataclass(frozen=True, slots=True)
class Events:
    """Events in any order, which may overlap; shapes (events,)."""

    starts_ns: Times
    ends_ns: Times

    def union(self) -> Intervals:
        """When any of them runs."""
        return union(self.starts_ns, self.ends_ns)


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
    code_of = np.full(int(kind_ids.max(initial=-1)) + 2, -1, dtype=np.int16)
    track_of = np.full(len(code_of), -1, dtype=np.int32)
    code_of[kind_ids], track_of[kind_ids] = kinds["code"].to_numpy(), kinds["track_id"].to_numpy()
    # Kinds of no class share the last place.
    kind = np.minimum(events["kind_id"].to_numpy(), len(code_of) - 1)
    known = code_of[kind] >= 0
    code, track = code_of[kind[known]], track_of[kind[known]]
    del kind
    is_training = track == _training_track(code, track)
    start = events["raw_start_ns"].to_numpy()[known]
    end = start + events["duration_ns"].to_numpy()[known]
    return by_class(code, clock.aligned(start), clock.aligned(end), is_training)


def _training_track(code: Times, track: Times) -> int:
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


def by_class(code: Times, start_ns: Times, end_ns: Times, on_training_thread: NDArray[np.bool_]) -> RankEvents:
    """Events by class.

    Args:
        code: place of each event's class in `classes()`.
        start_ns, end_ns: of each.
        on_training_thread: whether it is.
    """
    every, training = {}, {}
    order = np.argsort(code, kind="stable")
    found, first = np.unique(code[order], return_index=True)
    edges = np.append(first, len(order)).tolist()
    names = classes()
    for number, (since, until) in zip(found.tolist(), pairwise(edges), strict=True):
        places = order[since:until]
        own = places[on_training_thread[places]]
        every[names[number]] = Events(start_ns[places], end_ns[places])
        if len(own) == len(places):
            training[names[number]] = every[names[number]]
        elif len(own):
            training[names[number]] = Events(start_ns[own], end_ns[own])
    return RankEvents(every, training)
