"""Hangs. Reads fabric.process_group, group_progress and hang_dump, and raw.flight_recorder_entry; fills fabric.hang.

Idea: `hang_search` finds who is waited for from the calls that had not ended; `hang_text` says it.
Not handled: dumps of a job that runs well differ from those of a hung one only by calls that had not ended.
"""

import json
import re
from typing import Any

import polars as pl

from traceforge.fabric.hang_search import Dumps, Hang, Progress, RecordedCall, search
from traceforge.fabric.hang_text import detail, next_step, summary
from traceforge.store.database import Store

_GROUPS = """
SELECT group_id, name, COALESCE(description, 'process group ' || name) AS known_as, ranks, has_messages
FROM fabric.process_group
WHERE run_id = ?
"""

_PROGRESS = "SELECT group_id, rank, last_enqueued, last_completed FROM fabric.group_progress WHERE run_id = ?"

_CALLS = """
SELECT
  p.rank, p.group_id, e.entry_id, e.collective_sequence, COALESCE(e.is_p2p, false) AS is_message, e.name,
  e.raw_created_ns, e.in_shapes, e.in_dtypes, e.stack
FROM raw.flight_recorder_entry AS e
JOIN fabric.group_progress AS p USING (source_id)
JOIN fabric.process_group AS g ON g.run_id = p.run_id AND g.group_id = p.group_id AND g.name = e.process_group_name
WHERE p.run_id = ? AND {which}
ORDER BY p.rank, e.entry_id
"""
_PENDING = "e.state IS DISTINCT FROM 'completed'"
_LAST = "e.entry_id = (SELECT MAX(o.entry_id) FROM raw.flight_recorder_entry AS o WHERE o.source_id = e.source_id)"

_DUMPS = "SELECT run_id, rank, source_id FROM fabric.hang_dump ORDER BY run_id, rank"

# `nccl:recv 3<-0`: ranks within the group, the own one first.
_MESSAGE = re.compile(r"(?:send|recv) \d{1,9}(?:->|<-)(\d{1,9})$")
_BACKEND = re.compile(r"^[a-z0-9_]{1,20}:", re.IGNORECASE)
_LONGEST_OP = 80


def rows(store: Store) -> pl.DataFrame:
    """Two rows a run at most; none for a run without dumps."""
    found: list[dict[str, object]] = []
    for (run_id,), dumps in store.query(_DUMPS).group_by("run_id", maintain_order=True):
        found += _of_run(store, int(str(run_id)), dict(dumps.select("rank", "source_id").rows()))
    return pl.DataFrame(found, infer_schema_length=None)


def _of_run(store: Store, run_id: int, sources: dict[int, int]) -> list[dict[str, object]]:
    groups = store.records(_GROUPS, [run_id])
    dumps = _load(store, run_id, groups, frozenset(sources))
    names = {group["group_id"]: str(group["known_as"])[:_LONGEST_OP] for group in groups}
    return [
        _row(hang, dumps, names, sources) | {"run_id": run_id, "place": place}
        for place, hang in enumerate(search(dumps))
    ]


def _load(store: Store, run_id: int, groups: list[dict[str, Any]], ranks: frozenset[int]) -> Dumps:
    members = {group["group_id"]: tuple(group["ranks"]) if group["ranks"] else None for group in groups}
    calls: dict[int, list[RecordedCall]] = {}
    for row in store.records(_CALLS.format(which=_PENDING), [run_id]):
        calls.setdefault(row["rank"], []).append(_call(row, members[row["group_id"]]))
    last = {
        row["rank"]: _call(row, members[row["group_id"]]) for row in store.records(_CALLS.format(which=_LAST), [run_id])
    }
    progress = {
        (row["group_id"], row["rank"]): Progress(row["last_enqueued"], row["last_completed"])
        for row in store.records(_PROGRESS, [run_id])
    }
    with_messages = {group["group_id"] for group in groups if group["has_messages"]}
    return Dumps(members, _without_counters_of_messages(progress, calls, with_messages), calls, ranks, last)


def _without_counters_of_messages(
    progress: dict[tuple[int, int], Progress], calls: dict[int, list[RecordedCall]], with_messages: set[int]
) -> dict[tuple[int, int], Progress]:
    """In groups with sends and receives the counter counts each rank's own messages: only calls show progress there."""
    kept = {key: own for key, own in progress.items() if key[0] not in with_messages}
    for group, rank in progress.keys() - kept.keys():
        made = [call.sequence for call in calls.get(rank, ()) if call.group == group and call.sequence is not None]
        kept[group, rank] = Progress(max(made), min(made) - 1) if made else Progress(None, None)
    return kept


def _call(row: dict[str, Any], members: tuple[int, ...] | None) -> RecordedCall:
    op = _BACKEND.sub("", row["name"] or "unnamed")[:_LONGEST_OP]
    return RecordedCall(
        rank=row["rank"],
        group=row["group_id"],
        place=row["entry_id"],
        sequence=None if row["is_message"] else row["collective_sequence"],
        op=op,
        created_ns=row["raw_created_ns"],
        peer=_peer(op, members) if row["is_message"] else None,
        elements=_elements(row["in_shapes"]),
        in_shapes=row["in_shapes"],
        in_dtypes=row["in_dtypes"],
        stack=row["stack"],
    )


def _peer(op: str, members: tuple[int, ...] | None) -> int | None:
    match = _MESSAGE.match(op)
    return members[int(match[1])] if match and members and int(match[1]) < len(members) else None


def _elements(shapes: str | None) -> int | None:
    """Elements of all tensors of the JSON text of their shapes."""
    try:
        found = json.loads(shapes or "null")
        return sum(_product(shape) for shape in found)
    except (ValueError, TypeError, RecursionError):
        return None


def _product(shape: list[int]) -> int:
    product = 1
    for length in shape:
        product *= int(length)
    return product


def _row(hang: Hang, dumps: Dumps, names: dict[int, str], sources: dict[int, int]) -> dict[str, object]:
    call = hang.call
    shown_by = call.rank if call else next(iter(hang.waiting or sorted(sources)))
    return {
        "kind": hang.kind,
        "group_id": hang.group,
        "sequence": hang.sequence,
        "op": call.op if call else None,
        "in_shapes": call.in_shapes if call else None,
        "in_dtypes": call.in_dtypes if call else None,
        "ranks": list(hang.ranks),
        "waiting_ranks": list(hang.waiting),
        "without_dump": list(dumps.without_dump),
        "summary": summary(hang, dumps, names),
        "detail": detail(hang, dumps, names),
        "next_step": next_step(hang),
        "stack": call.stack if call else None,
        "source_id": sources[shown_by],
    }
