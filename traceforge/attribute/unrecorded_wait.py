"""What is said where ranks wait for another one and nothing recorded says so. In: segments. Out: sentences.

Idea: a barrier on the host (of a store, a file, another library) leaves no event. Its mark is that most ranks stand
still, device and host, while one or few work, and that all go on at the same time. The ledger takes such a wait for the
ranks' own, so that "no rank costs more" would be wrong. What holds them is not known, so it is no finding either.
Not handled: two ranks (the end of one wait is the end of no other), pipelines (stages rest by design).
"""

from collections.abc import Mapping
from typing import Any

from traceforge.attribute.cause import SEVERAL, UNEXPLAINED, cause_of_work
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share, listed, plural

State = Mapping[str, Any]
Held = Mapping[str, Any]

# Causes that the ledger takes such a wait for (see `ledger_input.by_cause`), alone or beside the awaited rank's work.
_STANDING_STILL = frozenset(
    {SEVERAL.name, UNEXPLAINED.name, cause_of_work("runtime", "unnamed"), cause_of_work("runtime", "operation")}
)

# Who works does so for most of the time in which the others stand still.
_HELD = """
WITH judged AS (
  SELECT run_id, iteration, duration_ns, COUNT(*) OVER of_run AS iterations, SUM(duration_ns) OVER of_run AS whole_ns
  FROM timeline.iteration
  WHERE NOT is_warmup AND NOT is_partial
    AND run_id NOT IN (SELECT run_id FROM timeline.mesh WHERE axis = 'pp')
  WINDOW of_run AS (PARTITION BY run_id)
),
recorded AS (
  SELECT run_id, COUNT(*) AS ranks FROM align.rank GROUP BY run_id
),
still AS (
  SELECT s.run_id, s.iteration, s.rank, MAX(s.duration_ns) AS held_ns,
    MAX_BY(s.start_ns + s.duration_ns, s.duration_ns) AS until_ns
  FROM timeline.segment AS s
  JOIN judged AS j USING (run_id, iteration)
  WHERE s.phase = 'idle' AND s.duration_ns >= $1 * j.duration_ns
  GROUP BY s.run_id, s.iteration, s.rank
  -- Who works until they go on rests for a moment, too.
  QUALIFY 2 * MAX(s.duration_ns) >= MAX(MAX(s.duration_ns)) OVER (PARTITION BY s.run_id, s.iteration)
),
together AS (
  SELECT run_id, iteration, LIST(rank) AS held, MEDIAN(held_ns) AS held_ns, MAX(until_ns) AS until_ns
  FROM still
  GROUP BY run_id, iteration
  HAVING COUNT(*) > 1 AND MAX(until_ns) - MIN(until_ns) <= $2 * MEDIAN(held_ns)
),
working AS (
  SELECT t.run_id, t.iteration, s.rank, LEN(t.held) AS held, t.held_ns
  FROM together AS t
  JOIN timeline.segment AS s
    ON s.run_id = t.run_id AND s.iteration = t.iteration AND NOT LIST_CONTAINS(t.held, s.rank)
    AND s.start_ns < t.until_ns AND s.start_ns + s.duration_ns > t.until_ns - t.held_ns
  WHERE s.phase IN ('compute', 'copy', 'input', 'runtime')
  GROUP BY t.run_id, t.iteration, s.rank, t.held, t.held_ns, t.until_ns
  HAVING 2 * SUM(
    LEAST(s.start_ns + s.duration_ns, t.until_ns) - GREATEST(s.start_ns, t.until_ns - t.held_ns)
  ) >= t.held_ns
),
met AS (
  SELECT w.run_id, w.iteration, w.held_ns, LIST(w.rank ORDER BY w.rank) AS ranks
  FROM working AS w
  JOIN recorded AS r USING (run_id)
  GROUP BY w.run_id, w.iteration, w.held, w.held_ns, r.ranks
  HAVING COUNT(*) + w.held = r.ranks AND COUNT(*) < w.held
)
SELECT m.run_id, m.ranks, COUNT(*) AS met, ANY_VALUE(j.iterations) AS iterations, MEDIAN(m.held_ns) AS held_ns
FROM met AS m
JOIN judged AS j USING (run_id, iteration)
GROUP BY m.run_id, m.ranks
QUALIFY COUNT(*) >= $3 AND COUNT(*) >= $4 * SUM(COUNT(*)) OVER (PARTITION BY m.run_id)
  AND SUM(m.held_ns) >= $1 * ANY_VALUE(j.whole_ns)
"""


def held_ranks(store: Store) -> dict[int, Held]:
    """By run, for whom the others stand still, how long and how often; where it is long enough to matter."""
    limits = [
        thresholds.MEDIUM_SHARE,
        thresholds.STILL_SPREAD,
        thresholds.EPISODE_ITERATIONS,
        thresholds.SOLE_DOMINANCE,
    ]
    return {row["run_id"]: row for row in store.records(_HELD, limits)}


def of_held_ranks(state: State, held: Held | None) -> dict[str, object]:
    """What the verdict is where ranks wait so and nothing is found; else nothing."""
    if held is None or state["state"] != "nothing_significant":
        return {}
    said = {"headline": sentence_of_held(held), "next_step": _next_step(held)}
    return {"kind": "cannot_be_known", "confidence": "high", **said}


def of_late_ranks(finding: Mapping[str, Any], held: Held | None) -> dict[str, object]:
    """What is said of a finding that all ranks stand still, or are late by several causes, where they wait so."""
    is_of_all = finding["subject_kind"] == "job" and finding["cause"] in _STANDING_STILL
    if held is None or not is_of_all or finding["confidence"] == "low":
        return {}
    cost = f"{format_ns(finding['delay_ns_per_iteration'])} an iteration ({format_share(finding['share'])})"
    return {"summary": f"{sentence_of_held(held)} It costs the job {cost}.", "next_step": _next_step(held)}


def sentence_of_held(held: Held | None) -> str:
    """That ranks wait so, as a sentence; empty where they do not."""
    if held is None:
        return ""
    return (
        f"The other ranks stand still, device and host, while {_who(held, 'works', 'work')}, and go on together: "
        f"{format_ns(round(held['held_ns']))} in {held['met']} of {plural(held['iterations'], 'iteration')}. "
        "What holds them is not recorded; it looks like a barrier."
    )


def _next_step(held: Held) -> str:
    return (
        f"Look for what holds the ranks there (a barrier of the store, a file, a lock), and for what "
        f"{_who(held, 'does', 'do')} before it: record the stacks of the host (with_stack=True in torch.profiler)."
    )


def _who(held: Held, one: str, several: str) -> str:
    ranks = [str(rank) for rank in held["ranks"]]
    return f"rank {ranks[0]} {one}" if len(ranks) == 1 else f"ranks {listed(ranks)} {several}"
