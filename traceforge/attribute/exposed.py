"""Which communication no kernel hides, and how fast it is. Reads attribute.exposed_transfer and line_rate; gives text.

Idea: a job bound by communication either sends at the pace of its links, and should overlap or send less, or sends
slower, and should look at its fabric or at calls too small for the links. The communicator and operation with most
exposed time are named. Not handled: which link is slow, of which findings speak.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
    """The communicator and operation that are exposed longest.

    Attributes:
        text: what they are.
        share: 0..1 of the exposed time that they take.
        size_bytes: median bytes of a call; None when unknown.
        call_ns: median time of a call; None when unknown.
        bandwidth: median bus bandwidth, bytes/s; None when unknown.
        best: bus bandwidth of the fastest call, bytes/s; None when unknown.
        line_rate: bus bandwidth that the hardware allows, bytes/s; None when unknown.
        at_line_rate: 0..1 of their paced time that they would take at line rate; None when unknown.
        basis: what the line rate rests on.
        has_waiting: whether waiting for others is in it.
        is_named: whether its kind or its ranks were recorded.
    """

    text: str
    share: float
    size_bytes: int | None
    call_ns: float | None
    bandwidth: float | None
    best: float | None
    line_rate: float | None
    at_line_rate: float | None
    basis: str | None
    has_waiting: bool
    is_named: bool

    @property
    def sentence(self) -> str:
        """What it is, its size and pace, and how that compares with the hardware."""
        part = "all" if self.share >= 1 else format_share(self.share)
        text = f"{part} of that communication is {self.text}"
        text = text[0].upper() + text[1:]
        if not self.is_named:
            return "Kind, ranks and bytes of that communication were not recorded."
        if self.bandwidth is None or self.size_bytes is None:
            return f"{text}; its bytes were not recorded."
        text += f": {format_bytes(self.size_bytes)} a call (median) at {_pace(self.bandwidth)} bus bandwidth"
        if self.has_waiting:
            text += " or more (waiting for other ranks is in it)"
        if self.line_rate is None:
            best = "" if self.best is None or self.has_waiting else f", at best {_pace(self.best)}"
            return f"{text}{best}. The line rate is not known; --line-rate states it."
        if self.bandwidth > self.line_rate:
            return f"{text}, no less than line rate ({self._limit()})."
        return f"{text}, {format_share(self.bandwidth / self.line_rate)} of line rate ({self._limit()})."

    def _limit(self) -> str:
        return f"{_pace(self.line_rate or 0)}: {self.basis}"

    @property
    def next_step(self) -> str | None:
        """What helps; None where the pace does not tell."""
        if self.at_line_rate is not None and self.at_line_rate >= thresholds.NEAR_LINE_RATE:
            return _AT_PACE
        if self.call_ns is not None and self.call_ns < thresholds.LATENCY_BOUND_NS:
            return _SMALL
        is_slow = self.at_line_rate is not None and self.at_line_rate < thresholds.FAR_BELOW_LINE_RATE
        return _SLOW if is_slow and not self.has_waiting else None


class ExposedTransfers:
    """The exposed communication of a run, by rank."""

    def __init__(self, store: Store, run_id: int) -> None:
        self._rows = store.query(_EXPOSED, [run_id])

    def of(self, rank: int | None) -> Exposed | None:
        """What is exposed longest on a rank or, without one, on all of them; None where nothing is."""
        rows = self._rows if rank is None else self._rows.filter(pl.col("rank") == rank)
        if rows.is_empty():
            return None
        sums = rows.group_by("communicator_id", "op", maintain_order=True).agg(
            pl.col("exposed_ns", "paced_ns", "at_line_rate_ns").sum(),
            pl.col("bus_bandwidth_bytes_per_s", "best_bus_bandwidth_bytes_per_s", "size_bytes", "call_ns").median(),
            pl.col("line_rate", "basis", "communicator", "size", "ranks").first(),
            pl.col("has_waiting").any(),
        )
        most = sums.sort("exposed_ns", descending=True, maintain_order=True).row(0, named=True)
        known = most["line_rate"] is not None and most["paced_ns"] > 0
        alike = self._rows.filter(pl.col("communicator").eq_missing(most["communicator"]))["communicator_id"].n_unique()
        return Exposed(
            text=_named(most["op"], most["communicator"], most["size"], most["ranks"] if alike > 1 else ()),
            share=most["exposed_ns"] / int(rows["exposed_ns"].sum()),
            size_bytes=None if most["size_bytes"] is None else round(most["size_bytes"]),
            call_ns=most["call_ns"],
            bandwidth=most["bus_bandwidth_bytes_per_s"],
            best=most["best_bus_bandwidth_bytes_per_s"],
            line_rate=most["line_rate"],
            at_line_rate=most["at_line_rate_ns"] / most["paced_ns"] if known else None,
            basis=most["basis"],
            has_waiting=most["has_waiting"],
            is_named=most["op"] is not None or most["size"] > 1,
        )


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
