"""Events of ranks by their role. In: raw events of some ranks. Out: `RoleEvents`, and `Rows` of one rank in arrays.

A role says what an event means to a call of a device: the work itself, its launch, or a span around that. Only what is
asked for is read: one role, and of it all or the events that begin in a stretch of time. Not handled: several ranks in
one file.
"""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.rank_batches import Parts, RankBatch
from traceforge.operation.nesting import NONE, Spans
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
    WHEN c.class = 'iteration' OR s.annotation IN (k.name, REGEXP_REPLACE(k.name, '[0-9]+', '#')) THEN 'step'
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
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3 AND kind_id IN (SELECT UNNEST($4))
"""
_LASTING, _LINK = "COALESCE(duration_ns, -1) AS duration_ns", "COALESCE(correlation, -1) AS correlation"
_BETWEEN = " AND raw_start_ns >= $5 AND raw_start_ns < $6"
_COUNTS = """
SELECT source_id, kind_id, COUNT(*) AS events
FROM raw.occurrence
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3 AND kind_id IN (SELECT UNNEST($4))
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


@dataclass(frozen=True, slots=True)
class Rows:
    """Events of one role; shapes (events,). What is not read of a role is empty (`_COLUMNS`)."""

    name: Integers
    track: Integers
    start_ns: Integers
    duration_ns: Integers
    correlation: Integers
    event_id: Integers

    def take(self, places: NDArray[np.bool_]) -> "Rows":
        """Some of them."""
        own = (getattr(self, field) for field in self.__slots__)
        return Rows(*(values[places] if len(values) else values for values in own))

    def beside(self, others: "Rows") -> "Rows":
        """These, and others."""
        return Rows(*(np.concatenate([getattr(self, one), getattr(others, one)]) for one in self.__slots__))

    def spans(self) -> Spans:
        """The stretches they last."""
        return Spans(self.track, self.start_ns, self.start_ns + self.duration_ns)


@dataclass(frozen=True, slots=True)
class RoleKinds:
    """RoleKinds of events of some ranks that have a role.

    Attributes:
        batch: the ranks.
        names: text and class of every name.
        kinds: file, number, track, name, class and role of each.
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
        names = kinds.frame.select("name", "class").unique(maintain_order=True).with_row_index("number")
        numbers = kinds.frame.join(names, on=["name", "class"], how="left", maintain_order="left")["number"]
        return cls(store, batch, names, kinds, numbers.cast(pl.Int32).to_numpy())

    def read(self, role: str, between: tuple[int, int] | None = None) -> "RoleEvents":
        """Events of a role: all, or those that begin between two times of the raw clock, ns."""
        sql = _EVENTS.format(columns=_COLUMNS[role]) + (_BETWEEN if between else "")
        events = self.batch.by_file(self.store, sql, [self._of_role(role), *(between or ())])
        self.store.release_beyond()
        return RoleEvents(self, role, events)

    def tracks(self, role: str) -> dict[int, int]:
        """The track of each file that has most events of a role."""
        counts = self.batch.by_file(self.store, _COUNTS, [self._of_role(role)]).frame
        tracks = counts.join(self.kinds.frame, on=["source_id", "kind_id"]).filter(pl.col("role") == role)
        sums = tracks.group_by("source_id", "track").agg(pl.col("events").sum())
        most = sums.sort("events", "track", descending=[True, False]).unique("source_id", keep="first")
        return dict(most.select("source_id", "track").iter_rows())

    def _of_role(self, role: str) -> list[int]:
        return self.kinds.frame.filter(pl.col("role") == role)["kind_id"].unique().to_list()


@dataclass(frozen=True, slots=True)
class RoleEvents:
    """Events of a role, of some ranks."""

    kinds: "RoleKinds"
    role: str
    events: Parts

    def rows(self, source_id: int) -> Rows:
        """Those of one file."""
        first, count = self.kinds.kinds.place(source_id)
        own, names = self.kinds.kinds.of(source_id), self.kinds.numbers[first : first + count]
        kind_ids = own["kind_id"].to_numpy()
        events = self.events.of(source_id)
        # RoleKinds of other files, of this role or not, may have the numbers of these.
        place_of = np.full(int(max(kind_ids.max(initial=-1), events["kind_id"].max() or 0)) + 1, NONE, dtype=np.int32)
        is_own = (own["role"] == self.role).to_numpy()
        place_of[kind_ids[is_own]] = np.flatnonzero(is_own)
        place = place_of[_array(events, "kind_id")]
        if (place == NONE).any():
            events, place = events.filter(pl.Series(place != NONE)), place[place != NONE]
        read = (
            _array(events, name) if name in events.columns else np.zeros(0, dtype=np.int64)
            for name in ("start_ns", "duration_ns", "correlation", "event_id")
        )
        return Rows(names[place], own["track"].to_numpy()[place], *read)


def _array(events: pl.DataFrame, name: str) -> Integers:
    """A column in one piece. The pieces are joined by numpy, which gives memory back that is no longer used."""
    pieces = [piece.to_numpy() for piece in events[name].get_chunks()]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int64)
