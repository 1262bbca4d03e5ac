"""Process groups of the timeline matched to NCCL's communicators. Fills fabric.communicator_match.

Idea: a timeline holds no pointers, so matching starts from equal rank lists; where several communicators have the same
ranks, the order of operations and sizes decides. The timeline is a window of what the log states and is slid along it.
Not handled: process groups whose ranks are unknown on either side; one group that owns several communicators.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from traceforge.fabric.log_reach import add_issues
from traceforge.store.database import Store
from traceforge.thresholds import fabric as thresholds

_LOGGED = "SELECT run_id, communicator_id, ranks FROM fabric.communicator WHERE ranks IS NOT NULL ORDER BY ALL"
_TIMED = "SELECT run_id, communicator_id, ranks FROM timeline.communicator ORDER BY ALL"

# NCCL counts what one rank sends (all_gather) or receives (reduce_scatter); timelines count what all hold together.
_CALLS = """
WITH busiest_rank AS (
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
JOIN busiest_rank AS s ON s.run_id = o.run_id AND s.communicator_id = o.communicator_id AND s.rank = o.rank
JOIN fabric.communicator AS k ON k.run_id = o.run_id AND k.communicator_id = o.communicator_id
WHERE o.run_id = ? AND o.communicator_id = ? AND o.op NOT IN ('send', 'recv')
ORDER BY o.sequence
"""

_COLLECTIVES = """
SELECT op, size_bytes FROM timeline.collective
WHERE run_id = ? AND communicator_id = ? AND op IS NOT NULL
ORDER BY sequence
"""

_COLUMNS = (
    "run_id", "communicator_id", "timeline_communicator_id", "score", "method", "first_sequence", "is_ambiguous",
)  # fmt: skip
_MAX_PROBES = 256
_MAX_PLACES = 64

Call = tuple[str, int | None]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class WindowFit:
    """How well a window of calls fits into a longer sequence.

    Attributes:
        score: share 0..1 of the window's calls that the sequence has at the same positions.
        first: position in the sequence at which the window begins; None where several fit equally well.
    """

    score: float
    first: int | None


@dataclass(frozen=True, slots=True)
class CandidateMatch:
    """A communicator of the logs and a process group of the timeline with equal ranks, and how well they agree."""

    logged: int
    timed: int
    score: float
    method: str
    first: int | None


def rows(store: Store) -> pl.DataFrame:
    """One row per matched communicator; adds an issue where logs are of other ranks than timelines."""
    add_issues(store)
    logged, timed = _by_ranks(store, _LOGGED), _by_ranks(store, _TIMED)
    found: list[tuple[object, ...]] = []
    for (run_id, ranks), numbers in sorted(timed.items()):
        candidates = logged.get((run_id, ranks), [])
        pairs = [_pair(store, run_id, own, other, len(candidates)) for own in candidates for other in numbers]
        found += [(run_id, *row) for row in assigned(pairs)]
    return pl.DataFrame(found, schema=_COLUMNS, orient="row", infer_schema_length=None)


def _by_ranks(store: Store, query: str) -> Mapping[tuple[int, tuple[int, ...]], list[int]]:
    found: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for run_id, number, ranks in store.query(query).iter_rows():
        found[run_id, tuple(sorted(ranks))].append(number)
    return found


def _pair(store: Store, run_id: int, logged: int, timed: int, candidates: int) -> CandidateMatch:
    calls = store.rows(_CALLS, [run_id, logged])
    window = store.rows(_COLLECTIVES, [run_id, timed])
    if not calls or not window:
        return CandidateMatch(logged, timed, 1 / candidates, "ranks", None)
    fit = best_fit(window, calls)
    return CandidateMatch(logged, timed, fit.score, "sequence", fit.first)


def assigned(pairs: Sequence[CandidateMatch]) -> Iterator[tuple[object, ...]]:
    """The best pairs, each communicator and each group once."""
    taken: set[tuple[str, int]] = set()
    for pair in sorted(pairs, key=lambda pair: (-pair.score, pair.logged, pair.timed)):
        names = {("logged", pair.logged), ("timed", pair.timed)}
        if names & taken or (pair.method == "sequence" and pair.score < thresholds.LEAST_MATCH_SCORE):
            continue
        taken |= names
        rivals = [
            one for one in pairs if one.score == pair.score and (one.logged == pair.logged) != (one.timed == pair.timed)
        ]
        yield pair.logged, pair.timed, pair.score, pair.method, pair.first, bool(rivals)


def best_fit(window: Sequence[Call], calls: Sequence[Call]) -> WindowFit:
    """Where a window lies in a sequence of calls; either end may reach beyond it.

    A sample of its calls vote for the positions they fit; the positions with most votes are compared call by call.
    """
    numbers: dict[Call, int] = {}
    window_ids = np.array([numbers.setdefault(call, len(numbers)) for call in window], dtype=np.int64)
    call_ids = np.array([numbers.setdefault(call, len(numbers)) for call in calls], dtype=np.int64)
    probes = np.unique(np.linspace(0, window_ids.size - 1, min(window_ids.size, _MAX_PROBES)).astype(np.int64))
    votes = np.zeros(call_ids.size + window_ids.size, dtype=np.int64)
    for probe in probes.tolist():
        np.add.at(votes, np.flatnonzero(call_ids == window_ids[probe]) - probe + window_ids.size - 1, 1)
    best = np.flatnonzero(votes == votes.max()) - window_ids.size + 1
    scores = [agreement(window_ids, call_ids, int(first)) for first in best[:_MAX_PLACES]]
    top = max(scores)
    firsts = [int(first) for first, score in zip(best, scores, strict=False) if score == top]
    return WindowFit(top, firsts[0] if len(firsts) == 1 and best.size <= _MAX_PLACES else None)


def agreement(window_ids: Ids, call_ids: Ids, first: int) -> float:
    """Share of a window's calls that equal those of a sequence from position `first` on."""
    begin, end = max(first, 0), min(first + window_ids.size, call_ids.size)
    same = int(np.sum(window_ids[begin - first : end - first] == call_ids[begin:end])) if end > begin else 0
    return same / window_ids.size
