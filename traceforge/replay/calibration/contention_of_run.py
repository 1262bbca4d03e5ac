"""Work of a run and what ran beside it. Reads timeline.*, align.*, raw events; measures contention.

Kernels are held against the collective of their own device, host operations against the ranks of the same host that
are blocked in a wait. At most eight ranks stand for all, evenly spread from the one that waits least to the one that
waits most.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceforge.replay.calibration.contention import WorkPieces, slow_downs
from traceforge.replay.calibration.measurement import Amounts, Measurement, mean_iteration_ns, refused
from traceforge.replay.calibration.work_of_rank import host_operations, kernels
from traceforge.replay.model import Times
from traceforge.store.database import Store
from traceforge.thresholds import replay as thresholds
from traceforge.thresholds.align import RESOLUTION_RESIDUALS
from traceforge.timeline.layers import Intervals, covered_before, union
from traceforge.units import format_ns

_RANKS = """
SELECT r.rank, r.source_id, r.host, r.has_device, k.residual_ns, COALESCE(SUM(a.wait_ns), 0) AS wait_ns
FROM align.rank AS r
JOIN align.clock AS k USING (run_id, rank)
LEFT JOIN timeline.arrival AS a USING (run_id, rank)
WHERE r.run_id = ? AND k.offset_ns IS NOT NULL
GROUP BY ALL
ORDER BY wait_ns, r.rank
"""
_COLLECTIVES = """
SELECT a.arrival_ns, c.last_arrival_ns, a.end_ns
FROM timeline.arrival AS a
JOIN timeline.collective AS c USING (run_id, collective_id)
WHERE a.run_id = ? AND a.rank = ? AND c.complete
"""
_BLOCKED = """
SELECT start_ns, start_ns + duration_ns AS end_ns FROM timeline.segment
WHERE run_id = ? AND rank = ? AND phase = 'wait'
"""

_MOST_RANKS = 8


@dataclass(frozen=True, slots=True)
class _Work:
    """One rank's pieces and the intervals of each thing; several sets of intervals of a thing add up."""

    rank: int
    pieces: pl.DataFrame
    things: Sequence[Sequence[Intervals]]


def measure_overlap(store: Store, run_id: int) -> list[Measurement]:
    """Slow-down of kernels by a collective that waits, and by one that transfers, on the same device."""
    ranks = store.once(_ranks, run_id).filter("has_device")
    if ranks.is_empty():
        return [refused(0, "No device kernels were recorded.")] * 2
    things = ("a waiting collective", "a transferring collective")
    works = []
    for rank, source_id in _spaced(ranks).select("rank", "source_id").iter_rows():
        waiting, transferring = store.once(_own_collectives, run_id, rank)
        if len(waiting.starts_ns) or len(transferring.starts_ns):
            works.append(_Work(rank, kernels(store, run_id, rank, source_id), [[waiting], [transferring]]))
    if not works:
        return [
            refused(0, f"No kernel runs beside {thing}: no rank has one whose members are all known.")
            for thing in things
        ]
    return _measured(store, run_id, works, things, "kernels")


def measure_host_waiting(store: Store, run_id: int) -> Measurement:
    """Slow-down of host operations by each rank of the same host that is blocked in a wait."""
    ranks = store.once(_ranks, run_id)
    if ranks["host"].null_count() == ranks.height:
        return refused(0, "No host is named, so that it is not known which ranks share one.")
    shared = ranks.filter(pl.col("host").is_not_null() & (pl.len().over("host") > 1))
    if shared.is_empty():
        return refused(0, "No two ranks share a host.")
    of_host = shared.filter(pl.col("host").is_in(shared["host"].unique().sort().head(1).implode()))
    blocked = {rank: _intervals(store, _BLOCKED, run_id, rank) for rank in of_host["rank"]}
    unsure = int(of_host["residual_ns"].max() or 0)  # type: ignore[arg-type]
    waits = np.concatenate([own.ends_ns - own.starts_ns for own in blocked.values()])
    if not len(waits) or np.quantile(waits, thresholds.LONG_WAIT_QUANTILE) < RESOLUTION_RESIDUALS * unsure:
        return refused(0, f"Waits are shorter than three times the uncertainty of the clocks ({format_ns(unsure)}).")
    works = []
    for rank, source_id in _spaced(of_host).select("rank", "source_id").iter_rows():
        others = [own for other, own in blocked.items() if other != rank]
        own = store.once(_own_collectives, run_id, rank)[1]
        works.append(_Work(rank, host_operations(store, run_id, rank, source_id), [others, [own]]))
    things = ("a waiting rank of the same host", "a transferring collective")
    return _measured(store, run_id, works, things, "host operations")[0]


