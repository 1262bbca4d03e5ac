"""Process groups of the timeline matched to NCCL's communicators. Fills fabric.communicator_match.

Idea: a pointer never occurs in a timeline, so a match must have the same ranks; among those of the same ranks, the
order of operations and sizes decides. The timeline is a window of what the log states, so it is slid along the log.
Not handled: process groups whose ranks are unknown on either side; one group that owns several communicators.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceforge.store.database import Store

_LOGGED = "SELECT run_id, communicator_id, ranks FROM fabric.communicator WHERE ranks IS NOT NULL ORDER BY ALL"
_TIMED = "SELECT run_id, communicator_id, ranks FROM timeline.communicator ORDER BY ALL"

# NCCL counts what one rank sends (all_gather) or receives (reduce_scatter); timelines count what all hold together.
_CALLS = """
WITH spokesman AS (
  SELECT run_id, communicator_id, ARG_MAX(rank, (calls, -rank)) AS rank
  FROM (
    SELECT run_id, communicator_id, rank, COUNT(*) AS calls FROM fabric.operation
    WHERE rank IS NOT NULL
    GROUP BY run_id, communicator_id, rank
  )
  GROUP BY run_id, communicator_id
)
SELECT o.op,
  o.size_bytes * CASE WHEN o.op IN ('all_gather', 'reduce_scatter') THEN k.rank_count ELSE 1 END AS size_bytes
FROM fabric.operation AS o
JOIN spokesman AS s ON s.run_id = o.run_id AND s.communicator_id = o.communicator_id AND s.rank = o.rank
JOIN fabric.communicator AS k ON k.run_id = o.run_id AND k.communicator_id = o.communicator_id
WHERE o.run_id = ? AND o.communicator_id = ? AND o.op NOT IN ('send', 'recv')
ORDER BY o.sequence
"""

_COLLECTIVES = """
SELECT op, size_bytes FROM timeline.collective
WHERE run_id = ? AND communicator_id = ? AND op IS NOT NULL
ORDER BY sequence
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "communicator_id": pl.Int32,
    "timeline_communicator_id": pl.Int64,
    "score": pl.Float64,
    "method": pl.String,
    "first_sequence": pl.Int64,
    "is_ambiguous": pl.Boolean,
}
_MOST_PROBES = 256
_LEAST_SCORE = 0.5

Call = tuple[str, int | None]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fit:
    """How a window of calls fits into a longer sequence.

    Attributes:
        score: share 0..1 of the window's calls that stand at their place.
        first: where the window begins in the sequence; None where several places fit as well.
    """

    score: float
    first: int | None


@dataclass(frozen=True, slots=True)
class _Pair:
    logged: int
    timed: int
    score: float
    method: str
    first: int | None


def rows(store: Store) -> pl.DataFrame:
    """One row a matched communicator."""
    logged, timed = _by_ranks(store, _LOGGED), _by_ranks(store, _TIMED)
    found: list[tuple[object, ...]] = []
    for (run_id, ranks), numbers in sorted(timed.items()):
        candidates = logged.get((run_id, ranks), [])
        pairs = [_pair(store, run_id, own, other, len(candidates)) for own in candidates for other in numbers]
        found += [(run_id, *row) for row in assigned(pairs)]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _by_ranks(store: Store, query: str) -> Mapping[tuple[int, tuple[int, ...]], list[int]]:
    found: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for run_id, number, ranks in store.query(query).iter_rows():
        found[run_id, tuple(sorted(ranks))].append(number)
    return found


def _pair(store: Store, run_id: int, logged: int, timed: int, candidates: int) -> _Pair:
    calls = store.query(_CALLS, [run_id, logged]).rows()
    window = store.query(_COLLECTIVES, [run_id, timed]).rows()
    if not calls or not window:
        return _Pair(logged, timed, 1 / candidates, "ranks", None)
    fit = best_fit(window, calls)
    return _Pair(logged, timed, fit.score, "sequence", fit.first)


def assigned(pairs: Sequence[_Pair]) -> Iterator[tuple[object, ...]]:
    """The best pairs, each communicator and each group once."""
    taken: set[tuple[str, int]] = set()
    for pair in sorted(pairs, key=lambda pair: (-pair.score, pair.logged, pair.timed)):
        names = {("logged", pair.logged), ("timed", pair.timed)}
        if names & taken or (pair.method == "sequence" and pair.score < _LEAST_SCORE):
            continue
        taken |= names
        rivals = [
            one for one in pairs if one.score == pair.score and (one.logged == pair.logged) != (one.timed == pair.timed)
        ]
        yield pair.logged, pair.timed, pair.score, pair.method, pair.first, bool(rivals)


def best_fit(window: Sequence[Call], calls: Sequence[Call]) -> Fit:
    """The place of a window in a sequence of calls; its ends may lie outside.

    Calls vote for places where they would fit; the places with most votes are then compared call by call.
    """
    numbers: dict[Call, int] = {}
    needle = np.array([numbers.setdefault(call, len(numbers)) for call in window], dtype=np.int64)
    straw = np.array([numbers.setdefault(call, len(numbers)) for call in calls], dtype=np.int64)
    probes = np.unique(np.linspace(0, needle.size - 1, min(needle.size, _MOST_PROBES)).astype(np.int64))
    votes = np.zeros(straw.size + needle.size, dtype=np.int64)
    for place in probes.tolist():
        np.add.at(votes, np.flatnonzero(straw == needle[place]) - place + needle.size - 1, 1)
    best = np.flatnonzero(votes == votes.max()) - needle.size + 1
    scores = [agreement(needle, straw, int(first)) for first in best[:64]]
    top = max(scores)
    firsts = [int(first) for first, score in zip(best, scores, strict=False) if score == top]
    return Fit(top, firsts[0] if len(firsts) == 1 and best.size <= 64 else None)


def agreement(needle: Ids, straw: Ids, first: int) -> float:
    """Share of a window's calls that equal those of a sequence, from a place on."""
    begin, end = max(first, 0), min(first + needle.size, straw.size)
    same = int(np.sum(needle[begin - first : end - first] == straw[begin:end])) if end > begin else 0
    return same / needle.size
