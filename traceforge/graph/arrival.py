"""Each rank's chain of collectives. Reads timeline.*, graph.queued; fills graph.arrival.

A rank waits for a collective where nothing but communication runs until that collective ends; of several such ends
between two arrivals the last counts. A collective that its stream holds back counts as reached when the rank was ready.
Where ranks issue different collectives in an iteration (stages of a pipeline), positions are those of a common order
(`arrival_order`); iterations in which orders contradict one another are left out and counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.graph.arrival_order import CROSSED, in_usual_order, with_positions
from traceforge.graph.binding_meeting import ARRIVALS, USUAL
from traceforge.graph.common_waits import KEY, common_waits, rare_waits, with_common_waits, without_chance_waits
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import graph as thresholds
from traceforge.timeline.layers import Intervals, active, union

# Iterations are taken some at a time, at most so many arrivals, or one iteration: frames of all would not fit.
_MOST_ARRIVALS = 200_000

_BLOCKS = """
SELECT a.run_id, a.iteration, COUNT(*) AS arrivals
FROM timeline.arrival AS a
JOIN timeline.window AS w USING (run_id, iteration, rank)
GROUP BY ALL
ORDER BY ALL
"""

# Iterations of which a part is missing: members of a collective, partners of calls, or all that ties a rank to others.
_LACKING = """
SELECT DISTINCT run_id, iteration FROM timeline.collective WHERE NOT complete AND iteration IS NOT NULL
UNION
SELECT DISTINCT run_id, iteration FROM timeline.window ANTI JOIN timeline.arrival USING (run_id, iteration, rank)
UNION
SELECT DISTINCT c.run_id, s.iteration
FROM (
  SELECT run_id, rank, call_id FROM align.unmatched
  UNION ALL
  SELECT run_id, rank, call_id FROM align.unmatched_endpoint
) AS u
JOIN align.call AS c USING (run_id, rank, call_id)
ASOF JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
WHERE c.raw_issue_ns < s.raw_end_ns
"""

_EXPOSED = """
SELECT rank, start_ns, start_ns + duration_ns AS end_ns
FROM timeline.segment
WHERE run_id = $1 AND phase IN ('transfer', 'wait', 'communication') AND start_ns < $3 AND start_ns + duration_ns >= $2
ORDER BY rank, start_ns
"""

_RECORDED = """
SELECT run_id, iteration, rank FROM timeline.window
WHERE run_id = $1 AND iteration BETWEEN $2 AND $3
ORDER BY iteration, rank
"""

# Collectives of this many other streams are considered as what held up one that stands in a queue.
_STREAMS = 8

# How many positions from its own one on a collective may await, or stand behind.
_REACH = {"awaited_position": 1, "queued_position": 0, "behind_position": 0}

_COLUMNS = (
    "position",
    "collective_id",
    "arrival_ns",
    "end_ns",
    "awaited_position",
    "queued_position",
    "behind_position",
    "is_regular",
    "also_awaited",
)


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """Rows of some iterations at a time, one a (rank, collective of an iteration), where their order is known."""
    usual = store.query(USUAL, [thresholds.MOST_OUTLASTED_SHARE])
    lacking = store.query(_LACKING).with_columns(is_lacking=True)
    found = []
    irregular = {code: list[pl.DataFrame]() for code in _LEFT_OUT}
    for block in _blocks(store):
        arrivals = _of_block(store, block, usual, lacking)
        for code, frames in irregular.items():
            frames.append(arrivals.filter(_LEFT_OUT[code].which).select("run_id", "iteration").unique())
        found.append(_chained(arrivals))
    _note_irregular(store, irregular)
    rare = rare_waits(found)
    found = [without_chance_waits(own, rare) for own in found]
    common = common_waits(found)
    for own in found:
        yield with_common_waits(own, common).select(*KEY, *_COLUMNS)


def _blocks(store: Store) -> Iterator[tuple[int, int, int]]:
    """Run, first and last iteration of each block."""
    own, arrivals = list[tuple[int, int]](), 0
    for run_id, iteration, count in store.rows(_BLOCKS):
        if own and (arrivals + count > _MOST_ARRIVALS or run_id != own[0][0]):
            yield *own[0], own[-1][1]
            own, arrivals = [], 0
        own.append((run_id, iteration))
        arrivals += count
    if own:
        yield *own[0], own[-1][1]


def _of_block(store: Store, block: tuple[int, int, int], usual: pl.DataFrame, lacking: pl.DataFrame) -> pl.DataFrame:
    """All arrivals of some iterations, with places in the common order."""
    group = ["run_id", "communicator_id", "size_bytes"]
    arrivals = store.query(ARRIVALS, [*block, thresholds.MOST_OUTLASTED_SHARE])
    arrivals = arrivals.join(usual, on=group, how="left", nulls_equal=True, maintain_order="left")
    likely_ns = pl.min_horizontal("first_end_ns", pl.col("last_arrival_ns") + pl.col("usual_ns"))
    arrivals = arrivals.with_columns(likely_end_ns=likely_ns).drop(*group[1:], "usual_ns", "first_end_ns")
    ends = arrivals["end_ns"]
    first_ns = int(str(ends.min() or 0)) - thresholds.EARLIEST_START_NS
    exposed, recorded = store.query(_EXPOSED, [block[0], first_ns, ends.max()]), store.query(_RECORDED, block)
    placed = with_positions(_with_awaited(arrivals, exposed), recorded)
    for program in ("role", "rank"):
        crossed = placed.filter(CROSSED).select("run_id", "iteration").unique()
        if crossed.is_empty():
            break
        met = in_usual_order(arrivals.join(crossed, on=crossed.columns, how="semi", maintain_order="left"), program)
        met = with_positions(_with_awaited(met, exposed), recorded.join(crossed, on=crossed.columns, how="semi"))
        placed = pl.concat([placed.join(crossed, on=crossed.columns, how="anti"), met])
    arrivals = placed.sort(*KEY, "position", "call_id", maintain_order=True)
    arrivals = arrivals.join(lacking, on=["run_id", "iteration"], how="left", maintain_order="left")
    return arrivals.with_columns(
        is_regular=pl.col("in_step") | (pl.col("position").is_not_null() & pl.col("is_lacking").is_null()),
        end_ns=pl.when("is_binding").then("end_ns").otherwise("likely_end_ns"),
    )


def _chained(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Those with a position, which shows what they await and stand behind; only what is needed later."""
    arrivals = _with_other_meetings(arrivals.filter(pl.col("position").is_not_null()))
    for name in ("awaited", "queued", "behind"):
        which = arrivals.select(*KEY, pl.col("collective_id").alias(name), pl.col("position").alias(f"{name}_position"))
        arrivals = arrivals.join(which, on=[*KEY, name], how="left", maintain_order="left")
    # A rank's threads may take calls in another order than that of all ranks: what comes later holds nothing up.
    is_cut = pl.col("awaited_position") > pl.col("position")
    arrivals = arrivals.with_columns(
        also_awaited=pl.when(~is_cut.fill_null(value=False)).then("also_awaited"),
        **{name: pl.when(pl.col(name) < pl.col("position") + reach).then(name) for name, reach in _REACH.items()},
    )
    return arrivals.with_columns(
        calls=pl.len().over(KEY),
        until_ns=pl.col("arrival_ns").shift(-1).over(KEY).fill_null(pl.col("window_end_ns")),
    ).select(*KEY, *_COLUMNS, "in_step", "calls", "until_ns", "awaited_ns")


