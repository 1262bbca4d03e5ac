"""Unequal work, by execution traces alone, in words. Reads raw.chakra_node, raw.chakra_tensor, graph.trace.

Idea: a rank that multiplies larger matrices than its peers in as many calls of communication works longer, and shapes
say so without times. Ranks that exchange messages may be stages, whose work differs by design.
Not handled: what has no closed form of the shapes alone (convolutions, attention); unlike roles without messages.
"""

from collections.abc import Mapping
from statistics import median
from typing import Any

from traceforge.operation.work import work_of
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds

Ranks = dict[int, list[tuple[int, str, str]]]
"""Of each rank, its products: FLOPs of all calls, operation, shapes."""

_COMPARABLE = """
SELECT COUNT(DISTINCT calls) = 1 AND COUNT(*) = (
  SELECT COUNT(DISTINCT rank) FROM graph.trace WHERE run_id = $1
) AND NOT BOOL_OR(has_messages)
FROM (
  SELECT rank, COUNT(*) AS calls, BOOL_OR(COALESCE(op IN ('send', 'recv'), true)) AS has_messages
  FROM graph.communication
  WHERE run_id = $1
  GROUP BY rank
)
"""
_PRODUCTS = """
WITH product AS (
  SELECT t.rank, n.source_id, n.position, n.name
  FROM graph.trace AS t
  JOIN raw.chakra_node AS n USING (source_id, part)
  WHERE t.run_id = ? AND t.rank IS NOT NULL
    AND n.name IN ('aten::mm', 'aten::addmm', 'aten::bmm', 'aten::baddbmm')
),
shaped AS (
  SELECT p.rank, p.name, CAST(TO_JSON(LIST(i.shape ORDER BY i.argument)) AS VARCHAR) AS shapes
  FROM product AS p
  JOIN raw.chakra_tensor AS i USING (source_id, position)
  WHERE i.direction = 'input' AND i.element IS NULL
  GROUP BY p.rank, p.name, p.source_id, p.position
)
SELECT rank, name, shapes, COUNT(*) AS calls FROM shaped GROUP BY ALL ORDER BY ALL
"""


def of_unequal_work(store: Store, state: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, object]:
    """The rank whose products are larger than those of most; nothing where another rank may have another role."""
    if state["state"] != "graphs_alone" or not store.value(_COMPARABLE, [state["run_id"]]):
        return {}
    ranks = _products(store, state["run_id"])
    flops = {rank: sum(own for own, _, _ in products) for rank, products in ranks.items()}
    usual = median(flops.values()) if flops else 0
    most = max(flops, key=lambda rank: (flops[rank], -rank), default=0)
    limit = usual * (1 + thresholds.UNEQUAL_WORK_SHARE)
    near = sum(usual * (1 - thresholds.UNEQUAL_WORK_SHARE) <= own <= limit for own in flops.values())
    if not usual or flops[most] <= limit or near <= len(flops) - near:
        return {}
    return {
        "headline": f"By the shapes in the execution traces, the matrix products of rank {most} take "
        f"{flops[most] / usual:.2f} times the arithmetic of the median rank: where ranks meet, others may wait for it.",
        "explanation": f"When anything ran, and so what it costs, cannot be known from this. {told['explanation']}",
        "next_step": f"See what rank {most} is given (batch, sequence lengths, experts): {_largest(ranks, most)}.",
    }


def _products(store: Store, run_id: int) -> Ranks:
    found: Ranks = {}
    for rank, name, shapes, calls in store.rows(_PRODUCTS, [run_id]):
        work = work_of(name, shapes, None, None)
        if work is not None and work.flops:
            found.setdefault(rank, []).append((work.flops * calls, name, shapes))
    return found


def _largest(ranks: Ranks, rank: int) -> str:
    """Its largest product that no other rank has, in words; the largest of all where others have each."""
    others = {(name, shapes) for other, products in ranks.items() if other != rank for _, name, shapes in products}
    own = [one for one in ranks[rank] if one[1:] not in others] or ranks[rank]
    _, name, shapes = max(own)
    return f"most of that is {name} of {shapes}"
