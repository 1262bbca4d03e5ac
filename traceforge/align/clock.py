"""How far each rank's clock is off. Reads align.match and align.call; fills align.clock.

On a device a synchronising collective ends on all ranks together, so the median difference of its ends is the
offset, rank by rank, even within one host, where per-process conversion shifts clocks by tens of µs. Host threads
(gloo) do not end together: on one host they read one clock; across hosts their ends give a coarse offset, and order
bounds it. Ranks that share no collective with the reference, even through others, stay unaligned. Not handled yet:
drift.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.collective_names import operations
from traceforge.store.database import Store

_CALLS = """
SELECT m.run_id, m.collective_id, m.rank, c.raw_arrival_ns, c.raw_end_ns, c.on_device, c.op
FROM align.match AS m
JOIN align.call AS c USING (run_id, rank, call_id)
ORDER BY m.run_id, m.collective_id, m.rank
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "host": pl.String,
    "offset_ns": pl.Int64,
    "drift_ppb": pl.Int64,
    "residual_ns": pl.Int64,
    "anchors": pl.Int64,
    "status": pl.String,
}

_MIN_ANCHORS = 3
# Each process converts the CPU's counter to wall time by itself; on one host the results agree to about this.
_SHARED_CLOCK_RESIDUAL_NS = 10_000
# A normal distribution's standard deviation over its median absolute deviation.
_SD_PER_MAD = 1.4826

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Offset:
    """One clock against the reference: ns, ns, number of collectives, and how (see align.clock.status)."""

    offset_ns: int | None
    residual_ns: int | None
    anchors: int
    status: str


def rows(store: Store) -> pl.DataFrame:
    """One row a rank of each run."""
    synchronising = [operation.name for operation in operations() if operation.synchronising]
    calls = store.query(_CALLS).filter(pl.col("op").is_in(synchronising))
    result: list[tuple[object, ...]] = []
    for (run_id,), ranks in store.query("SELECT * FROM align.rank ORDER BY run_id, rank").group_by(
        "run_id", maintain_order=True
    ):
        offsets = _solve(ranks, calls.filter(pl.col("run_id") == run_id))
        for rank, host in zip(ranks["rank"], ranks["host"], strict=True):
            o = offsets[rank]
            drift = None if o.offset_ns is None else 0
            result.append((run_id, rank, host, o.offset_ns, drift, o.residual_ns, o.anchors, o.status))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _solve(ranks: pl.DataFrame, calls: pl.DataFrame) -> dict[int, Offset]:
    """Offsets of one run's ranks, spreading from the lowest rank over shared collectives."""
    order = ranks["rank"].to_list()
    hosts = dict(zip(order, ranks["host"], strict=True))
    by_rank = {rank: calls.filter(pl.col("rank") == rank) for rank in order}
    solved = {order[0]: Offset(0, 0, 0, "reference")}
    frontier = [order[0]]
    while frontier:
        known = frontier.pop(0)
        for rank in order:
            if rank in solved:
                continue
            offset = _pair(by_rank[known], by_rank[rank], same_host=hosts[known] == hosts[rank] is not None)
            if offset is not None:
                solved[rank] = _chain(solved[known], offset)
                frontier.append(rank)
    return {rank: solved.get(rank, Offset(None, None, 0, "unaligned")) for rank in order}


def _chain(known: Offset, step: Offset) -> Offset:
    return Offset(
        (known.offset_ns or 0) + (step.offset_ns or 0),
        max(known.residual_ns or 0, step.residual_ns or 0),
        step.anchors,
        step.status,
    )


def _pair(reference: pl.DataFrame, other: pl.DataFrame, *, same_host: bool) -> Offset | None:
    shared = reference.join(other, on="collective_id", suffix="_other")
    on_device = shared.filter(pl.col("on_device") & pl.col("on_device_other"))
    if on_device.height >= _MIN_ANCHORS:
        return common_end_offset(on_device["raw_end_ns"].to_numpy(), on_device["raw_end_ns_other"].to_numpy())
    if shared.is_empty():
        return None
    if same_host and on_device.is_empty():
        return Offset(0, _SHARED_CLOCK_RESIDUAL_NS, shared.height, "shared_clock")
    return bounded_offset(
        shared["raw_arrival_ns"].to_numpy(),
        shared["raw_end_ns"].to_numpy(),
        shared["raw_arrival_ns_other"].to_numpy(),
        shared["raw_end_ns_other"].to_numpy(),
    )


def common_end_offset(ends_ns: Times, other_ends_ns: Times) -> Offset:
    """Offset from collectives that end together on both ranks.

    Args:
        ends_ns: ends on the reference's clock, shape (collectives,).
        other_ends_ns: ends of the same collectives on the other rank's clock.
    """
    differences = other_ends_ns - ends_ns
    offset = _median(differences)
    residual = _SD_PER_MAD * float(np.median(np.abs(differences - offset)))
    return Offset(offset, round(residual), len(differences), "fitted")


def bounded_offset(starts_ns: Times, ends_ns: Times, other_starts_ns: Times, other_ends_ns: Times) -> Offset | None:
    """Offset from ends that are not simultaneous, kept within what order allows.

    On either rank a collective ends after it has started on the other, which bounds the offset from both sides. The
    residual is half the range of nine tenths of the end differences. None where no offset is feasible.
    """
    low = int((other_starts_ns - ends_ns).max())
    high = int((other_ends_ns - starts_ns).min())
    if low > high:
        return None
    differences = other_ends_ns - ends_ns
    early, late = np.quantile(differences, [0.05, 0.95])
    offset = min(max(_median(differences), low), high)
    return Offset(offset, max(round((late - early) / 2), _SHARED_CLOCK_RESIDUAL_NS), len(differences), "bounded")


def _median(values_ns: Times) -> int:
    """Median rounded down, exact: clocks may lie further apart than a float can tell ns."""
    base = int(values_ns[0])
    return base + math.floor(np.median(values_ns - base))
