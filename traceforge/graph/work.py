"""A rank's own work between collectives. Reads graph.arrival, timeline.segment and window; fills graph.work.

The segments of a rank are integrated to running totals by (phase, activity); each stretch is a difference of two
totals, so the stretches add up to the ns. Iterations without any collective are one stretch.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.rank_batches import RankBatch, rank_batches
from traceforge.store.database import Store
from traceforge.timeline.layers import Times, covered_before

_ARRIVALS = """
SELECT w.rank, w.iteration, w.start_ns, w.end_ns AS window_end_ns, a.position, a.arrival_ns,
  b.end_ns AS awaited_end_ns, COALESCE(a.is_regular, r.is_regular, true) AS is_regular
FROM timeline.window AS w
LEFT JOIN graph.arrival AS a USING (run_id, iteration, rank)
LEFT JOIN graph.arrival AS b
  ON b.run_id = a.run_id AND b.iteration = a.iteration AND b.rank = a.rank AND b.position = a.awaited_position
LEFT JOIN (SELECT DISTINCT run_id, iteration, is_regular FROM graph.arrival) AS r
  ON r.run_id = w.run_id AND r.iteration = w.iteration
WHERE w.run_id = $1 AND w.rank BETWEEN $2 AND $3
  AND (
    w.iteration IN (SELECT iteration FROM graph.arrival WHERE run_id = $1)
    OR w.iteration NOT IN (SELECT iteration FROM timeline.arrival WHERE run_id = $1 AND iteration IS NOT NULL)
  )
ORDER BY w.rank, w.iteration, a.position
"""

_SEGMENTS = """
WITH kind AS (
  SELECT phase, activity, ROW_NUMBER() OVER (ORDER BY phase, activity) - 1 AS kind
  FROM (SELECT DISTINCT phase, activity FROM timeline.segment WHERE run_id = $1)
)
SELECT s.rank, k.kind, s.start_ns, s.duration_ns
FROM timeline.segment AS s
JOIN kind AS k ON k.phase = s.phase AND k.activity IS NOT DISTINCT FROM s.activity
WHERE s.run_id = $1 AND s.rank BETWEEN $2 AND $3 AND s.start_ns >= $4 AND s.start_ns < $5
ORDER BY s.rank, s.start_ns
"""

# Where a rank has millions of segments, some of them are looked at at a time; which ones makes no difference.
_CUTS = """
SELECT DISTINCT start_ns
FROM (
  SELECT start_ns, ROW_NUMBER() OVER () AS number FROM timeline.segment WHERE run_id = $1 AND rank BETWEEN $2 AND $3
)
WHERE number % $4 = 0
ORDER BY start_ns
"""

_KINDS = "SELECT DISTINCT phase, activity FROM timeline.segment WHERE run_id = ? ORDER BY phase, activity"

_KIND = ["phase", "activity"]
_OF_SEGMENT = ("start_ns", "duration_ns", "kind")
_MOST_SEGMENTS = 250_000
_TIMES = np.iinfo(np.int64)
_EXPOSED = ("transfer", "wait", "communication")


@dataclass(frozen=True, slots=True)
class _Stretches:
    """Stretches of ranks between arrivals; shapes (stretches,).

    Attributes:
        rank, iteration, position, is_regular: see graph.work.
        is_wait: whether the part is before a wait.
        from_ns, until_ns: on the common clock.
    """

    rank: NDArray[np.int64]
    iteration: NDArray[np.int64]
    position: NDArray[np.int64]
    is_regular: NDArray[np.bool_]
    is_wait: NDArray[np.bool_]
    from_ns: Times
    until_ns: Times


def rows(store: Store) -> pl.DataFrame:
    """One row a (rank, iteration, position, part, phase, activity) with work in it."""
    parts = []
    for batch in rank_batches(store):
        arrivals = batch.by_rank(store, _ARRIVALS).frame
        if not arrivals.is_empty():
            parts.append(_work(store, batch, _stretches(arrivals)))
    if not parts:
        return pl.DataFrame()
    return pl.concat(parts).sort("run_id", "iteration", "rank", "position", "part", *_KIND)


def _stretches(arrivals: pl.DataFrame) -> _Stretches:
    """Stretches of some ranks, by rank: before each arrival, before the wait behind it, and to the iteration's end."""
    rank, iteration, start, end = (
        arrivals[name].to_numpy().astype(np.int64) for name in ("rank", "iteration", "start_ns", "window_end_ns")
    )
    has_arrival = arrivals["position"].is_not_null().to_numpy()
    position = arrivals["position"].fill_null(-1).to_numpy().astype(np.int64)
    arrival = np.where(has_arrival, arrivals["arrival_ns"].fill_null(0).to_numpy(), start)
    waits = arrivals["awaited_end_ns"].is_not_null().to_numpy()
    awaited = np.where(waits, arrivals["awaited_end_ns"].fill_null(0).to_numpy(), arrival)
    reached = np.maximum(arrival, awaited)
    is_first = np.ones(len(rank), dtype=np.bool_)
    is_first[1:] = (rank[1:] != rank[:-1]) | (iteration[1:] != iteration[:-1])
    is_last = np.append(is_first[1:], True)
    before = np.where(is_first, start, np.append(start[:1], reached[:-1]))
    is_regular = arrivals["is_regular"].to_numpy()[np.flatnonzero(is_first)[np.cumsum(is_first) - 1]]
    place = np.concatenate([np.flatnonzero(some) for some in (has_arrival, waits, is_last)])
    lengths = [has_arrival.sum(), waits.sum(), is_last.sum()]
    part = np.repeat(np.arange(3), lengths)
    order = np.argsort(rank[place], kind="stable")
    place, part = place[order], part[order]
    return _Stretches(
        rank[place], iteration[place], position[place] + (part == _TAIL), is_regular[place], part == _WAIT,
        np.choose(part, [before[place], arrival[place], reached[place]]),
        np.choose(part, [arrival[place], awaited[place], end[place]]),
    )  # fmt: skip


