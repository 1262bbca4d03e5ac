"""What set the length of the run. Reads graph.arrival, graph.work and timeline.window; fills graph.critical_path.

Walked backwards from the last end: a rank's own work leads to the collective event (an arrival and the wait after it)
before it; a wait in which the rank was blocked leads over the collective's transfer to the rank that began it last, and
on from there: to its arrival, or over the transfer of the collective that held up its stream. The pieces tile the time
between the first start and the last end exactly. Not handled: dependencies inside a stretch of work.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from traceforge.store.database import Store

_WINDOWS = """
SELECT run_id, rank, iteration, start_ns, end_ns FROM timeline.window ORDER BY run_id, rank, start_ns
"""

_EVENTS = """
SELECT a.run_id, a.iteration, a.rank, a.position, a.collective_id, a.arrival_ns, b.collective_id AS awaited,
  COALESCE(b.end_ns, a.arrival_ns) AS awaited_end_ns, COALESCE(w.work_ns, 0) AS work_ns,
  q.collective_id AS held_by, q.end_ns AS free_ns
FROM graph.arrival AS a
LEFT JOIN graph.arrival AS b
  ON b.run_id = a.run_id AND b.iteration = a.iteration AND b.rank = a.rank AND b.position = a.awaited_position
LEFT JOIN graph.arrival AS q
  ON q.run_id = a.run_id AND q.iteration = a.iteration AND q.rank = a.rank AND q.position = a.queued_position
    AND q.end_ns > a.arrival_ns
