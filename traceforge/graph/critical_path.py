"""What set the length of the run. Reads graph.arrival, graph.work and timeline.window; fills graph.critical_path.

Walked backwards from the last end: a rank's own work leads to the joint before it; a wait in which the rank was
blocked leads over the collective's transfer to the rank that arrived last, and on from there. The pieces tile the
time between the first start and the last end exactly. Not handled: dependencies inside a stretch of work;
collectives that stand behind one another on a stream, which count for one transfer.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from traceforge.store.database import Store

_WINDOWS = """
SELECT run_id, rank, iteration, start_ns, end_ns FROM timeline.window ORDER BY run_id, rank, start_ns
"""

_JOINTS = """
SELECT a.run_id, a.iteration, a.rank, a.position, a.collective_id, a.arrival_ns, a.awaited_position, b.end_ns,
  b.collective_id AS awaited_collective_id, COALESCE(w.work_ns, 0) AS work_ns
FROM graph.arrival AS a
LEFT JOIN graph.arrival AS b
  ON b.run_id = a.run_id AND b.iteration = a.iteration AND b.rank = a.rank AND b.position = a.awaited_position
LEFT JOIN (
  SELECT run_id, iteration, rank, position, CAST(SUM(duration_ns) AS BIGINT) AS work_ns
  FROM graph.work WHERE part = 'before_wait' GROUP BY ALL
) AS w ON w.run_id = a.run_id AND w.iteration = a.iteration AND w.rank = a.rank AND w.position = a.position
ORDER BY a.run_id, a.iteration, a.rank, a.position
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "piece": pl.Int32,
    "iteration": pl.Int32,
    "rank": pl.Int32,
    "kind": pl.String,
    "collective_id": pl.Int64,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
}


@dataclass(frozen=True, slots=True)
class Joint:
    """An arrival and the wait after it; ns on the aligned clock.

    Attributes:
        awaited: position of the collective awaited, None where none is.
        awaited_end_ns: its end on this rank.
        awaited_collective: its number.
        work_ns: own work between the arrival and the wait.
    """

    collective: int
    arrival_ns: int
    awaited: int | None
    awaited_end_ns: int
    awaited_collective: int
    work_ns: int

    @property
    def left_ns(self) -> int:
        """When the rank goes on after the joint."""
        return self.arrival_ns if self.awaited is None else max(self.arrival_ns, self.awaited_end_ns)

    @property
    def is_blocked(self) -> bool:
        """Whether the rank stood still in the wait."""
        return self.awaited is not None and self.awaited_end_ns > self.arrival_ns + self.work_ns


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
        joints: by (iteration, rank), in order of position; absent where the iteration is not in the graph, or the
            rank has none.
        last: by collective, (arrival, rank, place among the rank's joints) of the last arriver.
    """

    windows: dict[int, list[tuple[int, int, int]]]
    joints: dict[tuple[int, int], list[Joint]]
    last: dict[int, tuple[int, int, int]]


def rows(store: Store) -> pl.DataFrame:
    """The pieces of every run, in order of time."""
    windows, joints = store.query(_WINDOWS), store.query(_JOINTS)
    result: list[tuple[object, ...]] = []
    for (run_id,), own in windows.group_by("run_id", maintain_order=True):
        pieces = critical_path(_chains(own, joints.filter(pl.col("run_id") == run_id)))
        result += [
            (run_id, n, p.iteration, p.rank, p.kind, p.collective, p.start_ns, p.end_ns - p.start_ns)
            for n, p in enumerate(pieces)
        ]
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _chains(windows: pl.DataFrame, joints: pl.DataFrame) -> Chains:
    by_rank: dict[int, list[tuple[int, int, int]]] = {}
    for _, rank, iteration, start_ns, end_ns in windows.iter_rows():
        by_rank.setdefault(rank, []).append((iteration, start_ns, end_ns))
    chains = Chains(by_rank, {}, {})
    for _, iteration, rank, _, collective, arrival, awaited, end, awaited_collective, work in joints.iter_rows():
        joint = Joint(collective, arrival, awaited, end or 0, awaited_collective or 0, work)
        own = chains.joints.setdefault((iteration, rank), [])
        own.append(joint)
        # Of ranks that arrive together the lowest stands for all.
        if collective not in chains.last or arrival > chains.last[collective][0]:
            chains.last[collective] = (arrival, rank, len(own) - 1)
    return chains


def critical_path(chains: Chains) -> list[Piece]:
    """Consecutive pieces that end with the last end of any rank."""
    if not chains.windows:
        return []
    rank = max(sorted(chains.windows), key=lambda r: chains.windows[r][-1][2])
    pieces = [piece for piece in _backwards(chains, rank) if piece.end_ns > piece.start_ns]
    return pieces[::-1]


def _backwards(chains: Chains, rank: int) -> Iterator[Piece]:
    """Pieces from the last end to a first start. Each step moves to an earlier joint, so it ends."""
    place = len(chains.windows[rank]) - 1
    until_ns = chains.windows[rank][place][2]
    position: int | None = None
    while place >= 0:
        iteration, start_ns, _ = chains.windows[rank][place]
        joints = chains.joints.get((iteration, rank))
        if joints is None:
            yield Piece(iteration, rank, "unknown", None, start_ns, until_ns)
            position = 0
        else:
            position = len(joints) if position is None else position
            reached_ns = joints[position - 1].left_ns if position else start_ns
            yield Piece(iteration, rank, "work", None, reached_ns, until_ns)
            until_ns = reached_ns
        if position:
            jump = _wait(chains, iteration, rank, joints[position - 1]) if joints else None
            if jump is not None:
                piece, rank, position = jump
                yield piece
                until_ns = piece.start_ns
                place = _place(chains, rank, iteration)
                continue
            position -= 1
            joint = joints[position] if joints else None
            if joint is not None:
                kind = "unknown" if joint.is_blocked else "work"
                yield Piece(iteration, rank, kind, None, joint.arrival_ns, until_ns)
                until_ns = joint.arrival_ns
            continue
        place, position = place - 1, None
        if place >= 0:
            iteration, _, before_ns = chains.windows[rank][place]
        else:
            before_ns = min(windows[0][1] for windows in chains.windows.values())
        yield Piece(iteration, rank, "pause", None, before_ns, start_ns)
        until_ns = before_ns


def _wait(chains: Chains, iteration: int, rank: int, joint: Joint) -> tuple[Piece, int, int] | None:
    """The transfer that a blocked rank waited for, and where the path goes on; None where it goes on by itself."""
    if not joint.is_blocked:
        return None
    arrival_ns, last_rank, position = chains.last[joint.awaited_collective]
    if arrival_ns >= joint.awaited_end_ns:
        return None
    piece = Piece(iteration, rank, "transfer", joint.awaited_collective, arrival_ns, joint.awaited_end_ns)
    return piece, last_rank, position


def _place(chains: Chains, rank: int, iteration: int) -> int:
    return next(n for n, (number, _, _) in enumerate(chains.windows[rank]) if number == iteration)