_WAIT, _TAIL = 1, 2


def _work(store: Store, batch: RankBatch, stretches: _Stretches) -> pl.DataFrame:
    """How long each kind of segment lasts in each stretch, where it does."""
    kinds = store.query(_KINDS, [batch.run_id])
    is_exposed = kinds["phase"].is_in(_EXPOSED).to_numpy()
    found: list[tuple[NDArray[np.int64], ...]] = [(np.zeros(0, dtype=np.int64),) * 3]
    for (first, number), amount in sorted(_amounts(store, batch, stretches).items()):
        if is_exposed[number]:
            # Before a wait, exposed communication is the wait itself.
            amount[stretches.is_wait[first : first + len(amount)]] = 0
        place = np.flatnonzero(amount > 0)
        found.append((first + place, np.full(len(place), number), amount[place]))
    place, kind, amount = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return pl.DataFrame(
        {
            "run_id": np.full(len(place), batch.run_id),
            "iteration": stretches.iteration[place],
            "rank": stretches.rank[place],
            "position": stretches.position[place],
            "part": pl.Series(["before_arrival", "before_wait"]).gather(stretches.is_wait[place].astype(np.int64)),
            "phase": kinds["phase"].gather(kind),
            "activity": kinds["activity"].gather(kind),
            "is_regular": stretches.is_regular[place],
            "duration_ns": amount,
        }
    )


def _amounts(store: Store, batch: RankBatch, stretches: _Stretches) -> dict[tuple[int, int], Times]:
    """Time of each kind in the stretches of each rank, by the first of its stretches and the kind."""
    amounts: dict[tuple[int, int], Times] = {}
    for between in pairwise([int(_TIMES.min), *_cuts(store, batch), int(_TIMES.max)]):
        segments = batch.by_rank(store, _SEGMENTS, between)
        for one in batch.ranks:
            first, last = np.searchsorted(stretches.rank, [one.rank, one.rank + 1]).tolist()
            if first == last:  # none of its iterations is in the graph
                continue
            start, duration, kind = (segments.of(one.rank)[name].to_numpy() for name in _OF_SEGMENT)
            for number in np.unique(kind).tolist():
                own = np.flatnonzero(kind == number)
                amount = covered_before(start[own], duration[own], stretches.until_ns[first:last])
                amount -= covered_before(start[own], duration[own], stretches.from_ns[first:last])
                before = amounts.setdefault((first, number), amount)
                if before is not amount:
                    before += amount
    return amounts


def _cuts(store: Store, batch: RankBatch) -> list[int]:
    """Times between which a large rank has as many segments as are looked at together."""
    if len(batch.ranks) > 1:
        return []
    rank = batch.ranks[0].rank
    return [start for (start,) in store.rows(_CUTS, [batch.run_id, rank, rank, _MOST_SEGMENTS])]
