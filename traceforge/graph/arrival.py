"""The joints of each rank's chain. Reads timeline.*, graph.queued; fills graph.arrival.

A rank waits for a collective where nothing but communication runs until that collective ends. Of several such ends
between two arrivals the last counts. A collective that its stream holds back has been reached when the rank was ready.
Where ranks issue different collectives in an iteration (stages of a pipeline), a collective's position is one more than
the last position of any member before it; where orders contradict one another the iteration is left out and counted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.timeline.layers import Intervals, active, union

_ARRIVALS = """
SELECT a.run_id, a.iteration, a.rank, a.collective_id, a.arrival_ns, a.end_ns, w.end_ns AS window_end_ns, w.start_ns,
  b.collective_id AS behind_collective_id, CASE WHEN b.call_id IS NULL THEN 0 ELSE q.ahead_ns END AS ahead_ns
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
WHERE phase IN ('transfer', 'wait')
ORDER BY run_id, rank, start_ns
"""

_RECORDED = "SELECT run_id, iteration, rank FROM timeline.window ORDER BY run_id, iteration, rank"

# So many collectives of other streams, the last ones, may hold up one that stands in a queue.
_STREAMS = 8
_KEY = ("run_id", "iteration", "rank")
_SCHEMA = {
    "run_id": pl.Int32,
    "iteration": pl.Int32,
    "rank": pl.Int32,
    "position": pl.Int32,
    "collective_id": pl.Int64,
    "arrival_ns": pl.Int64,
    "end_ns": pl.Int64,
    "awaited_position": pl.Int32,
    "queued_position": pl.Int32,
    "is_regular": pl.Boolean,
}


def rows(store: Store) -> pl.DataFrame:
    """One row a (rank, collective of an iteration) of the iterations whose order is known."""
    arrivals = store.query(_ARRIVALS).with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over(_KEY))
    exposed = store.query(_EXPOSED)
    arrivals = _by_rank(arrivals, exposed, _with_ready_times)
    regular = _regular_iterations(arrivals, store.query(_RECORDED))
    arrivals = arrivals.join(
        regular.with_columns(is_regular=True), on=["run_id", "iteration"], how="left", maintain_order="left"
    ).with_columns(pl.col("is_regular").fill_null(value=False))
    arrivals = _with_positions(arrivals)
    _note_irregular(store, arrivals)
    arrivals = arrivals.filter(pl.col("position").is_not_null())
    if arrivals.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    joints = _with_common_waits(_by_rank(_with_queue(arrivals), exposed, _with_awaited))
    return joints.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def _by_rank(
    arrivals: pl.DataFrame, exposed: pl.DataFrame, told: Callable[[pl.DataFrame, Intervals], pl.DataFrame]
) -> pl.DataFrame:
    """Arrivals with what is told of each rank's own, given when nothing but communication ran on it."""
    parts = [
        told(frame, _exposed_of(exposed, int(str(run_id)), int(str(rank))))
        for (run_id, rank), frame in arrivals.group_by("run_id", "rank", maintain_order=True)
    ]
    return pl.concat(parts) if parts else arrivals


def _with_ready_times(frame: pl.DataFrame, exposed: Intervals) -> pl.DataFrame:
    """One rank's arrivals at which it was ready, in the order of issue."""
    start, end, ahead = (frame[name].to_numpy() for name in ("arrival_ns", "end_ns", "ahead_ns"))
    ready = start - ahead
    if ahead.any():
        ready = np.minimum(start, np.maximum(ready, _passed(frame, active(exposed, end - 1))))
    return frame.with_columns(arrival_ns=pl.Series(ready)).with_columns(
        arrival_ns=pl.max_horizontal(pl.col("arrival_ns").cum_max().over("iteration"), "start_ns")
    )