def _with_awaited(arrivals: pl.DataFrame, exposed: pl.DataFrame) -> pl.DataFrame:
    """The arrivals when each rank was ready, in order of issue; with the collective awaited before the next arrival.

    Args:
        exposed: when nothing but communication ran on each rank: rank, start_ns, end_ns.
    """
    start, end, ahead, rank = (arrivals[name].to_numpy() for name in ("arrival_ns", "end_ns", "ahead_ns", "rank"))
    of_exposed, since, until = (exposed[name].to_numpy() for name in ("rank", "start_ns", "end_ns"))
    blocks, ready, lasted = np.zeros(len(start), dtype=np.bool_), start.copy(), np.zeros(len(start), dtype=np.int64)
    for first, last in pairwise(_edges(rank)):
        some = slice(*np.searchsorted(of_exposed, [rank[first], rank[first] + 1]))
        alone = union(since[some], until[some])
        blocks[first:last] = _blocked(alone, end[first:last])
        lasted[first:last] = _lasted(alone, end[first:last])
        if ahead[first:last].any():
            passed = _passed(arrivals[first:last], blocks[first:last])
            earlier = np.maximum(start[first:last] - ahead[first:last], passed)
            ready[first:last] = np.minimum(start[first:last], earlier)
        own = slice(first, last)
        ready[own] = _after_rounding(ready[own], end[own], np.sort(end[own][blocks[own]]))
    chains = arrivals.with_columns(arrival_ns=pl.Series(ready)).with_columns(
        arrival_ns=pl.max_horizontal(pl.col("arrival_ns").cum_max().over("rank", "iteration"), "start_ns")
    )
    rows_awaited = _awaited(chains, blocks)
    awaited_ns = pl.Series(lasted).gather(rows_awaited)
    return chains.with_columns(awaited=chains["collective_id"].gather(rows_awaited), awaited_ns=awaited_ns)


