"""The next step of a finding that a Python function explains. In: findings, recorded stacks. Out: the same findings.

Idea: where stacks were recorded, a host that stalls is inside of nested functions. Of those that cover most of the
stretches in which it stalls, the one that takes least of the whole recording says most about them; beside it stands
the innermost of them that is a line of a file. Not handled: threads other than the one that marks steps, functions
that stall in turns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from traceforge.align.clock_course import read_course
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns
from traceforge.vocabulary import UNNAMED, vocabulary

_CAUSE = "host_stall"
_LONGEST_NAME = 80

_STALLS = """
SELECT r.source_id, s.start_ns, s.duration_ns
FROM timeline.segment AS s
JOIN operation.judged_iteration AS j USING (run_id, iteration)
JOIN align.rank AS r USING (run_id, rank)
WHERE s.run_id = $1 AND s.rank = $2 AND s.phase = 'runtime' AND s.activity IN (SELECT UNNEST($3))
ORDER BY s.start_ns
"""
_HAS_STACKS = """
SELECT COUNT(*) > 0 FROM raw.event AS e
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE e.source_id = ? AND c.canonical_category = 'python_function'
"""
# Functions that run while the host stalls: for how long of that, and for how long at all.
_FUNCTIONS = """
WITH stall AS (
  SELECT UNNEST($2) AS raw_start_ns, UNNEST($3) AS raw_end_ns
),
function AS (
  SELECT e.name, e.raw_start_ns, e.raw_start_ns + e.duration_ns AS raw_end_ns
  FROM raw.event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.source_id = $1 AND e.phase = 'X' AND e.duration_ns > 0 AND c.canonical_category = 'python_function'
),
covering AS (
  SELECT f.name,
    SUM(LEAST(f.raw_end_ns, s.raw_end_ns) - GREATEST(f.raw_start_ns, s.raw_start_ns)) AS covered_ns
  FROM function AS f
  JOIN stall AS s ON f.raw_start_ns < s.raw_end_ns AND f.raw_end_ns > s.raw_start_ns
  GROUP BY f.name
)
SELECT name, CAST(ANY_VALUE(c.covered_ns) AS BIGINT) AS covered_ns, CAST(SUM(f.raw_end_ns - f.raw_start_ns) AS BIGINT)
FROM covering AS c
JOIN function AS f USING (name)
GROUP BY name
ORDER BY 3, name
"""


@dataclass(frozen=True, slots=True)
class StallingFunction:
    """What a host is in while it stalls.

    Attributes:
        name: of the function.
        caller: the innermost function around it that is a line of a file; None where it is one itself, or none is.
        covered_ns: how long it lasts of the stalls, ns an iteration.
    """

    name: str
    caller: str | None
    covered_ns: float

    @property
    def said(self) -> str:
        """Its name, and who calls it."""
        return f"{_short(self.name)}, called from {_short(self.caller)}" if self.caller else _short(self.name)


def with_named_functions(store: Store, findings: pl.DataFrame) -> pl.DataFrame:
    """Findings whose next step names the Python function in which the host of a rank stalls."""
    if findings.is_empty():
        return findings
    steps = [_next_step(store, row) for row in findings.iter_rows(named=True)]
    return findings.with_columns(next_step=pl.Series(steps, dtype=pl.String))


def _next_step(store: Store, finding: Mapping[str, Any]) -> str:
    usual = str(finding["next_step"])
    if (finding["subject_kind"], finding["cause"]) != ("rank", _CAUSE):
        return usual
    found = stalling_function(store, finding["run_id"], int(finding["subject"]))
    if found is None:
        return usual
    return (
        f"See why rank {finding['subject']} is in {found.said}: {format_ns(found.covered_ns)} an iteration of the time"
        " in which it stalls, by the recorded stacks."
    )


def stalling_function(store: Store, run_id: int, rank: int) -> StallingFunction | None:
    """The function in which a rank's host stalls; None without stacks, or where no function covers most of it."""
    stalling = [UNNAMED, *(one.name for one in vocabulary().classes if one.cause == _CAUSE)]
    stalls = store.query(_STALLS, [run_id, rank, stalling])
    if stalls.is_empty() or not store.value(_HAS_STACKS, [stalls["source_id"][0]]):
        return None
    course, start_ns = read_course(store, run_id, rank), stalls["start_ns"].to_numpy()
    ends_ns = start_ns + stalls["duration_ns"].to_numpy()
    edges = [course.raw(edge).tolist() for edge in (start_ns, ends_ns)]
    whole_ns = int(stalls["duration_ns"].sum())
    rows = store.rows(_FUNCTIONS, [int(stalls["source_id"][0]), *edges])
    covering = [(str(name), int(ns)) for name, ns, _ in rows if ns >= thresholds.NAMED_SHARE * whole_ns]
    if not covering:
        return None
    iterations = int(store.value("SELECT COUNT(*) FROM operation.judged_iteration WHERE run_id = ?", [run_id]))
    (name, covered_ns), *around = covering
    lines = [other for other, _ in around if _is_line(other)]
    return StallingFunction(name, None if _is_line(name) or not lines else lines[0], covered_ns / iterations)


def _is_line(name: str) -> bool:
    """Whether a function is written in Python: `train.py(12): forward`, not `<built-in function sleep>`."""
    return ".py(" in name


def _short(name: str | None) -> str:
    return " ".join(str(name).split())[:_LONGEST_NAME]
