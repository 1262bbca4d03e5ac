"""Why a device had nothing to do. Reads timeline.segment, raw events and align.*; fills timeline.gap.

A gap is a stretch of an iteration in which no kernel and no copy runs on any stream of the device. Its one cause is
what held the training thread for most of it (`gap_cause` in `vocabulary.toml`, or a copy call). Otherwise what ends the
gap decides: work launched after the gap began came late from the host; work launched before was held up on the device
(its streams and events). Where the trace does not say, or nothing ends the gap, it is unknown.
"""

from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np
import polars as pl

from traceforge.align.rank_batches import Parts, rank_batches
from traceforge.store.database import Store
from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.gap_events import DeviceCalls, GapEvents, edges_of, read_device
from traceforge.timeline.layers import Times, covered_before, union
from traceforge.vocabulary import vocabulary

_IDLE = """
SELECT s.rank, s.iteration, s.activity, s.start_ns, s.duration_ns
FROM timeline.segment AS s
JOIN align.rank AS r USING (run_id, rank)
WHERE s.run_id = $1 AND s.rank BETWEEN $2 AND $3 AND s.phase IN ('input', 'runtime', 'idle') AND r.has_device
ORDER BY s.rank, s.start_ns
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "iteration": pl.Int32,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "cause": pl.String,
    "cause_ns": pl.Int64,
    "launch_lead_ns": pl.Int64,
    "call": pl.String,
    "call_ns": pl.Int64,
}


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a gap of each rank with a device, some ranks at a time."""
    for batch in rank_batches(store):
        idle = batch.by_rank(store, _IDLE)
        if idle.frame.is_empty():
            continue
        device = read_device(store, batch, idle)
        found = _with_longest_call(_gaps(idle, device), device)
        yield found.with_columns(run_id=pl.lit(batch.run_id)).select(
            pl.col(name).cast(kind) for name, kind in _SCHEMA.items()
        )


def _gaps(idle: Parts, device: GapEvents) -> pl.DataFrame:
    """Gaps of some ranks with their causes, by rank and time.

    Args:
        idle: by rank, iteration, activity, start_ns and duration_ns of the stretches without device work, in order.
    """
    other = [pl.col(name) != pl.col(name).shift(1) for name in ("rank", "iteration")]
    begins = pl.any_horizontal(pl.col("start_ns") != (pl.col("start_ns") + pl.col("duration_ns")).shift(1), *other)
    copying = [_inside(device.calls[rank], idle.of(rank)) for rank in idle.places]
    pieces = idle.frame.with_columns(gap=begins.fill_null(value=True).cum_sum(), copy_ns=np.concatenate(copying))
    held = _held_amounts()
    found = pieces.group_by("gap", maintain_order=True).agg(
        pl.first("rank", "iteration", "start_ns"), pl.sum("duration_ns"), **held
    )
    longest = pl.max_horizontal(list(held))
    particular = pl.coalesce(pl.when(pl.col(name) == longest).then(pl.lit(name)) for name in held)
    is_held = longest >= thresholds.LEAST_HELD_SHARE * pl.col("duration_ns")
    return found.with_columns(launch_lead_ns=_launch_leads(found, device)).select(
        "rank", "iteration", "start_ns", "duration_ns", "launch_lead_ns",
        cause=pl.when(is_held)
        .then(particular)
        .when(pl.col("launch_lead_ns").is_null())
        .then(pl.lit("unknown"))
        .when(pl.col("launch_lead_ns") <= 0)
        .then(pl.lit("late_launch"))
        .otherwise(pl.lit("device_queue")),
        cause_ns=pl.when(is_held).then(longest).otherwise("duration_ns"),
    )  # fmt: skip


