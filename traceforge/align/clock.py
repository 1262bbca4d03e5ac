"""How far each rank's clock is off. Reads align.match and align.call; fills align.clock.

On a device a synchronising collective ends on all ranks together, so the median difference of its ends is the
offset, rank by rank, even within one host, where per-process conversion shifts clocks by tens of µs. Host threads
(gloo) do not end together: on one host they read one clock; across hosts their ends give a coarse offset, and order
bounds it. Where the differences run along a line, the clocks drift. Ranks that share no collective with the
reference, even through others, read its clock if they share its host, and stay unaligned else. Not handled yet:
clocks that wobble (a line a rank is all there is).
"""

import math
from dataclasses import dataclass, replace

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
    "raw_anchor_ns": pl.Int64,
    "residual_ns": pl.Int64,
    "anchors": pl.Int64,
    "status": pl.String,
}

_MIN_ANCHORS = 3
_MIN_DRIFT_ANCHORS = 10
_CERTAIN_ERRORS = 4
# Crystals of hosts differ by up to some 1e-4; more is no drift.
_LARGEST_DRIFT = 1e-3
# Each process converts the CPU's counter to wall time by itself; on one host the results agree to about this.
_SHARED_CLOCK_RESIDUAL_NS = 10_000
# Device timestamps are converted to the host's clock by each process: biases of up to 70 µs were seen on one host.
_SAME_HOST_RESIDUAL_NS = 100_000
# A normal distribution's standard deviation over its median absolute deviation.
_SD_PER_MAD = 1.4826

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Offset:
    """One clock against the reference.

    Attributes:
        offset_ns: how far it is ahead when it shows `raw_anchor_ns`; None when unaligned.
        residual_ns: how uncertain that is; None when unaligned.
        anchors: number of collectives it rests on.
        status: as in `align.clock.status`.
        drift_ppb: by how much it runs faster, parts per billion.
        raw_anchor_ns: reading of this clock to which `offset_ns` belongs.
    """

    offset_ns: int | None
    residual_ns: int | None
    anchors: int
    status: str
    drift_ppb: int = 0
    raw_anchor_ns: int = 0

    def at(self, raw_ns: int) -> int:
        """How far the clock is ahead when it shows `raw_ns`, ns."""
        return (self.offset_ns or 0) + (raw_ns - self.raw_anchor_ns) * self.drift_ppb // 1_000_000_000


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
            drift = None if o.offset_ns is None else o.drift_ppb
            anchor = None if o.offset_ns is None else o.raw_anchor_ns
            result.append((run_id, rank, host, o.offset_ns, drift, anchor, o.residual_ns, o.anchors, o.status))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row")


def _solve(ranks: pl.DataFrame, calls: pl.DataFrame) -> dict[int, Offset]:
    """Offsets of one run's ranks, spreading from the lowest rank over shared collectives."""
    order = ranks["rank"].to_list()
    hosts = dict(zip(order, ranks["host"], strict=True))
    by_rank = {rank: calls.filter(pl.col("rank") == rank) for rank in order}
    solved = {order[0]: Offset(0, 0, 0, "reference")}
    frontier = [order[0]]
    while True:
        if not frontier and (neighbour := _neighbour(hosts, solved)) is not None:
            rank, known = neighbour
            solved[rank] = replace(solved[known], anchors=0, residual_ns=_SAME_HOST_RESIDUAL_NS, status="shared_clock")
            frontier.append(rank)
        if not frontier:
            break
        known = frontier.pop(0)
        for rank in order:
            if rank in solved:
                continue
            offset = _pair(by_rank[known], by_rank[rank], same_host=hosts[known] == hosts[rank] is not None)
            if offset is not None:
                solved[rank] = _chain(solved[known], offset)
                frontier.append(rank)
    return {rank: solved.get(rank, Offset(None, None, 0, "unaligned")) for rank in order}


def _neighbour(hosts: dict[int, str | None], solved: dict[int, Offset]) -> tuple[int, int] | None:
    """A rank not solved yet and one that is, on the same known host."""
    by_host = {hosts[rank]: rank for rank in sorted(solved, reverse=True) if hosts[rank] is not None}
    return next(((rank, by_host[host]) for rank, host in hosts.items() if rank not in solved and host in by_host), None)


def _chain(known: Offset, step: Offset) -> Offset:
    # The known clock shows this when the new one shows its anchor.
    known_reading_ns = step.raw_anchor_ns - (step.offset_ns or 0)
    return Offset(
        known.at(known_reading_ns) + (step.offset_ns or 0),
        max(known.residual_ns or 0, step.residual_ns or 0),
        step.anchors,
        step.status,
        known.drift_ppb + step.drift_ppb,
        step.raw_anchor_ns,
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
    anchor = _median(other_ends_ns)
    drift_ppb = _drift_ppb(other_ends_ns - anchor, differences)
    level = differences - (other_ends_ns - anchor) * drift_ppb // 1_000_000_000
    offset = _median(level)
    residual = _SD_PER_MAD * float(np.median(np.abs(level - offset)))
    return Offset(offset, round(residual), len(differences), "fitted", drift_ppb, anchor)


def _drift_ppb(elapsed_ns: Times, differences_ns: Times) -> int:
    """Slope of the differences, parts per billion; 0 where it cannot be told from none.

    The median of the slopes of pairs half a window apart (Theil and Sen's idea, at the cost of a sort) is not moved
    by stray ends. It counts if it stands four standard errors off zero.
    """
    count = len(elapsed_ns)
    if count < _MIN_DRIFT_ANCHORS:
        return 0
    order = np.argsort(elapsed_ns, kind="stable")
    elapsed = elapsed_ns[order].astype(np.float64)
    differences = (differences_ns[order] - differences_ns[order[0]]).astype(np.float64)
    half = count // 2
    runs = elapsed[-half:] - elapsed[:half]
    if runs.min() <= 0:
        return 0
    slope = float(np.median((differences[-half:] - differences[:half]) / runs))
    level = differences - slope * elapsed
    spread = _SD_PER_MAD * float(np.median(np.abs(level - np.median(level))))
    # 1.25 is the loss of a median against a mean, and the pairs use each point once.
    error = 1.25 * spread * math.sqrt(2 / half) / float(np.median(runs))
    is_certain = abs(slope) > _CERTAIN_ERRORS * error and abs(slope) < _LARGEST_DRIFT
    return round(slope * 1e9) if is_certain else 0


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
