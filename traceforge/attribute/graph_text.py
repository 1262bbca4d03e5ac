"""Communication that does not match, by execution traces alone, in words. Reads graph.divergence and message_pair.

Idea: a rank that calls another collective than its peers hangs or corrupts the job, and needs no times to be seen.
Beside a timeline, execution traces may be of another time, so that they do not lead.
Not handled: a rank whose recording merely ends earlier, or lost a call, which the section on execution traces tells of.
"""

from collections.abc import Mapping
from typing import Any

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


def of_mismatch(store: Store, state: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, object]:
    """The first call that does not match, and what to do: the verdict itself, or beside what a timeline shows."""
    for row in store.records(_DIFFERING, [state["run_id"]]):
        group = f"process group “{str(row['process_group'])[:_LONGEST]}”" if row["process_group"] else "one group"
        more = f" {plural(row['groups'], 'group')} differ so." if row["groups"] > 1 else ""
        mismatch = (
            f"ranks do not issue the same collectives in {group}: {_difference(row)}. That hangs or corrupts a job."
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


# Ranks that disagree about a message for certain.
_MESSAGES = """
SELECT source_rank, destination_rank, status, first_place, send_node_id, receive_node_id, sent_bytes, received_bytes,
  COUNT(*) OVER () AS pairs
FROM graph.message_pair
WHERE run_id = ? AND status IN ('size', 'order', 'unreceived', 'unsent')
ORDER BY source_rank, destination_rank, first_place
LIMIT 1
"""


def of_messages(store: Store, state: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, object]:
    """The first message without its partner, and what to do: the verdict itself where nothing else is."""
    for row in store.records(_MESSAGES, [state["run_id"]]):
        pair = f"rank {row['source_rank']} to rank {row['destination_rank']}"
        send, receive = (f"node {row[name]}" for name in ("send_node_id", "receive_node_id"))
        said = {
            "unreceived": f"rank {row['source_rank']} sends message {row['first_place']} ({send}), which rank "
            f"{row['destination_rank']} does not receive",
            "unsent": f"rank {row['destination_rank']} receives message {row['first_place']} ({receive}), which rank "
            f"{row['source_rank']} does not send",
            "size": f"message {row['first_place']} is sent with {row['sent_bytes']} bytes ({send}) and received with "
            f"{row['received_bytes']} ({receive})",
            "order": f"messages are received in another order than they are sent, from message {row['first_place']} on "
            f"({send}, {receive})",
        }[row["status"]]
        more = f" {plural(row['pairs'], 'pair')} of ranks differ so." if row["pairs"] > 1 else ""
        mismatch = f"from {pair}, sends and receives do not match: {said}. That hangs or corrupts a job.{more}"
        if state["state"] != "graphs_alone" or told["headline"].startswith(_DIFFERENT):
            return {"explanation": f"By their execution traces, {mismatch} {told['explanation']}"}
        return {
            "headline": mismatch[0].upper() + mismatch[1:],
            "next_step": f"Make both call the same: look at ranks {row['source_rank']} and {row['destination_rank']} "
            "before this message.",
        }
    return {}


def _difference(row: Mapping[str, Any]) -> str:
    """Which rank lacks, adds or changes which call, and where."""
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
