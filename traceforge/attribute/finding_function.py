"""The next step of a finding that a function explains. In: findings, stacks, annotations. Out: the same findings.

Idea: a host that stalls is inside of nested functions, where stacks were recorded, and of what the program annotated.
Of those that cover most of the stretches in which it stalls, the one that takes least of the whole recording says most
about them; beside it stands the innermost of them that is a line of a file. An annotation says something where it is
little else than the stall. Not handled: threads other than the one that marks steps, functions that stall in turns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from traceforge.align.clock_course import read_course
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns
from traceforge.vocabulary import UNNAMED, vocabulary

_CAUSE = "host_stall"
_ANNOTATION = "the program's own annotation"
_LONGEST_NAME = 80
# First and last iteration that count, where all do.
_ALL = (None, None)

_STALLS = """
SELECT r.source_id, s.start_ns, s.duration_ns
FROM timeline.segment AS s
JOIN operation.judged_iteration AS j USING (run_id, iteration)
JOIN align.rank AS r USING (run_id, rank)
WHERE s.run_id = $1 AND s.rank = $2 AND s.phase = 'runtime' AND s.activity IN (SELECT UNNEST($3))
  AND s.iteration BETWEEN COALESCE($4, s.iteration) AND COALESCE($5, s.iteration)
ORDER BY s.start_ns
"""
_FIRST_RANK = "SELECT MIN(rank) FROM align.rank WHERE run_id = ?"
_JUDGED = """
SELECT COUNT(*) FROM operation.judged_iteration
WHERE run_id = ? AND iteration BETWEEN COALESCE(?, iteration) AND COALESCE(?, iteration)
"""
# Functions that run while the host stalls: for how long of that, and for how long at all.
_FUNCTIONS = """
WITH stall AS (
  SELECT UNNEST($2) AS raw_start_ns, UNNEST($3) AS raw_end_ns
),
function AS (
  SELECT e.name, c.canonical_category = 'python_function' AS is_python, e.raw_start_ns,
    e.raw_start_ns + e.duration_ns AS raw_end_ns
  FROM raw.event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.source_id = $1 AND e.phase = 'X' AND e.duration_ns > 0
    AND (c.canonical_category = 'python_function' OR c.class = 'annotation')
),
covering AS (
  SELECT f.name, f.is_python,
    SUM(LEAST(f.raw_end_ns, s.raw_end_ns) - GREATEST(f.raw_start_ns, s.raw_start_ns)) AS covered_ns
  FROM function AS f
  JOIN stall AS s ON f.raw_start_ns < s.raw_end_ns AND f.raw_end_ns > s.raw_start_ns
  GROUP BY f.name, f.is_python
)
SELECT name, is_python, CAST(ANY_VALUE(c.covered_ns) AS BIGINT) AS covered_ns,
  CAST(SUM(f.raw_end_ns - f.raw_start_ns) AS BIGINT) AS whole_ns
FROM covering AS c
JOIN function AS f USING (name, is_python)
GROUP BY name, is_python
ORDER BY whole_ns, name, is_python
"""


@dataclass(frozen=True, slots=True)
class StallingFunction:
    """What a host is in while it stalls.

    Attributes:
        name: of the function.
        caller: the innermost function around it that is a line of a file; None where it is one itself, or none is.
        covered_ns: how long it lasts of the stalls, ns an iteration.
        source: what says so.
    """

    name: str
    caller: str | None
    covered_ns: float
    source: str

    @property
    def said(self) -> str:
        """Its name, and who calls it; names that people choose stand in quotation marks."""
        if self.source == _ANNOTATION:
            return f"“{_short(self.name)}”"
        return f"{_short(self.name)}, called from {_short(self.caller)}" if self.caller else _short(self.name)


def steps_of_functions(store: Store) -> Callable[[Mapping[str, Any]], str]:
    """The next step of a finding, which names the Python function in which the host of a rank stalls."""
    return partial(_next_step, store)


def _next_step(store: Store, finding: Mapping[str, Any]) -> str:
    usual = str(finding["next_step"])
    if finding["cause"] != _CAUSE or finding["subject_kind"] not in ("rank", "job"):
        return usual
    is_one = finding["subject_kind"] == "rank"
    rank = int(finding["subject"]) if is_one else int(store.value(_FIRST_RANK, [finding["run_id"]]))
    within = finding["first_iteration"], finding["last_iteration"]
    found = stalling_function(store, finding["run_id"], rank, within)
    if found is None:
        return usual
    who = f"rank {rank} is" if is_one else f"ranks, such as {rank}, are"
    return (
        f"See why {who} in {found.said}: {format_ns(found.covered_ns)} an iteration of the time in which it stalls, "
        f"by {found.source}."
    )


def stalling_function(
    store: Store, run_id: int, rank: int, within: tuple[int, int] | None = None
) -> StallingFunction | None:
    """The function or annotation in which a rank's host stalls; None where none was recorded that covers most of it.

    Args:
        within: first and last iteration that count; all judged ones by default.
    """
    stalling = [UNNAMED, *(one.name for one in vocabulary().classes if one.cause == _CAUSE)]
    stalls = store.query(_STALLS, [run_id, rank, stalling, *(within or _ALL)])
    if stalls.is_empty():
        return None
    course, start_ns = read_course(store, run_id, rank), stalls["start_ns"].to_numpy()
    ends_ns = start_ns + stalls["duration_ns"].to_numpy()
    edges = [course.raw(edge).tolist() for edge in (start_ns, ends_ns)]
    least_ns = thresholds.NAMED_SHARE * int(stalls["duration_ns"].sum())
    covering = [
        (str(name), bool(is_python), int(ns))
        for name, is_python, ns, whole_ns in store.rows(_FUNCTIONS, [int(stalls["source_id"][0]), *edges])
        if ns >= least_ns and (is_python or ns >= thresholds.NAMED_SHARE * whole_ns)
    ]
    if not covering:
        return None
    (named, is_python, covered_ns), *around = covering
    iterations = int(store.value(_JUDGED, [run_id, *(within or _ALL)]))
    lines = [name for name, _, _ in around if _is_line(name)]
    return StallingFunction(
        name=named,
        caller=None if _is_line(named) or not lines else lines[0],
        covered_ns=covered_ns / iterations,
        source="the recorded stacks" if is_python else _ANNOTATION,
    )


def _is_line(name: str) -> bool:
    """Whether a function is written in Python: `train.py(12): forward`, not `<built-in function sleep>`."""
    return ".py(" in name


def _short(name: str | None) -> str:
    return " ".join(str(name).split())[:_LONGEST_NAME]
