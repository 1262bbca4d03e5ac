"""Findings as tracks for Perfetto. In: a run of a store. Out: Chrome trace events on the common clock.

    iterations · one track per finding, over its iterations · lateness of each rank as a counter
    one track per rank and communicator: its waits and transfers, with an arrow from the last arriver to those who wait

Times are µs with three decimals since the first event of the run. Waits below the clocks' resolution are not drawn; of
the others the longest. Not handled: gaps within intermittent findings (drawn from first to last iteration).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from traceforge.redaction import Redaction
from traceforge.store.database import Store

MOST_WAITS = 20_000
_JOB, _RANKS = 1, 2
_LONGEST_NAME = 240
_ITERATIONS = """
SELECT i.iteration, i.start_ns, i.duration_ns, e.excess_ns
FROM timeline.iteration AS i
LEFT JOIN attribute.excess AS e USING (run_id, iteration)
WHERE i.run_id = ?
ORDER BY i.start_ns
"""
_FINDINGS = """
SELECT f.finding_id, f.summary, f.mode, f.cause, f.subject_kind, f.subject, f.confidence, f.next_step,
  f.delay_ns_per_iteration, MIN(i.start_ns) AS start_ns, MAX(i.start_ns + i.duration_ns) AS end_ns
FROM attribute.finding AS f
JOIN timeline.iteration AS i
  ON i.run_id = f.run_id AND i.iteration BETWEEN f.first_iteration AND f.last_iteration
WHERE f.run_id = ?
GROUP BY ALL
ORDER BY f.finding_id
"""
_LATENESS = """
SELECT a.rank, a.iteration, MIN(i.start_ns) AS start_ns, MAX(a.late_ns) AS late_ns
FROM timeline.arrival AS a
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE a.run_id = ?
GROUP BY a.rank, a.iteration
ORDER BY start_ns, a.rank
"""
_WAITS = """
WITH longest AS (
  SELECT a.run_id, a.collective_id
  FROM timeline.arrival AS a
  WHERE a.run_id = ? AND NOT a.wait_below_resolution AND a.wait_ns > 0
  GROUP BY a.run_id, a.collective_id
  ORDER BY MAX(a.wait_ns) DESC, a.collective_id
)
SELECT c.collective_id, c.communicator_id, COALESCE(g.description, g.name) AS group_name, c.op, c.size_bytes,
  c.last_rank, c.last_arrival_ns, a.rank, a.arrival_ns, a.wait_ns, a.end_ns, a.wait_below_resolution
FROM longest AS l
JOIN timeline.collective AS c USING (run_id, collective_id)
JOIN timeline.arrival AS a USING (run_id, collective_id)
JOIN timeline.communicator AS g ON g.run_id = c.run_id AND g.communicator_id = c.communicator_id
ORDER BY MAX(a.wait_ns) OVER (PARTITION BY c.collective_id) DESC, c.collective_id, a.rank
LIMIT ?
"""
_COUNT = "SELECT COUNT(*) FROM timeline.arrival WHERE run_id = ? AND NOT wait_below_resolution AND wait_ns > 0"

Event = dict[str, object]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FindingTracks:
    """The file with the tracks.

    Attributes:
        text: Chrome trace events as JSON.
        left_out: waits that are not drawn.
    """

    text: str
    left_out: int


def finding_tracks(store: Store, run_id: int, start_ns: int, redaction: Redaction | None = None) -> FindingTracks:
    """All tracks of a run, with times since `start_ns` on the common clock; names are redacted on request."""

    def rows_of(query: str, *parameters: int) -> list[Row]:
        rows = store.query(query, parameters)
        return (redaction.frame(rows) if redaction else rows).to_dicts()

    drawing = _Drawing(start_ns)
    events = [
        _named("process_name", _JOB, 0, "traceforge: job"),
        _named("process_name", _RANKS, 0, "traceforge: waits"),
    ]
    events += drawing.iterations(rows_of(_ITERATIONS, run_id))
    events += drawing.findings(rows_of(_FINDINGS, run_id))
    events += drawing.lateness(rows_of(_LATENESS, run_id))
    waits = rows_of(_WAITS, run_id, MOST_WAITS)
    events += drawing.waits(waits)
    events += drawing.job.named + drawing.ranks.named
    drawn = sum(not row["wait_below_resolution"] and row["wait_ns"] > 0 for row in waits)
    left_out = int(store.value(_COUNT, [run_id])) - drawn
    body = ",\n".join(json.dumps(event) for event in events)
    return FindingTracks(f'{{"displayTimeUnit": "ns", "traceEvents": [\n{body}\n]}}\n', left_out)


class _Lanes:
    """Tracks without overlaps: what would overlap goes to another track of the same name."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ends: dict[str, list[tuple[int, int]]] = {}
        self._numbers = count(1)
        self.named: list[Event] = []

    def place(self, label: str, start_ns: int, end_ns: int) -> int:
        """Number of a track that is free; intervals come in the order of their starts."""
        own = self._ends.setdefault(label, [])
        for place, (lane, until_ns) in enumerate(own):
            if until_ns <= start_ns:
                own[place] = lane, end_ns
                return lane
        lane = next(self._numbers)
        own.append((lane, end_ns))
        self.named.append(_named("thread_name", self._pid, lane, label))
        return lane


