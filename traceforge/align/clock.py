"""How far each rank's clock is off. Reads align.match, align.call and align.rank; fills align.clock.

On a device a synchronising collective ends on all ranks together, so the median difference of its ends is the
offset, rank by rank, even within one host, where per-process conversion shifts clocks by tens of µs
(`pairwise_offset`). Host threads (gloo) do not end together: on one host they read one clock, unless their order
contradicts that; otherwise their ends give a coarse offset, and order bounds it. Clocks are tied over shared
communicators (`clock_sync`). The result is checked: no rank may end a collective before the last one has arrived. Where
one does, its wait is cut at its own end, and that repair is counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.align.clock_course import BILLION, ClockCourse
from traceforge.align.clock_sync import RankCalls, components, solve
from traceforge.align.collective_names import collective_kinds
from traceforge.align.pairwise_offset import Offset
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import align as thresholds

# A call that meets one other in messages ends with it; one that meets several ends with the last of them, so that each
# of its messages only says that what was received had been sent.
_CALLS = """
WITH met AS (
  SELECT run_id, collective_id, MAX(meetings) = 1 AS is_alone
  FROM (
    SELECT *, COUNT(*) OVER (PARTITION BY run_id, rank, call_id) AS meetings
    FROM align.match
    WHERE direction IS NOT NULL
  )
  GROUP BY ALL
),
tied AS (
  SELECT m.*, COALESCE(t.is_alone, false) AS is_alone,
    CASE
      WHEN m.direction = 'both' AND t.is_alone THEN ['send_recv']
      WHEN m.direction = 'both' AND m.rank = MIN(m.rank) OVER (PARTITION BY m.run_id, m.collective_id)
        THEN ['send', 'recv']
      WHEN m.direction = 'both' THEN ['recv', 'send']
      ELSE [m.direction]
    END AS directions
  FROM align.match AS m
  LEFT JOIN met AS t USING (run_id, collective_id)
)
SELECT t.run_id, t.rank, 2 * t.collective_id + n AS collective_id, t.communicator_id, c.raw_arrival_ns, c.raw_end_ns,
  c.on_device, COALESCE(t.directions[n + 1], c.op) AS op, t.is_alone
FROM tied AS t
JOIN align.call AS c USING (run_id, rank, call_id)
CROSS JOIN (SELECT UNNEST([0, 1]) AS n)
WHERE n < LEN(t.directions)
ORDER BY t.run_id, t.rank, collective_id
"""

# Of hosts that are not known, a file that holds several ranks may state that it has one clock for all of them. A host
# has two: one counts from 1970, the other from its start.
_RANKS = """
SELECT run_id, r.rank, r.host,
  COALESCE(r.host, p.metadata ->> '$.one_clock') || IF(r.raw_first_ns < ?, ' since its start', '') AS clock
FROM align.rank AS r
LEFT JOIN raw.profile AS p USING (source_id)
ORDER BY run_id, r.rank
"""

_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "host": pl.String,
    "offset_ns": pl.Int64,
    "drift_ppb": pl.Int64,
    "raw_anchor_ns": pl.Int64,
    "residual_ns": pl.Int64,
    "half_error_ns": pl.Int64,
    "anchors": pl.Int64,
    "status": pl.String,
    "component": pl.Int32,
    "causality_repairs": pl.Int64,
    "largest_repair_ns": pl.Int64,
    "course": pl.List(pl.Struct({"raw_ns": pl.Int64, "ahead_ns": pl.Int64, "ppb": pl.Int64})),
}


_ROLES = {"send": 1, "recv": -1}


@dataclass(frozen=True, slots=True)
class Repairs:
    """Collectives that a rank ends before the last one arrives, by the clocks: how many, and by how much at most."""

    count: int = 0
    largest_ns: int = 0


def rows(store: Store) -> pl.DataFrame:
    """One row a rank of each run; adds issues for ranks that no path ties and for repairs."""
    calls = _synchronising(store.query(_CALLS))
    result: list[tuple[object, ...]] = []
    every = store.query(_RANKS, [thresholds.EARLIEST_EPOCH_NS])
    for (run_key,), ranks in every.group_by("run_id", maintain_order=True):
        run_id = int(str(run_key))
        by_rank = _by_rank(ranks, calls.filter(pl.col("run_id") == run_id))
        offsets = solve(by_rank)
        number = components(by_rank, offsets)
        repairs = causality_repairs(by_rank, offsets)
        result += [
            _row(run_id, rank, host, offsets[rank], number[rank], repairs.get(rank, Repairs()))
            for rank, host in ranks.select("rank", "host").iter_rows()
        ]
        issues = [*_unaligned(number), *_set(offsets), *_repaired(offsets, repairs)]
        store.append("meta.issue", issue_rows(run_id, None, "align", issues))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _synchronising(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls that tie clocks, with `common_end` and `role` (see `RankCalls`)."""
    kinds = [
        (k.name, k.common_end, _ROLES.get(k.name, 0)) for k in collective_kinds() if k.synchronising or k.name in _ROLES
    ]
    schema = {"op": pl.String, "common_end": pl.Boolean, "role": pl.Int64}
    return calls.join(pl.DataFrame(kinds, schema=schema, orient="row"), on="op", maintain_order="left").with_columns(
        common_end=pl.when(pl.col("role") == 0).then("common_end").otherwise("is_alone")
    )