def _measured(
    store: Store, run_id: int, works: Sequence[_Work], things: tuple[str, ...], noun: str
) -> list[Measurement]:
    works = [work for work in works if not work.pieces.is_empty()]
    if not works:
        return [refused(0, f"No {noun} were recorded within iterations.")] * len(things)
    scope = f"{noun} of {len(works)} ranks"
    step = mean_iteration_ns(store, run_id)
    pieces = _joined(works, len(things), thresholds.LONGEST_PAUSE_SHARE * step)
    found = []
    for number, measured in enumerate(slow_downs(pieces, things)):
        if measured.high is None:
            found.append(measured)
            continue
        largest = max(measured.high, -float(measured.low or 0.0), 0.0)
        at_stake = _beside_share(pieces, number, step) * largest / (1 + largest)
        found.append(replace(measured, gain_bound=at_stake, scope=scope))
    return found


def _beside_share(pieces: WorkPieces, thing: int, step_ns: float) -> float:
    """Time beside a thing of the rank that has most of it, over its iterations' time."""
    total = np.bincount(pieces.rank, pieces.beside_ns[:, thing])
    return float(total.max()) / (len(np.unique(pieces.iteration)) * step_ns)


def _joined(works: Sequence[_Work], things: int, longest_extra_ns: float) -> WorkPieces:
    frame = pl.concat([work.pieces.with_columns(rank=pl.lit(work.rank, dtype=pl.Int64)) for work in works])
    beside = np.concatenate([_beside(work, things, _covered) for work in works])
    planned = np.concatenate([_beside(work, things, _planned) for work in works])
    place = frame.select(pl.struct("name", "ordinal").rank("dense")).to_series()
    return WorkPieces(
        iteration=frame["iteration"].to_numpy().astype(np.int64),
        rank=frame["rank"].to_numpy(),
        name=frame["name"].rank("dense").to_numpy().astype(np.int64),
        place=place.to_numpy().astype(np.int64),
        duration_ns=(frame["end_ns"] - frame["start_ns"]).to_numpy().astype(np.float64),
        beside_ns=beside,
        planned_ns=planned,
        longest_extra_ns=longest_extra_ns,
    )


def _beside(work: _Work, things: int, amount: Callable[[Intervals, pl.DataFrame], Amounts]) -> Amounts:
    result = np.zeros((work.pieces.height, things))
    for number, sets in enumerate(work.things):
        for intervals in sets:
            result[:, number] += amount(intervals, work.pieces)
    return result


def _covered(intervals: Intervals, pieces: pl.DataFrame) -> Amounts:
    return _between(intervals, pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy())


def _planned(intervals: Intervals, pieces: pl.DataFrame) -> Amounts:
    start = pieces["start_ns"].to_numpy()
    usual = (pl.col("end_ns") - pl.col("start_ns")).quantile(thresholds.USUAL_WORK_QUANTILE, "lower")
    lasts = usual.over("name", "ordinal").cast(pl.Int64)
    return _between(intervals, start, start + pieces.select(lasts).to_series().to_numpy())


def _between(intervals: Intervals, since_ns: Times, until_ns: Times) -> Amounts:
    lengths = intervals.ends_ns - intervals.starts_ns
    until, since = (covered_before(intervals.starts_ns, lengths, instants) for instants in (until_ns, since_ns))
    return (until - since).astype(np.float64)


def _ranks(store: Store, run_id: int) -> pl.DataFrame:
    return store.query(_RANKS, [run_id])


def _own_collectives(store: Store, run_id: int, rank: int) -> tuple[Intervals, Intervals]:
    """When a collective of the rank waits, and when none waits but one transfers."""
    frame = store.query(_COLLECTIVES, [run_id, rank])
    arrival, last, end = (frame[name].to_numpy() for name in frame.columns)
    return union(arrival, np.minimum(last, end)), union(np.maximum(arrival, last), end)


def _intervals(store: Store, sql: str, run_id: int, rank: int) -> Intervals:
    frame = store.query(sql, [run_id, rank])
    return union(*(frame[name].to_numpy() for name in frame.columns))


def _spaced(ranks: pl.DataFrame) -> pl.DataFrame:
    """At most `_MOST_RANKS`, from those that wait least to those that wait most."""
    chosen: Iterable[int] = np.unique(np.linspace(0, ranks.height - 1, _MOST_RANKS).round().astype(int)).tolist()
    return ranks[list(chosen)]
