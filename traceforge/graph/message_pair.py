"""Is every message both sent and received? Reads graph.communication; fills graph.message_pair.

A send without its receive hangs a job; so does a pair of different sizes. Only pairs of which both ranks are recorded
are compared, in the order of calls. That a recording covers a call that it lacks is shown by a later collective that
both ranks make.
Not handled: records that do not tell the other rank, unless the group has only two.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from traceforge.graph.call_alignment import DIFFERS, EQUAL, EXTRA, MISSING, fit
from traceforge.graph.message_words import message_mismatch
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_MESSAGES = """
WITH message AS (
  SELECT c.run_id, c.rank, c.op, c.process_group, r.tag, c.position, c.node_id,
    CASE WHEN c.op = 'send' THEN c.in_bytes ELSE COALESCE(c.out_bytes, c.in_bytes) END AS bytes,
    COALESCE(
      CASE WHEN c.op = 'send' THEN c.destination_rank ELSE c.source_rank END,
      CASE WHEN LEN(c.members) = 2 THEN LIST_SUM(c.members) - c.rank END
    ) AS peer,
    ROW_NUMBER() OVER (PARTITION BY c.run_id, c.rank ORDER BY
      CASE WHEN r.origin = 'attributes' THEN c.position ELSE c.node_id END, c.position) AS place
  FROM graph.communication AS c
  JOIN raw.chakra_communication AS r USING (source_id, position)
  WHERE c.op IN ('send', 'recv')
)
SELECT *, CASE WHEN op = 'send' THEN rank ELSE peer END AS source_rank,
  CASE WHEN op = 'send' THEN peer ELSE rank END AS destination_rank
FROM message
WHERE peer <> rank AND EXISTS (FROM graph.communication AS o WHERE o.run_id = message.run_id AND o.rank = message.peer)
ORDER BY run_id, source_rank, destination_rank, process_group NULLS LAST, tag NULLS LAST, op, place
"""
_KEY = ["run_id", "source_rank", "destination_rank", "process_group", "tag"]

# Whether a rank makes the same call of a group as another one does behind a position.
_LATER = """
WITH collective AS (
  SELECT rank, process_group, op, position,
    ROW_NUMBER() OVER (PARTITION BY rank, process_group ORDER BY ordinal) AS number
  FROM graph.communication
  WHERE run_id = ? AND op NOT IN ('send', 'recv')
)
SELECT COUNT(*) > 0
FROM collective AS a
JOIN collective AS b USING (process_group, number, op)
WHERE a.rank = ? AND b.rank = ? AND a.position > ?
"""
Row = Mapping[str, Any]


def rows(store: Store) -> pl.DataFrame:
    """One row a pair of ranks, group and tag; adds an issue for each that does not fit."""
    messages = store.query(_MESSAGES)
    if messages.is_empty():
        return messages
    found = []
    for key, own in messages.group_by(_KEY, maintain_order=True):
        pair = dict(zip(_KEY, key, strict=True))
        sends, receives = (own.filter(op=op).to_dicts() for op in ("send", "recv"))
        row = {**pair, "send_count": len(sends), "receive_count": len(receives), **_compared(store, sends, receives)}
        found.append(row)
        if row["status"] != "agrees":
            store.append("meta.issue", issue_rows(int(str(row["run_id"])), None, "graph", [_issue(row)]))
    return pl.DataFrame(found, infer_schema_length=None)


def _compared(store: Store, sends: Sequence[Row], receives: Sequence[Row]) -> dict[str, object]:
    """How the sends of a pair fit its receives; sizes count where both sides state them."""
    is_sized = all(one["bytes"] is not None for one in [*sends, *receives])
    sent, received = ([str(one["bytes"]) if is_sized else "" for one in side] for side in (sends, receives))
    how = fit(sent, received)
    if how.kind == EQUAL:
        return {"status": "agrees"}
    if how.kind == DIFFERS:
        pairs = zip(sent, received, strict=False)
        place = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(sent), len(received)))
        is_order = Counter(sent) == Counter(received)
        return {"status": "order" if is_order else "size", **_at(place, sends, receives)}
    is_unreceived = len(sends) > len(receives)
    lacking, place = (sends if is_unreceived else receives)[how.place], how.place
    other = lacking["peer"]
    is_covered = how.kind in (MISSING, EXTRA) or store.value(
        _LATER, [lacking["run_id"], lacking["rank"], other, lacking["position"]]
    )
    status = ("unreceived" if is_unreceived else "unsent") if is_covered else "shorter"
    alone = _at(place, sends, []) if is_unreceived else _at(place, [], receives)
    return {"status": status, **alone}


def _at(place: int, sends: Sequence[Row], receives: Sequence[Row]) -> dict[str, object]:
    send, receive = (side[place] if place < len(side) else None for side in (sends, receives))
    return {
        "first_place": place,
        "send_node_id": send["node_id"] if send else None,
        "receive_node_id": receive["node_id"] if receive else None,
        "sent_bytes": send["bytes"] if send else None,
        "received_bytes": receive["bytes"] if receive else None,
    }


def _issue(row: Row) -> Issue:
    pair = f"rank {row['source_rank']} to rank {row['destination_rank']}"
    counts = f"{row['send_count']} sent, {row['receive_count']} received"
    node = row["send_node_id"] if row["send_node_id"] is not None else row["receive_node_id"]
    rank = row["source_rank"] if row["send_node_id"] is not None else row["destination_rank"]
    severity = "info" if row["status"] == "shorter" else "warning"
    code = "message_side_not_recorded" if row["status"] == "shorter" else "message_without_partner"
    return Issue(code, severity, 1, f"rank {rank}, node {node}", f"{pair}: {message_mismatch(row)} ({counts})")