def _by_rank(ranks: pl.DataFrame, calls: pl.DataFrame) -> dict[int, RankCalls]:
    frames = {key[0]: frame for key, frame in calls.group_by("rank", maintain_order=True)}
    result = {}
    for rank, clock in ranks.select("rank", "clock").iter_rows():
        own = frames.get(rank, calls.clear())
        columns = (
            "collective_id",
            "communicator_id",
            "raw_arrival_ns",
            "raw_end_ns",
            "on_device",
            "common_end",
            "role",
        )
        result[rank] = RankCalls(clock, *(own[name].to_numpy() for name in columns))
    return result


def _row(
    run_id: int, rank: int, host: str | None, offset: Offset, component: int, repairs: Repairs
) -> tuple[object, ...]:
    course = offset.course
    line = (None,) * 3 if offset.offset_ns is None else (offset.offset_ns, offset.drift_ppb, offset.raw_anchor_ns)
    knots = zip(*(values.tolist() for values in (course.raw_ns, course.offset_ns, course.drift_ppb)), strict=True)
    return (
        run_id, rank, host, *line, offset.residual_ns, offset.half_error_ns, offset.anchors, offset.status, component,
        repairs.count, repairs.largest_ns,
        [{"raw_ns": raw, "ahead_ns": ahead, "ppb": ppb} for raw, ahead, ppb in knots],
    )  # fmt: skip


def causality_repairs(calls: Mapping[int, RankCalls], offsets: Mapping[int, Offset]) -> dict[int, Repairs]:
    """By rank, the collectives that it ends before the last rank arrives, on the common clock."""
    tied = [rank for rank in calls if offsets[rank].offset_ns is not None and (calls[rank].role == 0).any()]
    if not tied:
        return {}
    together = {rank: calls[rank].role == 0 for rank in tied}
    collective = np.concatenate([calls[rank].collective[together[rank]] for rank in tied])
    owner = np.concatenate([np.full(together[rank].sum(), rank) for rank in tied])
    arrival, end = (
        np.concatenate([offsets[rank].course.aligned(getattr(calls[rank], name)[together[rank]]) for rank in tied])
        for name in ("arrival_ns", "end_ns")
    )
    _, place = np.unique(collective, return_inverse=True)
    last_arrival = np.full(place.max() + 1, np.iinfo(np.int64).min)
    np.maximum.at(last_arrival, place, arrival)
    early = last_arrival[place] - end
    return {
        rank: Repairs(int((own > 0).sum()), int(own.max()))
        for rank in tied
        if len(own := early[owner == rank]) and own.max() > 0
    }


def _unaligned(number: Mapping[int, int]) -> list[Issue]:
    """An issue for each component that no path ties to the reference's, naming its ranks."""
    issues = []
    for component in sorted(set(number.values()) - {0}):
        ranks = [rank for rank, own in number.items() if own == component]
        named = ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
        detail = f"no collective ties the clocks of ranks {named} to those of the others; they are not compared"
        issues.append(Issue("clock_unaligned", "warning", len(ranks), f"rank {ranks[0]}", detail))
    return issues


def _set(offsets: Mapping[int, Offset]) -> list[Issue]:
    """An issue for clocks that jump against the reference's, with the largest jump."""
    jumps = {rank: _jump_ns(offset.course) for rank, offset in offsets.items() if offset.offset_ns is not None}
    ranks = [rank for rank, jump_ns in jumps.items() if jump_ns]
    if not ranks:
        return []
    worst = max(ranks, key=lambda rank: abs(jumps[rank]))
    detail = (
        f"a clock was set in mid-run: {len(ranks)} of {len(offsets)} jump against rank {min(offsets)}'s, "
        f"rank {worst}'s by {jumps[worst] / 1e6:.1f} ms; both sides are aligned, "
        "and the iterations in which it jumps are not judged"
    )
    return [Issue("clock_set", "warning", len(ranks), f"rank {worst}", detail)]


def _jump_ns(course: ClockCourse) -> int:
    """The largest change of a steep piece, ns; 0 where no piece is steep."""
    grown = np.diff(course.raw_ns) * course.drift_ppb[:-1] // BILLION
    steep = grown[np.abs(course.drift_ppb[:-1]) >= thresholds.STEEP_PPB]
    return int(steep[np.abs(steep).argmax()]) if len(steep) else 0


def _repaired(offsets: Mapping[int, Offset], repairs: Mapping[int, Repairs]) -> list[Issue]:
    """An issue for ends that precede an arrival, a warning where clock residuals do not explain them."""
    if not repairs:
        return []
    worst = max(repairs, key=lambda rank: repairs[rank].largest_ns)
    resolution_ns = thresholds.RESOLUTION_RESIDUALS * max(offset.residual_ns or 0 for offset in offsets.values())
    severity = "info" if repairs[worst].largest_ns <= resolution_ns else "warning"
    detail = (
        "ends of collectives lie before the last arrival, which cannot be; the waits are cut there "
        f"(by {repairs[worst].largest_ns / 1e3:.1f} µs at most)"
    )
    count = sum(repair.count for repair in repairs.values())
    return [Issue("causality_repaired", severity, count, f"rank {worst}", detail)]