def _with_longest_call(found: pl.DataFrame, device: GapEvents) -> pl.DataFrame:
    """The same gaps with the call that fills most of each, by name, and how long; null where there is none."""
    starts, ends = edges_of(found)
    parts = [_meetings(device.calls[rank], starts[own], ends[own], own.start) for rank, own in _slices(found["rank"])]
    gap, row, inside = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    spent = pl.DataFrame({"gap": gap, "call": device.names.gather(row), "call_ns": inside})
    # Threads may be in one call at once: no call fills more than the gap.
    longest = (
        spent.group_by("gap", "call")
        .agg(pl.sum("call_ns"))
        .sort("gap", "call_ns", "call", descending=[False, True, False])
        .unique("gap", keep="first", maintain_order=True)
    )
    numbered = found.with_row_index("gap").with_columns(pl.col("gap").cast(pl.Int64))
    joined = numbered.join(longest, on="gap", how="left", maintain_order="left").drop("gap")
    return joined.with_columns(pl.min_horizontal("call_ns", pl.col("duration_ns")).alias("call_ns")).with_columns(
        call_ns=pl.when(pl.col("call").is_not_null()).then("call_ns")
    )


def _meetings(calls: DeviceCalls, starts_ns: Times, ends_ns: Times, first_gap: int) -> tuple[Times, Times, Times]:
    """Gap, call and time inside of each gap of a rank and each call that meet; gaps are apart, in order of time."""
    first, last = np.searchsorted(ends_ns, calls.starts_ns, side="right"), np.searchsorted(starts_ns, calls.ends_ns)
    met = np.maximum(last - first, 0)
    call = np.repeat(np.arange(len(met)), met)
    gap = first[call] + np.arange(len(call)) - np.repeat(np.cumsum(met) - met, met)
    inside = np.minimum(calls.ends_ns[call], ends_ns[gap]) - np.maximum(calls.starts_ns[call], starts_ns[gap])
    return first_gap + gap, calls.row[call], inside


def _slices(ranks: pl.Series) -> list[tuple[int, slice]]:
    """Each rank and its rows, which are together."""
    numbers, first = np.unique(ranks.to_numpy(), return_index=True)
    edges = pairwise(np.append(first, len(ranks)).tolist())
    return [(rank, slice(*edge)) for rank, edge in zip(numbers.tolist(), edges, strict=True)]


def _held_amounts() -> dict[str, pl.Expr]:
    """How long each of what may hold the training thread did, ns, by name of the gap; by precedence."""
    activity, duration, copying = pl.col("activity"), pl.col("duration_ns"), pl.col("copy_ns")
    firm: dict[str, list[str]] = {}
    yielding: dict[str, list[str]] = {}
    for one in vocabulary().activities:
        if one.gap_cause is not None:
            (yielding if one.yields_to_copy else firm).setdefault(one.gap_cause, []).append(one.name)
    # A copy call counts as a copy, whatever its class.
    copied = copying.filter(~activity.is_in(list(chain(*firm.values())))).sum()
    return {
        **{cause: duration.filter(activity.is_in(names)).sum() for cause, names in firm.items()},
        "copy_wait": copied,
        **{cause: (duration - copying).filter(activity.is_in(names)).sum() for cause, names in yielding.items()},
    }


def _inside(calls: DeviceCalls, pieces: pl.DataFrame) -> Times:
    """How long the host is inside a copy call during each piece, ns."""
    copying = union(calls.starts_ns[calls.is_copy], calls.ends_ns[calls.is_copy])
    lasting = copying.ends_ns - copying.starts_ns
    since, until = (covered_before(copying.starts_ns, lasting, instants) for instants in edges_of(pieces))
    result: Times = until - since
    return result


def _launch_leads(found: pl.DataFrame, device: GapEvents) -> pl.Series:
    """How long before each gap began the work that ends it was launched, ns; null where unknown."""
    starts, ends = edges_of(found)
    lead, is_known = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.bool_)
    for rank, own in _slices(found["rank"]):
        work = device.work[rank]
        place = np.searchsorted(work.starts_ns, ends[own])
        inside = place < len(work.starts_ns)
        place[~inside] = 0
        if inside.any():
            lead[own] = starts[own] - work.launches_ns[place]
            is_known[own] = inside & work.is_launched[place] & (work.starts_ns[place] == ends[own])
    return pl.select(pl.when(pl.Series(is_known)).then(pl.Series(lead))).to_series()
