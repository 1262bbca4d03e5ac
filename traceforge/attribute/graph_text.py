"""Collectives that do not match, by execution traces alone, in words. Reads graph.divergence; changes a verdict's row.

Idea: a rank that calls another collective than its peers hangs or corrupts the job, and needs no times to be seen.
Beside a timeline, execution traces may be of another time, so that they do not lead.
Not handled: a rank whose recording merely ends earlier, which the section on execution traces tells of.
"""

from collections.abc import Mapping
from typing import Any

from traceforge.store.database import Store
from traceforge.units import plural

_LONGEST = 80

_DIFFERING = """
SELECT process_group, rank, node_id, found, expected, COUNT(*) OVER () AS groups
FROM graph.divergence
WHERE run_id = ? AND status = 'differs'
ORDER BY process_group NULLS LAST, first_place
LIMIT 1
"""


def of_mismatch(store: Store, state: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, object]:
    """The first call that does not match, and what to do: the verdict itself, or beside what a timeline shows."""
    for row in store.records(_DIFFERING, [state["run_id"]]):
        group = f"process group “{str(row['process_group'])[:_LONGEST]}”" if row["process_group"] else "one group"
        node = f" (node {row['node_id']})" if row["node_id"] is not None else ""
        more = f" {plural(row['groups'], 'group')} differ so." if row["groups"] > 1 else ""
        mismatch = (
            f"ranks do not issue the same collectives in {group}: rank {row['rank']} has "
            f"{str(row['found'])[:_LONGEST]}{node} where others have {str(row['expected'])[:_LONGEST]}. That hangs or "
            f"corrupts a job.{more}"
        )
        if state["state"] != "graphs_alone":
            return {"explanation": f"By their execution traces {mismatch} {told['explanation']}"}
        return {
            "headline": mismatch[0].upper() + mismatch[1:],
            "next_step": f"Make all members call the same: look at what rank {row['rank']} does differently before "
            "this call.",
        }
    return {}
