"""What is said where ranks wait for another one and nothing recorded says so. In: segments. Out: sentences.

Idea: a barrier on the host (of a store, a file, another library) leaves no event. Its mark is that most ranks stand
still, device and host, while one or few work, and that all go on at the same time. The ledger takes such a wait for the
ranks' own, so that "no rank costs more" would be wrong. What holds them is not known, so it is no finding either.
Not handled: two ranks (the end of one wait is the end of no other), pipelines (stages rest by design).
"""

from collections.abc import Mapping
from typing import Any

from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, listed, plural

State = Mapping[str, Any]
Held = Mapping[str, Any]

# Who works does so for most of the time in which the others stand still.
_HELD = """
WITH judged AS (
  SELECT run_id, iteration, duration_ns, COUNT(*) OVER (PARTITION BY run_id) AS iterations
  FROM timeline.iteration
  WHERE NOT is_warmup AND NOT is_partial
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
SELECT m.run_id, m.ranks, COUNT(*) AS met, ANY_VALUE(j.iterations) AS iterations, MEDIAN(m.held_ns) AS held_ns,
  SUM(m.held_ns) / ANY_VALUE(j.iterations) AS mean_ns
FROM met AS m
JOIN judged AS j USING (run_id, iteration)
GROUP BY m.run_id, m.ranks
QUALIFY COUNT(*) >= $3 AND COUNT(*) >= $4 * SUM(COUNT(*)) OVER (PARTITION BY m.run_id)
"""


def held_ranks(store: Store) -> dict[int, Held]:
    """By run, for whom the others stand still, how long and how often."""
    limits = [
        thresholds.MEDIUM_SHARE,
        thresholds.STILL_SPREAD,
        thresholds.EPISODE_ITERATIONS,
        thresholds.SOLE_DOMINANCE,
    ]
    return {row["run_id"]: row for row in store.records(_HELD, limits)}


def of_held_ranks(state: State, held: Held | None) -> dict[str, object]:
    """Headline and next step where ranks wait so and nothing is found, or that all are late alike; else nothing."""
    everyone = state["state"] == "finding" and state["finding_subject"] == "job"
    if not (everyone or state["state"] == "nothing_significant") or not _matters(state, held):
        return {}
    unknown: dict[str, object] = {} if everyone else {"kind": "cannot_be_known", "confidence": "high"}
    return unknown | {
        "headline": sentence_of_held(state, held),
        "next_step": f"Look for what holds the ranks there (a barrier of the store, a file, a lock), and for what "
        f"{_who(held)} before it: record the stacks of the host (with_stack=True in torch.profiler).",
    }


def sentence_of_held(state: State, held: Held | None) -> str:
    """That ranks wait so, as a sentence; empty where they do not, or not for long."""
    if held is None or not _matters(state, held):
        return ""
    return (
        f"The other ranks stand still, device and host, while {_who(held, 'works', 'work')}, and go on together: "
        f"{format_ns(round(held['held_ns']))} in {held['met']} of {plural(held['iterations'], 'iteration')}. "
        "What holds them is not recorded; it looks like a barrier."
    )


def _matters(state: State, held: Held | None) -> bool:
    if held is None or state["has_stages"] or not state["duration_ns"]:
        return False
    return bool(held["mean_ns"] >= thresholds.MEDIUM_SHARE * state["duration_ns"])


def _who(held: Held | None, one: str = "does", several: str = "do") -> str:
    ranks = [] if held is None else [str(rank) for rank in held["ranks"]]
    return f"rank {ranks[0]} {one}" if len(ranks) == 1 else f"ranks {listed(ranks)} {several}"
