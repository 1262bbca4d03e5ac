"""Hangs. Reads fabric.process_group, group_progress, hang_call and hang_dump, and raw.flight_recorder_entry.

Out: fabric.hang. Idea: `hang_search` finds who is waited for from the calls that had not ended; `hang_text` says it.
Not handled: dumps of a job that runs well differ from those of a hung one only by calls that had not ended.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from traceforge.fabric.hang_search import search
from traceforge.fabric.hang_state import Dumps, Hang, Progress, RecordedCall
from traceforge.fabric.hang_text import detail, next_step, summary
from traceforge.store.database import Store

# PyTorch describes a group that nobody described as `undefined`.
_GROUPS = """
SELECT
  group_id, name, COALESCE(NULLIF(description, 'undefined'), 'process group ' || name) AS known_as, ranks, has_messages
FROM fabric.process_group
WHERE run_id = ?
"""

_PROGRESS = "SELECT group_id, rank, last_enqueued, last_completed FROM fabric.group_progress WHERE run_id = ?"

_CALLS = """
SELECT
  c.rank, p.group_id, c.place, COALESCE(c.batch_place, c.place) AS batch, c.collective_sequence, c.is_message, c.state,
  c.has_start, e.name, e.raw_created_ns, e.in_shapes, e.in_dtypes, e.stack
FROM fabric.hang_call AS c
JOIN raw.flight_recorder_entry AS e USING (source_id, entry_id)
JOIN fabric.group_progress AS p USING (source_id)
JOIN fabric.process_group AS g ON g.run_id = p.run_id AND g.group_id = p.group_id AND g.name = c.process_group_name
WHERE c.run_id = ? AND (c.is_message OR c.collective_sequence IS NOT NULL) AND {which}
ORDER BY c.rank, c.place
"""
# Where a dump states no states, the rank's counter tells what has ended.
_PENDING = """
NOT c.is_batch AND (
  c.state IN ('scheduled', 'started')
  OR (c.state IS NULL AND NOT c.is_message AND c.collective_sequence > p.last_completed)
)
"""
_LAST = "c.place = (SELECT MAX(o.place) FROM fabric.hang_call AS o WHERE o.source_id = c.source_id AND NOT o.is_batch)"
# Of each rank, the last call that ended of each group and kind.
_ENDED = """
c.state = 'completed' AND NOT c.is_message AND c.collective_sequence = (
  SELECT MAX(o.collective_sequence)
  FROM fabric.hang_call AS o
  JOIN raw.flight_recorder_entry AS f USING (source_id, entry_id)
  WHERE o.source_id = c.source_id AND o.process_group_name = c.process_group_name AND o.state = 'completed'
    AND NOT o.is_message AND f.name = e.name
)
"""

_OLDEST = """
SELECT p.group_id, c.rank, MIN(c.collective_sequence) AS oldest
FROM fabric.hang_call AS c
JOIN fabric.group_progress AS p USING (source_id)
JOIN fabric.process_group AS g ON g.run_id = p.run_id AND g.group_id = p.group_id AND g.name = c.process_group_name
WHERE c.run_id = ? AND c.collective_sequence IS NOT NULL
GROUP BY ALL
"""

_RECORDED = "SELECT DISTINCT rank FROM fabric.hang_call WHERE run_id = ?"

# Calls that had not ended, or may not have, of which more is not known.
_UNPLACED = """
SELECT COUNT(*)
FROM fabric.hang_call AS c
LEFT JOIN (
  SELECT p.source_id, g.name, p.last_completed
  FROM fabric.group_progress AS p
  JOIN fabric.process_group AS g USING (run_id, group_id)
) AS p ON p.source_id = c.source_id AND p.name = c.process_group_name
WHERE c.run_id = ? AND CASE
  WHEN c.state IS NULL THEN c.is_message OR p.last_completed IS NULL
  WHEN c.state = 'completed' OR c.is_batch THEN false
  ELSE c.process_group_name IS NULL OR (NOT c.is_message AND c.collective_sequence IS NULL)
END
"""

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

    def calls_that(which: str) -> Iterator[RecordedCall]:
        rows = store.records(_CALLS.format(which=which), [run_id])
        return (_call(row, members[row["group_id"]]) for row in rows)

    calls: dict[int, list[RecordedCall]] = {}
    for call in calls_that(_PENDING):
        calls.setdefault(call.rank, []).append(call)
    progress = {
        (row["group_id"], row["rank"]): Progress(row["last_enqueued"], row["last_completed"])
        for row in store.records(_PROGRESS, [run_id])
    }
    with_messages = {group["group_id"] for group in groups if group["has_messages"]}
    return Dumps(
        members=members,
        progress=_from_calls_at_least(progress, calls, with_messages),
        calls=calls,
        ranks=ranks,
        last={call.rank: call for call in calls_that(_LAST)},
        ended=tuple(calls_that(_ENDED)),
        oldest={(row["group_id"], row["rank"]): row["oldest"] for row in store.records(_OLDEST, [run_id])},
        recorded=frozenset(rank for (rank,) in store.rows(_RECORDED, [run_id])),
        unplaced=int(store.value(_UNPLACED, [run_id])),
    )


def _from_calls_at_least(
    progress: dict[tuple[int, int], Progress], calls: dict[int, list[RecordedCall]], with_messages: set[int]
) -> dict[tuple[int, int], Progress]:
    """In groups with messages whose numbers cannot be compared, only calls that have not ended show progress."""
    found = dict(progress)
    for (group, rank), own in progress.items():
        if group in with_messages and own.enqueued is None:
            made = [call.sequence for call in calls.get(rank, ()) if call.group == group and call.sequence is not None]
            found[group, rank] = Progress(max(made), min(made) - 1) if made else Progress(None, None)
    return found


def _call(row: dict[str, Any], members: tuple[int, ...] | None) -> RecordedCall:
    op = _BACKEND.sub("", row["name"] or "unnamed")[:_LONGEST_OP]
    return RecordedCall(
        rank=row["rank"],
        group=row["group_id"],
        place=row["place"],
        sequence=None if row["is_message"] else row["collective_sequence"],
        op=op,
        created_ns=row["raw_created_ns"],
        batch=row["batch"],
        peer=_peer(op, members) if row["is_message"] else None,
        has_started=row["state"] == "started" if row["has_start"] else None,
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
        "next_step": next_step(hang, dumps),
        "stack": call.stack if call else None,
        "source_id": sources[shown_by],
    }
