"""How the collectives of a rank differ from those of its peers, in words. In: a row of graph.divergence. Out: text.

Idea: the verdict and the report say the same of a rank in the same words.
"""

from collections.abc import Mapping
from typing import Any

_LONGEST = 80


def call_mismatch(row: Mapping[str, Any]) -> str:
    """Which rank lacks, adds or changes which call, and where.

    Args:
        row: of graph.divergence, with status differs, missing or extra.
    """
    others = "others" if row["peer_count"] > 1 else f"rank {row['peer_rank']}"
    found, expected = (str(row[name])[:_LONGEST] for name in ("found", "expected"))
    node = f" (node {row['node_id']})" if row["node_id"] is not None else ""
    if row["status"] == "differs":
        have = "have" if others == "others" else "has"
        return f"rank {row['rank']} has {found}{node} where {others} {have} {expected}"
    call = f"call {row['first_place']}"
    if row["last_place"] != row["first_place"]:
        call = f"one of the equal calls {row['first_place']} to {row['last_place']}"
    make = "make" if others == "others" else "makes"
    if row["status"] == "extra":
        return (
            f"rank {row['rank']} makes {call}, {found}{node}, which {others} {'do' if make == 'make' else 'does'} not"
        )
    behind = f", behind its node {row['previous_node_id']}" if row["previous_node_id"] is not None else ""
    peer = f" (node {row['peer_node_id']} of rank {row['peer_rank']})" if row["peer_node_id"] is not None else ""
    return f"rank {row['rank']} lacks {call}{behind}, where {others} {make} {expected}{peer}; then all go on alike"
