"""Each rank's chain of collectives. Reads timeline.*, graph.queued; fills graph.arrival.

A rank waits for a collective where nothing but communication runs until that collective ends; of several such ends
between two arrivals the last counts. A collective that its stream holds back counts as reached when the rank was ready.
Where ranks issue different collectives in an iteration (stages of a pipeline), a collective's position is one more than
the last position of any member before it; iterations in which orders contradict one another are left out and counted.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.graph.schedule import Edges, schedule, topological_order
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import graph as thresholds
from traceforge.timeline.layers import active, union

_ARRIVALS = """
SELECT a.run_id, a.iteration, a.rank, a.collective_id, a.arrival_ns, a.end_ns, w.end_ns AS window_end_ns, w.start_ns,
  b.collective_id AS queued, CASE WHEN b.call_id IS NULL THEN 0 ELSE q.ahead_ns END AS ahead_ns
FROM timeline.arrival AS a
JOIN timeline.window AS w USING (run_id, iteration, rank)
LEFT JOIN graph.queued AS q USING (run_id, rank, call_id)
LEFT JOIN timeline.arrival AS b
  ON b.run_id = q.run_id AND b.rank = q.rank AND b.call_id = q.behind_call_id AND b.iteration = a.iteration
ORDER BY a.run_id, a.iteration, a.rank, a.call_id
"""

_EXPOSED = """
SELECT run_id, rank, start_ns, start_ns + duration_ns AS end_ns
FROM timeline.segment
WHERE phase IN ('transfer', 'wait', 'communication')
ORDER BY run_id, rank, start_ns
"""

_RECORDED = "SELECT run_id, iteration, rank FROM timeline.window ORDER BY run_id, iteration, rank"

# Collectives of this many other streams are considered as what held up one that stands in a queue.
_STREAMS = 8
_KEY = ("run_id", "iteration", "rank")
_COLUMNS = ("position", "collective_id", "arrival_ns", "end_ns", "awaited_position", "queued_position", "is_regular")


def rows(store: Store) -> pl.DataFrame:
    """One row a (rank, collective of an iteration) of the iterations whose order is known."""
    arrivals, exposed = store.query(_ARRIVALS), store.query(_EXPOSED)
    if arrivals.is_empty():
        return arrivals
    nothing, exposed_of = exposed.clear(), exposed.partition_by("run_id", "rank", as_dict=True)
    by_rank = arrivals.group_by("run_id", "rank", maintain_order=True)
    arrivals = pl.concat([_of_rank(own, exposed_of.get(key, nothing)) for key, own in by_rank])
    arrivals = _with_positions(arrivals, store.query(_RECORDED))
    _note_irregular(store, arrivals)
    arrivals = arrivals.filter(pl.col("position").is_not_null())
    for name in ("awaited", "queued"):
        which = arrivals.select(
            *_KEY, pl.col("collective_id").alias(name), pl.col("position").alias(f"{name}_position")
        )
        arrivals = arrivals.join(which, on=[*_KEY, name], how="left", maintain_order="left")
    return _with_common_waits(arrivals).select(*_KEY, *_COLUMNS)


def _of_rank(arrivals: pl.DataFrame, exposed: pl.DataFrame) -> pl.DataFrame:
    """One rank's arrivals, in order of issue, when it was ready; with the collective awaited before the next arrival.

    Args:
        exposed: when nothing but communication ran on the rank: start_ns, end_ns.
    """
    start, end, ahead = (arrivals[name].to_numpy() for name in ("arrival_ns", "end_ns", "ahead_ns"))
    blocks = active(union(exposed["start_ns"].to_numpy(), exposed["end_ns"].to_numpy()), end - 1)
    if ahead.any():
        start = np.minimum(start, np.maximum(start - ahead, _passed(arrivals, blocks)))
    ready = arrivals.with_columns(arrival_ns=pl.Series(start)).with_columns(
        arrival_ns=pl.max_horizontal(pl.col("arrival_ns").cum_max().over("iteration"), "start_ns")
    )
    return ready.with_columns(awaited=_awaited(ready, blocks))


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
    """The collective that a rank awaits after each arrival; null where it awaits none before its next arrival.

    Args:
        blocks: whether nothing but communication runs when a collective ends.
    """
    arrival, end = frame["arrival_ns"].to_numpy(), frame["end_ns"].to_numpy()
    row = np.arange(len(arrival))
    slot = np.concatenate(
        [
            first + np.searchsorted(arrival[first:last], end[first:last], side="left") - 1
            for first, last in pairwise(_edges(frame["iteration"].to_numpy()))
        ]
    )
    # A collective that overtook another one (on another stream) has ended before its place in the chain is reached: it
    # cannot be awaited from there.
    is_reached = slot >= row
    candidates = row[blocks & (end <= frame["window_end_ns"].to_numpy()) & is_reached]
    by_end = candidates[np.argsort(end[candidates], kind="stable")]
    awaited = np.full(len(arrival), -1, dtype=np.int64)
    awaited[slot[by_end]] = by_end  # of several collectives the last end counts
    return frame["collective_id"].gather(pl.Series(awaited).replace(-1, None))


def _with_positions(arrivals: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """The arrivals with `is_regular` and positions that members agree on; these are null where orders contradict.

    An iteration is regular if all ranks issue equally many collectives and agree on each one's place.
    """
    of_iteration = ["run_id", "iteration"]
    arrivals = arrivals.with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over(_KEY))
    lengths = recorded.join(arrivals.group_by(_KEY).len(), on=_KEY, how="left").fill_null(0)
    places = arrivals.group_by(*of_iteration, "collective_id").agg(pl.col("position").n_unique())
    regular = lengths.group_by(of_iteration).agg(is_regular=pl.col("len").n_unique() == 1)
    regular = regular.join(places.filter(pl.col("position") > 1), on=of_iteration, how="anti").filter("is_regular")
    arrivals = arrivals.join(regular, on=of_iteration, how="left", maintain_order="left").with_columns(
        pl.col("is_regular").fill_null(value=False),
        is_split=pl.col("iteration").n_unique().over("run_id", "collective_id") > 1,
    )
    found: list[tuple[object, ...]] = []
    irregular = arrivals.filter(~pl.col("is_regular"))
    for key, frame in irregular.group_by(of_iteration, maintain_order=True):
        chains = [own["collective_id"].to_list() for _, own in frame.group_by("rank", maintain_order=True)]
        positions = None if frame["is_split"].any() else common_positions(chains)
        found += [(*key, *one) for one in (positions or {}).items()]
    names = (*of_iteration, "collective_id", "agreed")
    agreed = pl.DataFrame(found, schema={n: arrivals.schema.get(n, pl.Int32) for n in names}, orient="row")
    joined = arrivals.join(agreed, on=names[:3], how="left", maintain_order="left")
    return joined.with_columns(position=pl.when("is_regular").then("position").otherwise("agreed"))


def common_positions(chains: Sequence[Sequence[int]]) -> dict[int, int] | None:
    """Position of each collective, above those of all that any member issued before it; None where orders contradict.

    Args:
        chains: collectives of each rank in order of issue.
    """
    collectives, number = np.unique(
        np.concatenate([np.array(chain, np.int64) for chain in chains]), return_inverse=True
    )
    follows = np.concatenate([np.arange(len(chain)) > 0 for chain in chains])[1:]
    begin, end = number[:-1][follows], number[1:][follows]
    order, circular = topological_order(len(collectives), begin, end)
    if circular:
        return None
    rank = np.argsort(order)
    edges = Edges(rank[begin], rank[end], np.zeros(len(begin), np.int64))
    positions = schedule(np.ones(len(order), np.int64), np.zeros(len(order), np.int64), edges).start_ns
    return dict(zip(collectives[order].tolist(), positions.tolist(), strict=True))


def _note_irregular(store: Store, arrivals: pl.DataFrame) -> None:
    left_out = {
        "iteration_irregular": (
            ~pl.col("is_regular"),
            "iterations whose ranks issue different collectives were left out of the ledger and replay",
        ),
        "iteration_order_unknown": (
            pl.col("position").is_null(),
            "iterations whose ranks issue collectives in contradicting orders were left out of the graph",
        ),
    }
    for code, (condition, detail) in left_out.items():
        iterations = arrivals.filter(condition).select("run_id", "iteration").unique().sort("iteration")
        for (run_id,), frame in iterations.group_by("run_id"):
            issue = Issue(code, "warning", frame.height, f"iteration {frame['iteration'][0]}", detail)
            store.append("meta.issue", issue_rows(int(str(run_id)), None, "graph", [issue]))


def _with_common_waits(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Give ranks that came too late to be blocked the wait that most others have at the same place.

    The program is the same on all ranks; a late rank finds the collective over, but would have waited had it been
    early. The wait is set where it costs nothing: at the collective's end, if that precedes the next arrival.
    """
    place = ["run_id", "calls", "position"]
    arrivals = arrivals.with_columns(
        calls=pl.len().over(_KEY),
        until_ns=pl.col("arrival_ns").shift(-1).over(_KEY).fill_null(pl.col("window_end_ns")),
    )
    common = (
        arrivals.filter("is_regular")
        .group_by(*place, "awaited_position")
        .len()
        .with_columns(share=pl.col("len") / pl.col("len").sum().over(place))
        .filter((pl.col("share") >= thresholds.LEAST_SHARE_OF_COMMON_WAIT) & pl.col("awaited_position").is_not_null())
        .select(*place, common="awaited_position")
        .unique(place, keep="none")  # where two halves wait for different ones, nobody waits for none
    )
    ends = arrivals.select(*_KEY, common="position", common_end_ns="end_ns")
    joined = arrivals.join(common, on=place, how="left", maintain_order="left").join(
        ends, on=[*_KEY, "common"], how="left", maintain_order="left"
    )
    in_time = pl.col("is_regular") & (pl.col("common_end_ns") <= pl.col("until_ns"))
    return joined.with_columns(awaited_position=pl.coalesce("awaited_position", pl.when(in_time).then("common")))


def _edges(values: NDArray[np.int64]) -> list[int]:
    """Where stretches of equal values begin, and the end of the last one."""
    return [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
