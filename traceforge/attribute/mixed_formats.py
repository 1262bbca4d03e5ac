"""What is said of a job that several profilers recorded. In: which ranks each recorded. Out: sentences of the verdict.

Idea: profilers number and name calls in ways of their own, so that ranks of one often do not match those of another:
then the reason is said instead of the symptom. Where they do, it is said that they were joined.
Not handled: which of the calls were matched by what.
"""

from collections.abc import Mapping
from typing import Any

from traceforge.store.database import Store
from traceforge.units import listed

_NOT_MATCHED = frozenset({"unmatched", "mostly_unmatched", "irregular"})
_JOINED = frozenset({"finding", "uncertain", "cut_short", "partly_seen", "nothing_significant"})
_NAMES = {
    "kineto": "PyTorch's profiler",
    "live_log": "traceforge.live",
    "nsys": "Nsight Systems",
    "pftrace": "PyTorch's CUPTI observer",
    "xplane": "XLA's profiler",
    "operation_table": "the job's own timers",
    "rocprof": "rocprofv3",
    "rocpd": "rocprofv3 (rocpd)",
}
_FORMATS = """
SELECT r.run_id, s.kind, LIST(r.rank ORDER BY r.rank) AS ranks
FROM align.rank AS r
JOIN meta.source AS s USING (source_id)
GROUP BY r.run_id, s.kind
ORDER BY r.run_id, ranks
"""
_MOST_RANKS = 4


def profilers_of(store: Store) -> dict[int, dict[str, list[int]]]:
    """By run, which profiler recorded which ranks."""
    recorded: dict[int, dict[str, list[int]]] = {}
    for run_id, kind, ranks in store.query(_FORMATS).iter_rows():
        recorded.setdefault(run_id, {})[kind] = ranks
    return recorded


def of_mixed_formats(state: Mapping[str, Any], recorded: Mapping[str, list[int]]) -> dict[str, object]:
    """Headline and next step where ranks were recorded by several profilers and do not match; else nothing.

    Args:
        recorded: ranks by format.
    """
    if state["state"] not in _NOT_MATCHED or len(recorded) < 2:
        return {}
    return {
        "headline": f"{_who(recorded)}: their calls cannot be matched, so who waits for whom cannot be known.",
        "next_step": "Record all ranks in the same steps with one profiler, or ingest the files of each as a run.",
    }


def joined(state: Mapping[str, Any], recorded: Mapping[str, list[int]]) -> str:
    """That ranks of several profilers were joined, as a sentence; empty where one recorded all, or none match."""
    if state["state"] not in _JOINED or len(recorded) < 2:
        return ""
    return f"{_who(recorded)}; their calls were matched, so they are compared as one job."


def _who(recorded: Mapping[str, list[int]]) -> str:
    """Which ranks each profiler recorded, as the beginning of a sentence."""
    who = listed([f"{_ranks(ranks)} by {_NAMES.get(kind, kind)}" for kind, ranks in recorded.items()])
    return who[0].upper() + who[1:]


def _ranks(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]} was recorded"
    more = f" and {len(ranks) - _MOST_RANKS} more" if len(ranks) > _MOST_RANKS else ""
    return f"ranks {', '.join(map(str, ranks[:_MOST_RANKS]))}{more} were recorded"
