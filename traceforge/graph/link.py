"""Recorded operations tied to the timeline. Reads graph.trace, raw.chakra_node and raw.event; fills graph.link.

The methods of `operation_matching` are tried from the best down; the first that pairs nine tenths of the smaller side
with nine tenths of equal names is taken, and what was refused is kept as a row. Not handled: traces that carry times
of their own (ET+), and converted files, whose operations are duplicated for their kernels.
"""

from dataclasses import dataclass

import polars as pl

from traceforge.graph.operation_matching import (
    ABSENT,
    METHODS,
    Int64s,
    RecordedOperations,
    TimelineEvents,
    agreement,
    pair,
)
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import graph as thresholds
from traceforge.units import format_share

TRACES = """
SELECT run_id, source_id, part, rank, timeline_source_id
FROM graph.trace
WHERE timeline_source_id IS NOT NULL AND format = 'pytorch_et'
ORDER BY run_id, source_id, part
"""
_OPERATIONS = """
SELECT position, rf_id AS handle, COALESCE(name, '') AS name, COALESCE(thread_id, 0) AS thread
FROM raw.chakra_node
WHERE source_id = ? AND part = ? AND rf_id > 0 AND is_cpu
ORDER BY position
"""
_EVENTS = f"""
SELECT e.event_id, COALESCE(e.record_function_id, {ABSENT}) AS handle, COALESCE(e.external_id, {ABSENT}) AS external_id,
  COALESCE(e.name, '') AS name, e.track_id AS track
FROM raw.event AS e
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE e.source_id = ? AND e.phase = 'X' AND e.raw_start_ns IS NOT NULL
  AND c.canonical_category IN ('cpu_op', 'user_annotation') AND e.stream IS NULL
ORDER BY e.raw_start_ns, e.duration_ns DESC, e.event_id
"""


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides of a link.

    Attributes:
        operations, events: what is compared.
        positions: of the operations in raw.chakra_node.
        event_ids: of the events in raw.event.
    """

    operations: RecordedOperations
    events: TimelineEvents
    positions: Int64s
    event_ids: Int64s


def sides(store: Store, source_id: int, part: int, timeline_source_id: int) -> Sides:
    """Operations and events of one trace and its timeline, with names numbered alike."""
    ours = store.query(_OPERATIONS, [source_id, part])
    theirs = store.query(_EVENTS, [timeline_source_id])
    names = pl.concat([ours["name"], theirs["name"]]).cast(pl.Categorical).to_physical().cast(pl.Int64).to_numpy()
    operations = RecordedOperations(_numbers(ours, "handle"), names[: ours.height], _numbers(ours, "thread"))
    events = TimelineEvents(
        _numbers(theirs, "handle"), _numbers(theirs, "external_id"), names[ours.height :], _numbers(theirs, "track")
    )
    return Sides(operations, events, _numbers(ours, "position"), _numbers(theirs, "event_id"))


def _numbers(frame: pl.DataFrame, column: str) -> Int64s:
    return frame[column].fill_null(ABSENT).cast(pl.Int64).to_numpy()


def rows(store: Store) -> pl.DataFrame:
    """One row a (trace, method tried); adds an issue for every trace that no method ties to its timeline."""
    found = []
    for trace in store.records(TRACES):
        attempts = _attempts(sides(store, trace["source_id"], trace["part"], trace["timeline_source_id"]))
        if not attempts[-1]["is_accepted"]:
            _note_refusal(store, trace, attempts)
        found += [{**trace, **attempt} for attempt in attempts]
    return pl.DataFrame(found, infer_schema_length=None)


def _attempts(both: Sides) -> list[dict[str, object]]:
    """The methods down to the first one that is accepted."""
    attempts: list[dict[str, object]] = []
    smaller = max(1, min(len(both.positions), len(both.event_ids)))
    for method in METHODS:
        pairs = pair(method, both.operations, both.events)
        same = agreement(pairs, both.operations, both.events)
        share = len(pairs.operation) / smaller
        attempts.append(
            {
                "method": method,
                "operation_count": len(both.positions),
                "event_count": len(both.event_ids),
                "matched_count": len(pairs.operation),
                "matched_share": share,
                "name_agreement": same,
                "id_distance": pairs.offset if method == "external_id" else None,
                "occurrences": pairs.occurrences,
                "is_accepted": min(share, same) >= thresholds.LEAST_LINKED_SHARE,
            }
        )
        if attempts[-1]["is_accepted"]:
            break
    return attempts


def _note_refusal(store: Store, trace: dict[str, int], attempts: list[dict[str, object]]) -> None:
    best = max(min(float(str(row["matched_share"])), float(str(row["name_agreement"]))) for row in attempts)
    detail = (
        f"the execution trace does not fit the timeline of its rank (best match {format_share(best)}); it has no times,"
        " and what it communicates is not taken for this job's"
    )
    issue = Issue("link_refused", "warning", 1, f"rank {trace['rank']}", detail)
    store.append("meta.issue", issue_rows(trace["run_id"], trace["source_id"], "graph", [issue]))