class _Drawing:
    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self.job, self.ranks = _Lanes(_JOB), _Lanes(_RANKS)

    def iterations(self, rows: list[Row]) -> Iterator[Event]:
        for row in rows:
            end_ns = row["start_ns"] + row["duration_ns"]
            lane = self.job.place("iterations", row["start_ns"], end_ns)
            name = f"iteration {row['iteration']}"
            yield self._slice(_JOB, lane, name, row["start_ns"], end_ns, _stated(row, "excess_ns"))

    def findings(self, rows: list[Row]) -> Iterator[Event]:
        for row in rows:
            lane = self.job.place(f"finding {row['finding_id']}: {row['cause']}", row["start_ns"], row["end_ns"])
            facts = _stated(
                row, "mode", "cause", "subject_kind", "subject", "confidence", "next_step", "delay_ns_per_iteration"
            )
            yield self._slice(_JOB, lane, row["summary"], row["start_ns"], row["end_ns"], facts)

    def lateness(self, rows: list[Row]) -> Iterator[Event]:
        for row in rows:
            yield {
                "ph": "C", "name": f"lateness of rank {row['rank']} (ms)", "pid": _JOB, "tid": 0,
                "ts": self._at(row["start_ns"]), "args": {"ms": row["late_ns"] / 1e6},
            }  # fmt: skip

    def waits(self, rows: list[Row]) -> Iterator[Event]:
        """Waits and transfers, and an arrow from the last arriver to the end of each wait."""
        lanes: dict[tuple[int, int], int] = {}
        for row in sorted(rows, key=lambda row: (row["arrival_ns"], row["collective_id"], row["rank"])):
            label = f"rank {row['rank']}, {row['group_name'] or 'communicator'} {row['communicator_id']}"
            lanes[row["collective_id"], row["rank"]] = self.ranks.place(label, row["arrival_ns"], row["end_ns"])
        flows = count(1)
        for row in rows:
            lane, last_lane = (lanes.get((row["collective_id"], rank)) for rank in (row["rank"], row["last_rank"]))
            arrival, last, end = row["arrival_ns"], row["last_arrival_ns"], row["end_ns"]
            facts = _stated(row, "collective_id", "size_bytes", "last_rank")
            if lane is not None and row["wait_ns"] > 0:
                name = f"wait for rank {row['last_rank']}"
                yield self._slice(_RANKS, lane, name, arrival, min(last, end), facts)
            if lane is not None and end > last:
                yield self._slice(_RANKS, lane, row["op"] or "collective", last, end, facts)
                if last_lane not in (None, lane) and not row["wait_below_resolution"]:
                    arrow: Event = {"id": next(flows), "cat": "wait", "name": "last arrival", "ts": self._at(last)}
                    yield {**arrow, "ph": "s", "pid": _RANKS, "tid": last_lane}
                    yield {**arrow, "ph": "f", "bp": "e", "pid": _RANKS, "tid": lane}

    def _slice(self, pid: int, tid: int, name: str, start_ns: int, end_ns: int, facts: Event) -> Event:
        return {
            "ph": "X", "cat": "traceforge", "name": name[:_LONGEST_NAME], "pid": pid, "tid": tid,
            "ts": self._at(start_ns), "dur": (end_ns - start_ns) / 1e3, "args": facts,
        }  # fmt: skip

    def _at(self, time_ns: int) -> float:
        """µs since the start; a run lasts less than the 104 days for which a double holds ns."""
        return (time_ns - self._start_ns) / 1e3


def _stated(row: Row, *names: str) -> Event:
    return {name: row[name] for name in names if row[name] is not None}


def _named(kind: str, pid: int, tid: int, label: str) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": label[:_LONGEST_NAME]}}
