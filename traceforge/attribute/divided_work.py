"""What is said where the others wait for a rank that has less to do than they. In: delays and phases. Out: sentences.

Idea: a rank that works at places of the step where the others do not, and rests where they work, owns the time in
which they wait for it. It is no finding, as over a step it does less than they do: a parameter server, or a rank that
steps the optimizer for all. To say that nobody owns the time would be wrong as well.
"""

from collections.abc import Mapping
from typing import Any

from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns

_OWNERS = """
WITH judged AS (
  SELECT e.run_id, e.iteration, e.excess_ns, COUNT(*) OVER (PARTITION BY e.run_id) AS iterations
  FROM attribute.excess AS e
  JOIN timeline.iteration AS i USING (run_id, iteration)
  WHERE NOT i.is_warmup
),
lost AS (
  SELECT run_id, SUM(excess_ns) / ANY_VALUE(iterations) AS excess_ns FROM judged GROUP BY run_id
),
owner AS (
  SELECT d.run_id, d.rank, SUM(d.delay_ns) / ANY_VALUE(j.iterations) AS delay_ns
  FROM attribute.delay AS d
  JOIN judged AS j USING (run_id, iteration)
  WHERE d.rank IS NOT NULL AND d.cause = 'slow_compute'
  GROUP BY d.run_id, d.rank
  QUALIFY ROW_NUMBER() OVER (PARTITION BY d.run_id ORDER BY SUM(d.delay_ns) DESC, d.rank) = 1
),
computed AS (
  SELECT p.run_id, p.rank, SUM(p.duration_ns) / ANY_VALUE(j.iterations) AS compute_ns
  FROM timeline.phase AS p
  JOIN judged AS j USING (run_id, iteration)
  WHERE p.phase = 'compute'
  GROUP BY p.run_id, p.rank
)
SELECT o.run_id, o.rank, o.delay_ns, COALESCE(c.compute_ns, 0) AS compute_ns, u.usual_ns
FROM owner AS o
JOIN lost AS l USING (run_id)
JOIN (SELECT run_id, MEDIAN(compute_ns) AS usual_ns FROM computed GROUP BY run_id) AS u USING (run_id)
LEFT JOIN computed AS c ON c.run_id = o.run_id AND c.rank = o.rank
WHERE o.delay_ns >= $1 * l.excess_ns AND COALESCE(c.compute_ns, 0) + o.delay_ns <= u.usual_ns
"""

Owner = Mapping[str, Any]


def idle_owners(store: Store) -> dict[int, Owner]:
    """By run, the rank whose computing owns nearly all of the delay, though it computes less than the median rank."""
    return {row["run_id"]: row for row in store.records(_OWNERS, [thresholds.SOLE_DOMINANCE])}


def headline_of_division(owner: Owner, lost: str) -> str:
    """One sentence; `lost` is the share of an iteration that is delay."""
    return (
        f"No culprit: {lost} of an iteration is delay, nearly all of it while the others wait for rank {owner['rank']},"
        " which computes less than they do: the work is divided so, or unevenly."
    )


def explanation_of_division(owner: Owner) -> str:
    """What shows it, as a sentence."""
    own, usual = format_ns(round(owner["compute_ns"])), format_ns(round(owner["usual_ns"]))
    return (
        f"Rank {owner['rank']} owns {format_ns(round(owner['delay_ns']))} of it, at places of the step where the median"
        f" rank does less; in a whole iteration it computes {own}, the median rank {usual}, so that it is not slow."
    )
