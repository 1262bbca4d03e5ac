"""Events of ranks by their role. In: raw events of some ranks. Out: `RoleEvents`, and `Rows` of one rank in arrays.

A role says what an event means to a call of a device: the work itself, its launch, or a span around that. Only what is
asked for is read: one role, and of it all or the events that begin in a stretch of time. Not handled: several ranks in
one file.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.rank_batches import Parts, RankBatch
from traceforge.operation.nesting import NONE, Spans, places_type
from traceforge.store.database import Store

Integers = NDArray[np.int64]

_KINDS = """
WITH step AS (
SELECT DISTINCT r.source_id, s.annotation FROM align.step AS s JOIN align.rank AS r USING (run_id, rank)
),
classed AS (
SELECT k.source_id, k.kind_id, COALESCE(k.track_id, -1) AS track, k.name, c.class,
  CASE
    WHEN c.canonical_category IN ('kernel', 'gpu_memcpy', 'gpu_memset') THEN 'device'
    WHEN c.canonical_category IN ('cuda_runtime', 'cuda_driver') THEN 'launch'
    WHEN c.class = 'iteration' OR align.is_step_name(k.name, s.annotation) THEN 'step'
    WHEN c.canonical_category = 'cpu_op' THEN 'operation'
    WHEN c.canonical_category = 'user_annotation' THEN 'annotation'
    WHEN c.canonical_category = 'python_function' AND k.name LIKE 'nn.Module: %' THEN 'module'
  END AS role
FROM raw.event_kind AS k
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM k.category AND c.name = k.name
LEFT JOIN step AS s ON s.source_id = k.source_id AND c.canonical_category = 'user_annotation'
WHERE k.source_id IN (SELECT UNNEST($1)) AND k.source_id BETWEEN $2 AND $3 AND k.phase = 'X'
)
SELECT source_id, kind_id, track, name, class, role FROM classed WHERE role IS NOT NULL ORDER BY source_id, kind_id
"""

_EVENTS = """
SELECT source_id, kind_id, COALESCE(raw_start_ns, -1) AS start_ns, {columns}
FROM raw.occurrence
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3 AND kind_id IN ({kinds})
"""
_SIZES = """
SELECT COUNT(*), MIN(event_id), MAX(event_id), MAX(duration_ns)
FROM raw.occurrence
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3 AND kind_id IN ({kinds})
"""
# Kinds as stretches of their numbers: a rank with as many names as events has a hundred thousand of them.
_IN_STRETCHES = "SELECT UNNEST(RANGE(one[1], one[2])) FROM (SELECT UNNEST($4) AS one)"
_AT_ONCE = 65_536
_LASTING, _LINK = "COALESCE(duration_ns, -1) AS duration_ns", "COALESCE(correlation, -1) AS correlation"
_BETWEEN = " AND raw_start_ns >= $5 AND raw_start_ns < $6"
_PIECE = " AND event_id >= {first} AND event_id < {behind}"
_COUNTS = """
SELECT source_id, kind_id, COUNT(*) AS events
FROM raw.occurrence
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3 AND kind_id IN ({kinds})
GROUP BY source_id, kind_id
ORDER BY source_id, kind_id
"""

# What is read of the events of each role; of all of them kind, track and start.
_COLUMNS = MappingProxyType(
    {
        "device": f"{_LASTING}, {_LINK}",
        "launch": _LINK,
        "step": _LASTING,
        "operation": f"event_id, {_LASTING}",
        "annotation": f"event_id, {_LASTING}",
        "module": _LASTING,
    }
)


_NO_EVENTS = pl.DataFrame(schema={"source_id": pl.Int32, "kind_id": pl.Int32, "start_ns": pl.Int64})
_READ = frozenset({"start_ns", "duration_ns", "correlation", "event_id"})


@dataclass(frozen=True, slots=True)
class Rows:
    """Events of one role; shapes (events,). What is not read of a role is empty (`_COLUMNS`)."""

    name: NDArray[Any]
    track: NDArray[Any]
    start_ns: Integers
    duration_ns: NDArray[Any]
    correlation: Integers
    event_id: NDArray[Any]

    def take(self, places: NDArray[np.bool_] | slice) -> "Rows":
        """Some of them."""
        own = (getattr(self, field) for field in self.__slots__)
        return Rows(*(values[places] if len(values) else values for values in own))

    def beside(self, others: "Rows") -> "Rows":
        """These, and others."""
        return Rows(*(np.concatenate([getattr(self, one), getattr(others, one)]) for one in self.__slots__))

    def spans(self) -> Spans:
        """The stretches they last."""
        return Spans(self.track, self.start_ns, self.duration_ns)


@dataclass(frozen=True, slots=True)
class RoleKinds:
    """Kinds of the events of some ranks that have a role.

    Attributes:
        batch: the ranks.
        names: text and class of every name.
        kinds: file, number, track and role of each.
        numbers: of each one's name.
    """

    store: Store
    batch: RankBatch
    names: pl.DataFrame
    kinds: Parts
    numbers: Integers

    @classmethod
    def of(cls, store: Store, batch: RankBatch) -> "RoleKinds":
        """Those of a batch."""
        kinds = batch.by_file(store, _KINDS)
        store.release_beyond(0)  # what DuckDB joined the names with
        names = kinds.frame.select("name", "class").unique(maintain_order=True).with_row_index("number")
        numbers = kinds.frame.join(names, on=["name", "class"], how="left", maintain_order="left")["number"]
        kinds = Parts(kinds.frame.drop("name", "class"), kinds.places)
        return cls(store, batch, names, kinds, numbers.cast(pl.Int32).to_numpy())

    def read(self, role: str, between: tuple[int, int] | None = None) -> "RoleEvents":
        """Events of a role: all, or those that begin between two times of the raw clock, ns."""
        return RoleEvents(self, role, self._events(role, between))

    def only(self, role: str, between: tuple[int, int] | None = None) -> "Rows":
        """The same of a batch of one rank, whose events are not held beside their rows: there may be millions."""
        source_id = self.batch.ranks[0].source_id
        if not self._of_role(role):
            return _room(role, 0, 0, 0)
        with self.store.narrowed(source_id, source_id):
            sizes = _SIZES.format(kinds=_IN_STRETCHES) + (_BETWEEN if between else "")
            asked = [[source_id], source_id, source_id, self._of_role(role), *(between or ())]
            ((count, first, last, longest_ns),) = self.store.rows(sizes, asked)
        ids = range(first or 0, (last or 0) + 1)
        step = -(-len(ids) * _AT_ONCE // max(count, _AT_ONCE))
        pieces = (self._events(role, between, ids[at : at + step]).frame for at in range(0, len(ids), step))
        found = self.rows_of(role, source_id, _room(role, count, last or 0, longest_ns or 0), pieces)
        self.store.release_beyond(0)  # what the last piece was read with
        return found

    def of_files(self, role: str) -> Callable[[int], "Rows"]:
        """All events of a role by their file; of small files they are read together."""
        return self.read(role).rows if len(self.batch.ranks) > 1 else lambda _: self.only(role)

    def _events(self, role: str, between: tuple[int, int] | None, ids: range | None = None) -> Parts:
        if not (kinds := self._of_role(role)):
            return Parts(_NO_EVENTS, {})
        sql = _EVENTS.format(columns=_COLUMNS[role], kinds=_IN_STRETCHES) + (_BETWEEN if between else "")
        if ids is not None:
            sql += _PIECE.format(first=ids.start, behind=ids.stop)
        events = self.batch.by_file(self.store, sql, [kinds, *(between or ())])
        self.store.release_beyond()
        return events

    def rows_of(self, role: str, source_id: int, found: "Rows", pieces: Iterable[pl.DataFrame]) -> "Rows":
        """Events of a file, from frames of some of them each; they are written where there is room for all."""
        first, kind_count = self.kinds.place(source_id)
        own, names = self.kinds.of(source_id), self.numbers[first : first + kind_count]
        kind_ids, is_own, tracks = own["kind_id"].to_numpy(), own["role"] == role, own["track"].to_numpy()
        place_of = np.full(int(kind_ids.max(initial=-1)) + 2, NONE, dtype=np.int32)
        place_of[kind_ids[is_own.to_numpy()]] = np.flatnonzero(is_own)
        filled = 0
        for piece in pieces:
            # Kinds of other files, of this role or not, may have the numbers of these; all beyond share the last place.
            place = place_of[np.minimum(piece["kind_id"].to_numpy(), len(place_of) - 1)]
            known = place != NONE
            inside = slice(filled, filled + int(known.sum()))
            found.name[inside], found.track[inside] = names[place[known]], tracks[place[known]]
            for name in _READ & {*piece.columns}:
                getattr(found, name)[inside] = piece[name].to_numpy()[known]
            filled = inside.stop
        return found.take(slice(0, filled))

    def tracks(self, role: str) -> dict[int, int]:
        """The track of each file that has most events of a role."""
        if not (kinds := self._of_role(role)):
            return {}
        counts = self.batch.by_file(self.store, _COUNTS.format(kinds=_IN_STRETCHES), [kinds]).frame
        tracks = counts.join(self.kinds.frame, on=["source_id", "kind_id"]).filter(pl.col("role") == role)
        sums = tracks.group_by("source_id", "track").agg(pl.col("events").sum())
        most = sums.sort("events", "track", descending=[True, False]).unique("source_id", keep="first")
        return dict(most.select("source_id", "track").iter_rows())

    def _of_role(self, role: str) -> list[list[int]]:
        """Stretches of the numbers that kinds of a role have, the end excluded."""
        numbers = self.kinds.frame.filter(pl.col("role") == role)["kind_id"].unique().sort().to_numpy()
        stretches = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
        return [[int(one[0]), int(one[-1]) + 1] for one in stretches if len(one)]


@dataclass(frozen=True, slots=True)
class RoleEvents:
    """Events of a role, of some ranks."""

    kinds: "RoleKinds"
    role: str
    events: Parts

    def rows(self, source_id: int) -> Rows:
        """Those of one file."""
        events = self.events.of(source_id)
        largest_id, longest_ns = (
            int(events[name].max() or 0) if name in events.columns else 0  # type: ignore[arg-type]
            for name in ("event_id", "duration_ns")
        )
        room = _room(self.role, events.height, largest_id, longest_ns)
        return self.kinds.rows_of(self.role, source_id, room, [events])


def _room(role: str, count: int, largest_id: int, longest_ns: int) -> Rows:
    """Rows for so many events, of nothing yet; numbers and durations of events are as narrow as they may be."""
    types = {"start_ns": np.int64, "duration_ns": places_type(longest_ns), "correlation": np.int64}
    names, tracks = (np.empty(count, dtype=np.int32) for _ in range(2))
    start, duration, link, ids = (
        np.empty(count if name in f"start_ns, {_COLUMNS[role]}" else 0, dtype=type_)
        for name, type_ in {**types, "event_id": places_type(largest_id)}.items()
    )
    return Rows(names, tracks, start, duration, link, ids)