LEFT JOIN (
  SELECT run_id, iteration, rank, position, CAST(SUM(duration_ns) AS BIGINT) AS work_ns
  FROM graph.work WHERE part = 'before_wait' GROUP BY ALL
) AS w ON w.run_id = a.run_id AND w.iteration = a.iteration AND w.rank = a.rank AND w.position = a.position
ORDER BY a.run_id, a.iteration, a.rank, a.position
"""


@dataclass(frozen=True, slots=True)
class CollectiveEvent:
    """An arrival and the wait after it; ns on the aligned clock.

    Attributes:
        awaited: number of the collective awaited; None where none is.
        awaited_end_ns: its end on this rank; the arrival where none is awaited.
        work_ns: own work between the arrival and the wait.
    """

    arrival_ns: int
    awaited: int | None
    awaited_end_ns: int
    work_ns: int

    @property
    def left_ns(self) -> int:
        """When the rank goes on."""
        return max(self.arrival_ns, self.awaited_end_ns)

    @property
    def is_blocked(self) -> bool:
        """Whether the rank stood still in the wait."""
        return self.awaited_end_ns > self.arrival_ns + self.work_ns


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a collective began on the member that was last; ns on the aligned clock.

    Attributes:
        begun_ns: when the member had arrived and its stream was free.
        iteration: as the member counts, which need not be as others do.
        place: of the arrival among the rank's events.
        held_by: the collective that held up its stream; None where the rank arrived when it was free.
    """

    begun_ns: int
    iteration: int
    rank: int
    place: int
    held_by: int | None


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the path; ns on the aligned clock."""

    iteration: int
    rank: int
    kind: str
    collective: int | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Chains:
    """A run's chains.

    Attributes:
        windows: by rank, (iteration, start, end) in order of time, ns.
        events: by (iteration, rank), in order of position; absent where the iteration is not in the graph, or the
            rank has none.
        last: by collective, the member that began it last.
    """

    windows: dict[int, list[tuple[int, int, int]]]
    events: dict[tuple[int, int], list[CollectiveEvent]]
    last: dict[int, Beginning]


def rows(store: Store) -> pl.DataFrame:
    """The pieces of every run, in order of time."""
    windows, events = store.query(_WINDOWS), store.query(_EVENTS)
    result: list[tuple[object, ...]] = []
    for (run_id,), own in windows.group_by("run_id", maintain_order=True):
        pieces = critical_path(_chains(own, events.filter(pl.col("run_id") == run_id)))
        result += [
            (run_id, n, p.iteration, p.rank, p.kind, p.collective, p.start_ns, p.end_ns - p.start_ns)
            for n, p in enumerate(pieces)
        ]
    names = ["run_id", "piece", "iteration", "rank", "kind", "collective_id", "start_ns", "duration_ns"]
    return pl.DataFrame(result, schema=names, orient="row", infer_schema_length=None)


def _chains(windows: pl.DataFrame, events: pl.DataFrame) -> Chains:
    by_rank: dict[int, list[tuple[int, int, int]]] = {}
    for _, rank, iteration, start_ns, end_ns in windows.iter_rows():
        by_rank.setdefault(rank, []).append((iteration, start_ns, end_ns))
    chains = Chains(by_rank, {}, {})
    for _, iteration, rank, _, collective, arrival, *wait, held_by, free_ns in events.iter_rows():
        own = chains.events.setdefault((iteration, rank), [])
        own.append(CollectiveEvent(arrival, *wait))
        begun = Beginning(arrival if held_by is None else free_ns, iteration, rank, len(own) - 1, held_by)
        # Of ranks that begin together the lowest stands for all.
        if collective not in chains.last or begun.begun_ns > chains.last[collective].begun_ns:
            chains.last[collective] = begun
    return chains


def critical_path(chains: Chains) -> list[Piece]:
    """Consecutive pieces that end with the last end of any rank."""
    if not chains.windows:
        return []
    rank = max(sorted(chains.windows), key=lambda r: chains.windows[r][-1][2])
    pieces = [piece for piece in _backwards(chains, rank) if piece.end_ns > piece.start_ns]
    return pieces[::-1]


def _backwards(chains: Chains, rank: int) -> Iterator[Piece]:
    """Pieces from the last end to a first start. Each step moves to an earlier event, so it ends."""
    place = len(chains.windows[rank]) - 1
    until_ns = chains.windows[rank][place][2]
    position: int | None = None
    while place >= 0:
        iteration, start_ns, _ = chains.windows[rank][place]
        events = chains.events.get((iteration, rank), [])
        position = len(events) if position is None else position
        reached_ns = events[position - 1].left_ns if position else start_ns
        kind = "work" if (iteration, rank) in chains.events else "unknown"
        yield Piece(iteration, rank, kind, None, reached_ns, until_ns)
        until_ns = reached_ns
        if position:
            event = events[position - 1]
            transfers, last = _wait(chains, iteration, rank, event)
            if last is not None:
                yield from transfers
                rank, position, until_ns = last.rank, last.place, transfers[-1].start_ns
                place = _place(chains, rank, last.iteration)
                continue
            position -= 1
            yield Piece(iteration, rank, "unknown" if event.is_blocked else "work", None, event.arrival_ns, until_ns)
            until_ns = event.arrival_ns
            continue
        place, position = place - 1, None
        if place >= 0:
            iteration, _, before_ns = chains.windows[rank][place]
        else:
            before_ns = min(windows[0][1] for windows in chains.windows.values())
        yield Piece(iteration, rank, "pause", None, before_ns, start_ns)
        until_ns = before_ns


def _wait(chains: Chains, iteration: int, rank: int, event: CollectiveEvent) -> tuple[list[Piece], Beginning | None]:
    """The transfers that a blocked rank waited for, the last one first, and where the path goes on; None: by itself."""
    transfers: list[Piece] = []
    found: Beginning | None = None
    collective, until_ns = event.awaited if event.is_blocked else None, event.awaited_end_ns
    while collective is not None and chains.last[collective].begun_ns < until_ns:
        found = chains.last[collective]
        transfers.append(Piece(iteration, rank, "transfer", collective, found.begun_ns, until_ns))
        rank, collective, until_ns = found.rank, found.held_by, found.begun_ns
    return transfers, found


def _place(chains: Chains, rank: int, iteration: int) -> int:
    return next(n for n, (number, _, _) in enumerate(chains.windows[rank]) if number == iteration)
