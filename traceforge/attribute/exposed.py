"""Which communication no kernel hides, and how fast it is. Reads attribute.exposed_transfer and line_rate; gives text.

Idea: a job bound by communication either sends at the pace of its links, and should overlap or send less, or sends
slower, and should look at its fabric or at calls too small for the links. The communicator and operation with most
exposed time are named. Not handled: which link is slow, of which findings speak.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from traceforge.attribute.findings.subjects import ranks_said
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_bytes, format_share

_EXPOSED = """
SELECT e.rank, e.communicator_id, e.op, e.calls, e.exposed_ns, e.paced_ns, e.at_line_rate_ns, e.has_waiting,
  e.bus_bandwidth_bytes_per_s, e.best_bus_bandwidth_bytes_per_s, e.size_bytes, e.call_ns,
  COALESCE(NULLIF(k.description, ''), NULLIF(k.name, '')) AS communicator, k.size, k.ranks,
  l.bus_bandwidth_bytes_per_s AS line_rate, l.basis
FROM attribute.exposed_transfer AS e
JOIN align.communicator AS k USING (run_id, communicator_id)
LEFT JOIN attribute.line_rate AS l USING (run_id, communicator_id, op)
WHERE e.run_id = ?
ORDER BY e.rank, e.communicator_id, e.op
"""

_HAS_UNKNOWN = """
SELECT EXISTS (
  SELECT 1 FROM align.call ANTI JOIN align.membership USING (run_id, rank, call_id)
  WHERE run_id = ? AND is_linked AND is_intact
)
"""

_AT_PACE = (
    "It runs near line rate: overlap it with compute (larger buckets earlier, prefetch), or send less (lower "
    "precision, fewer synchronisations)."
)
_SMALL = (
    "Its calls are short, so that latency sets their pace: send fewer and larger ones (bucket_cap_mb, fused or "
    "coalesced collectives)."
)
_SLOW = (
    "It runs far below line rate: look for what slows it (NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING on "
    "all ranks; `traceforge report` reads the logs) before hiding it behind compute."
)


@dataclass(frozen=True, slots=True)
class Exposed:
    """What is said of the communicator and operation that are exposed longest.

    Attributes:
        sentence: what it is, its size and pace, and how that compares with the hardware.
        next_step: what helps; None where the pace does not tell.
    """

    sentence: str
    next_step: str | None


class ExposedTransfers:
    """The exposed communication of a run, by rank."""

    def __init__(self, store: Store, run_id: int) -> None:
        rows = store.query(_EXPOSED, [run_id])
        named = rows.group_by("communicator").agg(pl.col("communicator_id").n_unique())
        self._alike: dict[str | None, int] = dict(named.rows())
        self._has_unknown = bool(store.rows(_HAS_UNKNOWN, [run_id])[0][0])
        # All ranks at once: to ask the rows for each of a thousand ranks takes seconds.
        together = rows.with_columns(rank=pl.lit(None, pl.Int64))
        self._most: dict[int | None, Mapping[str, Any]] = {
            row["rank"]: row for frame in (rows, together) for row in _longest(frame)
        }

    def of(self, rank: int | None) -> Exposed | None:
        """What is exposed longest on a rank or, without one, on all of them; None where nothing is."""
        if (most := self._most.get(rank)) is None:
            return None
        told = most["ranks"] if self._alike[most["communicator"]] > 1 else ()
        what = _named(most["op"], most["communicator"], most["size"], told)
        share = most["exposed_ns"] / most["all_ns"]
        part = f"{'All' if share >= 1 else format_share(share)} of that communication"
        if self._has_unknown:
            part += ", as far as its ranks are known,"
        return Exposed(_sentence(most, f"{part} is {what}"), _next_step(most))


def _longest(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Of each rank the communicator and operation that are exposed longest, of equals the first; `all_ns` is of all."""
    sums = rows.group_by("rank", "communicator_id", "op", maintain_order=True).agg(
        pl.col("exposed_ns", "paced_ns", "at_line_rate_ns").sum(),
        pl.col("bus_bandwidth_bytes_per_s", "best_bus_bandwidth_bytes_per_s", "size_bytes", "call_ns").median(),
        pl.col("line_rate", "basis", "communicator", "size", "ranks").first(),
        pl.col("has_waiting").any(),
    )
    sums = sums.with_columns(all_ns=pl.col("exposed_ns").sum().over("rank"))
    longest = sums.sort("exposed_ns", descending=True, maintain_order=True)
    return longest.unique("rank", keep="first", maintain_order=True).to_dicts()


def _sentence(exposed: Mapping[str, Any], text: str) -> str:
    if exposed["op"] is None and exposed["size"] <= 1:
        return "Kind, ranks and bytes of that communication were not recorded."
    bandwidth, line_rate = exposed["bus_bandwidth_bytes_per_s"], exposed["line_rate"]
    if exposed["size_bytes"] is None:
        return f"{text}; its bytes were not recorded."
    text += f": {format_bytes(round(exposed['size_bytes']))} a call (median)"
    if bandwidth is None:
        return f"{text}; its pace is not known."
    text += f" at {_pace(bandwidth)} bus bandwidth"
    if exposed["has_waiting"]:
        text += " or more (waiting for other ranks is in it)"
    if line_rate is None:
        best = exposed["best_bus_bandwidth_bytes_per_s"]
        at_best = "" if best is None or exposed["has_waiting"] else f", at best {_pace(best)}"
        return f"{text}{at_best}. The line rate is not known; --line-rate states it."
    part = "no less than" if bandwidth > line_rate else f"{format_share(bandwidth / line_rate)} of"
    return f"{text}, {part} line rate ({_pace(line_rate)}: {exposed['basis']})."


def _next_step(exposed: Mapping[str, Any]) -> str | None:
    is_known = exposed["line_rate"] is not None and exposed["paced_ns"] > 0
    at_line_rate = exposed["at_line_rate_ns"] / exposed["paced_ns"] if is_known else None
    if at_line_rate is not None and at_line_rate >= thresholds.NEAR_LINE_RATE:
        return _AT_PACE
    if exposed["call_ns"] is not None and exposed["call_ns"] < thresholds.LATENCY_BOUND_NS:
        return _SMALL
    is_slow = at_line_rate is not None and at_line_rate < thresholds.FAR_BELOW_LINE_RATE
    return _SLOW if is_slow and not exposed["has_waiting"] else None


def line_rate_shares(store: Store) -> dict[tuple[int, int], float]:
    """Of the exposed communication of each run and rank, the share 0..1 that it would take at line rate.

    Only ranks are in it of which the line rate of some exposed call is known; calls without one count as zero.
    """
    query = """
    SELECT run_id, rank, SUM(at_line_rate_ns) / SUM(exposed_ns) AS share
    FROM attribute.exposed_transfer
    GROUP BY run_id, rank
    HAVING SUM(at_line_rate_ns) > 0
    """
    return {(int(run_id), int(rank)): float(share) for run_id, rank, share in store.rows(query)}


def _named(op: str | None, communicator: str | None, size: int, told: Sequence[int]) -> str:
    """What moves where; the ranks are `told` where several communicators have one name."""
    counted = f"{size} ranks" if size > 1 else "ranks that are not known"
    ranks = ranks_said(told) if told else counted
    name = f"{communicator[:60]}, " if communicator else ""
    return f"{op or 'communication of an unknown kind'} ({name}{ranks})"


def _pace(rate: float) -> str:
    return f"{format_bytes(rate)}/s"