def _passed(frame: pl.DataFrame, blocks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Latest end of a collective of another stream that the rank awaited before each of its own; 0 where there is none.

    A collective held back by its own stream is issued no earlier for that.
    """
    names = ("iteration", "collective_id", "behind_collective_id", "arrival_ns", "end_ns")
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


def _with_queue(arrivals: pl.DataFrame) -> pl.DataFrame:
    """Arrivals with the position of the collective that each one's stream has to end before."""
    behind = arrivals.select(*_KEY, behind_collective_id="collective_id", queued_position="position")
    return arrivals.join(behind, on=[*_KEY, "behind_collective_id"], how="left", maintain_order="left")


def _with_awaited(frame: pl.DataFrame, exposed: Intervals) -> pl.DataFrame:
    return frame.with_columns(awaited_position=_awaited(frame, exposed))


def _regular_iterations(arrivals: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """Iterations in which all ranks issue equally many collectives and agree on each one's position."""
    lengths = recorded.join(arrivals.group_by(_KEY).len(), on=_KEY, how="left").fill_null(0)
    same_length = lengths.group_by("run_id", "iteration").agg(pl.col("len").n_unique() == 1)
    same_place = (
        arrivals.group_by("run_id", "iteration", "collective_id")
        .agg(pl.col("position").n_unique() == 1)
        .group_by("run_id", "iteration")
        .agg(pl.col("position").all())
    )
    regular = same_length.filter("len").join(same_place.filter("position"), on=["run_id", "iteration"], how="semi")
    return regular.select("run_id", "iteration")


def _with_positions(arrivals: pl.DataFrame) -> pl.DataFrame:
    """The arrivals with positions that members agree on; null where there are none."""
    irregular = arrivals.filter(~pl.col("is_regular"))
    if irregular.is_empty():
        return arrivals
    split = arrivals.group_by("run_id", "collective_id").agg(apart=pl.col("iteration").n_unique() > 1)
    irregular = irregular.join(split, on=["run_id", "collective_id"], how="left", maintain_order="left")
    found = []
    for (run_id, iteration), frame in irregular.group_by("run_id", "iteration", maintain_order=True):
        chains = [own["collective_id"].to_list() for _, own in frame.group_by("rank", maintain_order=True)]
        positions = None if frame["apart"].any() else common_positions(chains)
        found += [(run_id, iteration, collective, position) for collective, position in (positions or {}).items()]
    names = ("run_id", "iteration", "collective_id", "agreed")
    agreed = pl.DataFrame(found, schema={n: arrivals.schema.get(n, pl.Int32) for n in names}, orient="row")
    joined = arrivals.join(agreed, on=["run_id", "iteration", "collective_id"], how="left", maintain_order="left")
    return joined.with_columns(position=pl.when("is_regular").then("position").otherwise("agreed")).drop("agreed")


def common_positions(chains: Sequence[Sequence[int]]) -> dict[int, int] | None:
    """Position of each collective, above those of all that any member issued before it; None where orders contradict.

    Args:
        chains: collectives of each rank in order of issue.
    """
    members = Counter(collective for chain in chains for collective in chain)
    if any(len(set(chain)) < len(chain) for chain in chains):
        return None
    places, positions = [0] * len(chains), [0] * len(chains)
    at_head: dict[int, list[int]] = defaultdict(list)
    for rank, chain in enumerate(chains):
        if chain:
            at_head[chain[0]].append(rank)
    ready = [collective for collective, ranks in at_head.items() if len(ranks) == members[collective]]
    found: dict[int, int] = {}
    while ready:
        collective = ready.pop()
        ranks = at_head.pop(collective)
        found[collective] = max(positions[rank] for rank in ranks)
        for rank in ranks:
            places[rank], positions[rank] = places[rank] + 1, found[collective] + 1
            if places[rank] < len(chains[rank]):
                following = chains[rank][places[rank]]
                at_head[following].append(rank)
                if len(at_head[following]) == members[following]:
                    ready.append(following)
    return found if len(found) == len(members) else None


def _note_irregular(store: Store, arrivals: pl.DataFrame) -> None:
    told = {
        "iteration_irregular": (
            ~pl.col("is_regular"),
            "iterations whose ranks issue different collectives were left out of the ledger and replay",
        ),
        "iteration_order_unknown": (
            pl.col("position").is_null(),
            "iterations whose ranks issue collectives in contradicting orders were left out of the graph",
        ),
    }
    for code, (condition, detail) in told.items():
        left_out = arrivals.filter(condition).select("run_id", "iteration").unique().sort("iteration")
        for (run_id,), frame in left_out.group_by("run_id"):
            issue = Issue(code, "warning", frame.height, f"iteration {frame['iteration'][0]}", detail)
            store.append("meta.issue", issue_rows(int(str(run_id)), None, "graph", [issue]))


def _exposed_of(exposed: pl.DataFrame, run_id: int, rank: int) -> Intervals:
    own = exposed.filter((pl.col("run_id") == run_id) & (pl.col("rank") == rank))
    return union(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())


def _awaited(frame: pl.DataFrame, exposed: Intervals) -> pl.Series:
    """Awaited position of each arrival of one rank; null where the rank awaits nothing before its next arrival."""
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
    candidates = row[active(exposed, end - 1) & (end <= frame["window_end_ns"].to_numpy()) & is_reached]
    by_end = candidates[np.argsort(end[candidates], kind="stable")]
    # Positions may have holes, so rows are looked up here and positions only at the end.
    awaited = np.full(len(arrival), -1, dtype=np.int64)
    awaited[slot[by_end]] = by_end  # of several collectives the last end counts
    return frame["position"].gather(pl.Series(awaited).replace(-1, None))


def _with_common_waits(joints: pl.DataFrame) -> pl.DataFrame:
    """Give ranks that came too late to be blocked the wait that most others have at the same place.

    The program is the same on all ranks; a late rank finds the collective over, but would have waited had it been
    early. The wait is set where it costs nothing: at the collective's end, if that precedes the next joint.
    """
    place = ["run_id", "calls", "position"]
    joints = joints.with_columns(
        calls=pl.len().over(_KEY),
        until_ns=pl.col("arrival_ns").shift(-1).over(_KEY).fill_null(pl.col("window_end_ns")),
    )
    common = (
        joints.filter("is_regular")
        .group_by(*place, "awaited_position")
        .len()
        .with_columns(share=pl.col("len") / pl.col("len").sum().over(place))
        .filter((pl.col("share") >= 0.5) & pl.col("awaited_position").is_not_null())
        .select(*place, common="awaited_position")
    )
    ends = joints.select(*_KEY, common="position", common_end_ns="end_ns")
    joined = joints.join(common, on=place, how="left", maintain_order="left").join(
        ends, on=[*_KEY, "common"], how="left", maintain_order="left"
    )
    in_time = pl.col("is_regular") & (pl.col("common_end_ns") <= pl.col("until_ns"))
    return joined.with_columns(awaited_position=pl.coalesce("awaited_position", pl.when(in_time).then("common")))


def _edges(values: NDArray[np.int64]) -> list[int]:
    """Where stretches of equal values begin, and the end of the last one."""
    return [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
