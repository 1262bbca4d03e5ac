"""Communication that does not match, by execution traces alone, in words. Reads graph.divergence and message_pair.

Idea: a rank that calls another collective than its peers hangs or corrupts the job, and needs no times to be seen.
Beside a timeline, execution traces may be of another time, so that they do not lead.
Not handled: a rank whose recording merely ends earlier, or lost a call, which the section on execution traces tells of.
"""

from collections.abc import Mapping
from typing import Any

from traceforge.graph.call_words import call_mismatch
from traceforge.graph.message_words import message_mismatch
from traceforge.store.database import Store
from traceforge.units import plural

_LONGEST = 80
_DIFFERENT = "Ranks do not issue the same"

_DIFFERING = """
SELECT process_group, rank, node_id, previous_node_id, found, expected, status, first_place, last_place, peer_rank,
  peer_node_id, peer_count, COUNT(*) OVER () AS groups
FROM graph.divergence
WHERE run_id = ? AND status IN ('differs', 'missing', 'extra')
ORDER BY process_group NULLS LAST, first_place
LIMIT 1
"""


# Ranks that disagree about a message for certain.
_MESSAGES = """
SELECT source_rank, destination_rank, status, first_place, send_node_id, receive_node_id, sent_bytes, received_bytes,
  COUNT(*) OVER () AS pairs
FROM graph.message_pair
WHERE run_id = ? AND status IN ('size', 'order', 'unreceived', 'unsent')
ORDER BY source_rank, destination_rank, first_place
LIMIT 1
"""


def of_mismatch(store: Store, state: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, object]:
    """The first call that does not match, and what to do: the verdict itself, or beside what a timeline shows."""
    for row in store.records(_DIFFERING, [state["run_id"]]):
        group = f"process group “{str(row['process_group'])[:_LONGEST]}”" if row["process_group"] else "one group"
        more = f" {plural(row['groups'], 'group')} differ so." if row["groups"] > 1 else ""
        mismatch = (
            f"ranks do not issue the same collectives in {group}: {call_mismatch(row)}. That hangs or corrupts a job."
            f"{more}"
        )
        if state["state"] != "graphs_alone":
            return {"explanation": f"By their execution traces {mismatch} {told['explanation']}"}
        return {
            "headline": mismatch[0].upper() + mismatch[1:],
            "next_step": f"Make all members call the same: look at what rank {row['rank']} does differently before "
            "this call.",
        }
    return {}


def of_messages(store: Store, state: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, object]:
    """The first message without its partner, and what to do: the verdict itself where nothing else is."""
    for row in store.records(_MESSAGES, [state["run_id"]]):
        pair = f"rank {row['source_rank']} to rank {row['destination_rank']}"
        more = f" {plural(row['pairs'], 'pair')} of ranks differ so." if row["pairs"] > 1 else ""
        difference = f"from {pair}, sends and receives do not match: {message_mismatch(row)}"
        mismatch = f"{difference}. That hangs or corrupts a job.{more}"
        if state["state"] != "graphs_alone" or told["headline"].startswith(_DIFFERENT):
            return {"explanation": f"By their execution traces, {mismatch} {told['explanation']}"}
        return {
            "headline": mismatch[0].upper() + mismatch[1:],
            "next_step": f"Make both call the same: look at ranks {row['source_rank']} and {row['destination_rank']} "
            "before this message.",
        }
    return {}
