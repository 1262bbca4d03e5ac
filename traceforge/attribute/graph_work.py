"""Unequal work, by execution traces alone, in words. Reads raw.chakra_node, raw.chakra_tensor, graph.trace.

Idea: a rank that multiplies larger matrices than its peers in as many calls of communication works longer, and shapes
say so without times; so do the durations and operations that Chakra's converters and generators write into nodes of
devices. Ranks that exchange messages may be stages, whose work differs by design.
Not handled: what has no closed form of the shapes alone (convolutions, attention); unlike roles without messages.
"""

from collections.abc import Mapping
from statistics import median
from typing import Any

from traceforge.operation.work import work_of
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns

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


# What devices compute, by name, of nodes that state it; a library's own kernels may communicate under any type.
_COMPUTED = """
SELECT t.rank, n.name, SUM(n.duration_ns)::BIGINT AS duration_ns, SUM(n.operation_count)::BIGINT AS operations
FROM graph.trace AS t
JOIN raw.chakra_node AS n USING (source_id, part)
WHERE t.run_id = ? AND t.rank IS NOT NULL AND n.node_type = 'COMP' AND NOT n.is_cpu AND n.name NOT ILIKE '%ccl%'
GROUP BY ALL
ORDER BY ALL
"""
_UNKNOWN_COST = "When anything ran, and so what it costs, cannot be known from this."


def of_unequal_work(store: Store, state: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, object]:
    """The rank that computes more than most; nothing where another rank may have another role."""
    if state["state"] != "graphs_alone" or not store.value(_COMPARABLE, [state["run_id"]]):
        return {}
    words = _of_products(store, state) or _of_nodes(store, state)
    return words and {**words, "explanation": f"{_UNKNOWN_COST} {told['explanation']}"}


def _of_products(store: Store, state: Mapping[str, Any]) -> dict[str, object]:
    ranks = _products(store, state["run_id"])
    flops = {rank: sum(own for own, _, _ in products) for rank, products in ranks.items()}
    most = _above_most(flops)
    if most is None:
        return {}
    return {
        "headline": f"By the shapes in the execution traces, the matrix products of rank {most} take "
        f"{flops[most] / median(flops.values()):.2f} times the arithmetic of the median rank: where ranks meet, others "
        "may wait for it.",
        "next_step": f"See what rank {most} is given (batch, sequence lengths, experts): {_largest(ranks, most)}.",
    }


def _of_nodes(store: Store, state: Mapping[str, Any]) -> dict[str, object]:
    """By the durations of devices' nodes, or where they have none, by their operations."""
    rows = store.query(_COMPUTED, [state["run_id"]]).to_dicts()
    for what, unit in (("duration_ns", "durations"), ("operations", "operation counts")):
        work: dict[int, dict[str, int]] = {}
        for row in rows:
            work.setdefault(row["rank"], {})[row["name"]] = row[what] or 0
        whole = {rank: sum(own.values()) for rank, own in work.items()}
        most = _above_most(whole)
        if most is None:
            continue
        source = "a generator's " if state["is_modelled"] and what == "duration_ns" else ""
        return {
            "headline": f"By {source}{unit} in the execution traces, the device of rank {most} computes "
            f"{whole[most] / median(whole.values()):.2f} times as much as the median rank's: where ranks meet, others "
            "may wait for it.",
            "next_step": f"See why rank {most} computes more: {_grown(work, most, what)}.",
        }
    return {}


def _grown(work: Mapping[int, Mapping[str, int]], rank: int, what: str) -> str:
    """The name by which a rank is the furthest above the median rank, in words."""
    usual = {name: int(median(own.get(name, 0) for own in work.values())) for name in work[rank]}
    name = max(usual, key=lambda one: (work[rank][one] - usual[one], one))
    shown = format_ns if what == "duration_ns" else "{:,} operations".format
    against = f"{shown(work[rank][name])} against {shown(usual[name])} on the median rank"
    return f"the largest difference is in {name[:80]}, {against}"


def _above_most(work: Mapping[int, int]) -> int | None:
    """The rank with the most work, if that is unequal and most of the others' is near the median."""
    usual = median(work.values()) if work else 0
    most = max(work, key=lambda rank: (work[rank], -rank), default=0)
    limit = usual * (1 + thresholds.UNEQUAL_WORK_SHARE)
    near = sum(usual * (1 - thresholds.UNEQUAL_WORK_SHARE) <= own <= limit for own in work.values())
    return None if not usual or work[most] <= limit or near <= len(work) - near else most


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