def _after_rounding(
    ready_ns: NDArray[np.int64], end_ns: NDArray[np.int64], awaited_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Arrivals, none so shortly before an end that was awaited that it is rounding; shapes (N,), (N,) and (ends,)."""
    place = np.searchsorted(awaited_ns, ready_ns + thresholds.EARLIEST_START_NS, side="right") - 1
    if not len(awaited_ns):
        return ready_ns
    near = awaited_ns[np.maximum(place, 0)]
    is_rounded = (place >= 0) & (near > ready_ns) & (near < end_ns)
    return np.where(is_rounded, near, ready_ns)


def _blocked(exposed: Intervals, end_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether nothing but communication ran when collectives ended, or until so shortly before that it is rounding."""
    return active(exposed, end_ns - 1) | active(exposed, end_ns - 1 - thresholds.EARLIEST_START_NS)


def _lasted(exposed: Intervals, end_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """For how long nothing but communication had run when collectives ended, ns; 0 where other work ran."""
    if not len(exposed.starts_ns):
        return np.zeros(len(end_ns), dtype=np.int64)
    place = np.searchsorted(exposed.starts_ns, end_ns - 1, side="right") - 1
    result: NDArray[np.int64] = np.where(place >= 0, end_ns - exposed.starts_ns[np.maximum(place, 0)], 0)
    return result


def _passed(frame: pl.DataFrame, blocks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Latest end of a collective of another stream that the rank awaited before each of its own; 0 where there is none.

    A collective held back by its own stream is issued no earlier for that.
    """
    names = ("iteration", "collective_id", "queued", "arrival_ns", "end_ns")
    passed = np.zeros(frame.height, dtype=np.int64)
    head: dict[int, int] = {}
    latest: dict[int, int] = {}
    reached = None
    for n, (iteration, collective, behind, start, end) in enumerate(frame.select(names).iter_rows()):
        if iteration != reached:
            reached, head, latest = iteration, {}, {}
        own = head[collective] = head.get(behind, collective)
        if behind is not None:
            passed[n] = max((until for other, until in latest.items() if other != own and until <= start), default=0)
        if blocks[n]:
            latest[own] = end
            if len(latest) > _STREAMS:
                del latest[next(iter(latest))]
    return passed


def _awaited(frame: pl.DataFrame, blocks: NDArray[np.bool_]) -> pl.Series:
    """Row of the collective that ranks await after each arrival; null where they await none before their next arrival.

    Args:
        blocks: whether nothing but communication runs when a collective ends.
    """
    arrival, end = frame["arrival_ns"].to_numpy(), frame["end_ns"].to_numpy()
    row = np.arange(len(arrival))
    slot = np.concatenate(
        [
            first + np.searchsorted(arrival[first:last], end[first:last], side="left") - 1
            for first, last in pairwise(_edges(frame["rank"].to_numpy(), frame["iteration"].to_numpy()))
        ]
    )
    # A collective that overtook another one (on another stream) has ended before its place in the chain is reached: it
    # cannot be awaited from there.
    is_reached = slot >= row
    candidates = row[blocks & (end <= frame["window_end_ns"].to_numpy()) & is_reached]
    by_end = candidates[np.argsort(end[candidates], kind="stable")]
    awaited = np.full(len(arrival), -1, dtype=np.int64)
    awaited[slot[by_end]] = by_end  # of several collectives the last end counts
    return pl.Series(awaited).replace(-1, None)


def _with_other_meetings(arrivals: pl.DataFrame) -> pl.DataFrame:
    """With `also_awaited`: where other meetings of the awaited call are; the binding one is awaited first."""
    several = arrivals.filter(pl.col("meetings") > 1)
    call = [*KEY, "call_id"]
    last = several.filter("is_binding").select(*call, binding="collective_id")
    others = several.filter(~pl.col("is_binding")).group_by(call).agg(also_awaited=pl.col("position").sort())
    of_call = several.select(*call, awaited="collective_id").join(last, on=call).join(others, on=call).drop("call_id")
    joined = arrivals.join(of_call, on=[*KEY, "awaited"], how="left", maintain_order="left")
    return joined.with_columns(awaited=pl.coalesce("binding", "awaited"))


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """Arrivals whose iterations are left out of something, and what of."""

    which: pl.Expr
    detail: str


_LEFT_OUT = MappingProxyType(
    {
        "iteration_irregular": _LeftOut(
            ~pl.col("is_regular"),
            "iterations that lack members of a collective or partners of calls were left out of the ledger and replay",
        ),
        "iteration_order_unknown": _LeftOut(
            pl.col("position").is_null(),
            "iterations whose ranks issue collectives in contradicting orders were left out of the graph",
        ),
    }
)


def _note_irregular(store: Store, irregular: Mapping[str, Sequence[pl.DataFrame]]) -> None:
    for code, frames in irregular.items():
        if not frames:
            continue
        for (run_id,), frame in pl.concat(frames).sort("run_id", "iteration").group_by("run_id", maintain_order=True):
            detail = _LEFT_OUT[code].detail
            issue = Issue(code, "warning", frame.height, f"iteration {frame['iteration'][0]}", detail)
            store.append("meta.issue", issue_rows(int(str(run_id)), None, "graph", [issue]))


def _edges(*values: NDArray[np.int64]) -> list[int]:
    """Where stretches of equal values begin, and the end of the last one."""
    if not len(values[0]):
        return [0]
    differs = np.logical_or.reduce([np.diff(one) != 0 for one in values])
    return [0, *(np.flatnonzero(differs) + 1).tolist(), len(values[0])]
