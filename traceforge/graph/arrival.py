"""Each rank's chain of collectives. Reads timeline.*, graph.queued; fills graph.arrival.

A rank waits for a collective where nothing but communication runs until that collective ends; of several such ends
between two arrivals the last counts. A collective that its stream holds back counts as reached when the rank was ready.
Where ranks issue different collectives in an iteration (stages of a pipeline), positions are those of a common order
(`positions`); iterations in which orders contradict one another are left out and counted.
"""

from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.graph.positions import ChainedCall, common_positions
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import graph as thresholds
from traceforge.timeline.layers import active, union

# Of the meetings of one call the one that began last ends with it. The others have ended when the other side is done,
# and take no longer than those of their size that set the end of a call: what else a kernel waits for is not theirs.
_ARRIVALS = """
WITH met AS (
  SELECT a.*, COUNT(*) OVER own_call AS meetings,
    ROW_NUMBER() OVER (own_call ORDER BY c.last_arrival_ns DESC, a.collective_id DESC) = 1 AS is_last_begun,
    MIN(a.end_ns) OVER (PARTITION BY a.run_id, a.collective_id) AS first_end_ns, c.last_arrival_ns, c.communicator_id,
    c.size_bytes
  FROM timeline.arrival AS a
  JOIN timeline.collective AS c USING (run_id, collective_id)
  WINDOW own_call AS (PARTITION BY a.run_id, a.rank, a.call_id)
),
usual AS (
  SELECT run_id, communicator_id, size_bytes,
    QUANTILE_DISC(GREATEST(0, end_ns - last_arrival_ns), 0.5) AS usual_ns
  FROM met
  WHERE is_last_begun AND (run_id, rank) IN (SELECT (run_id, rank) FROM met WHERE meetings > 1)
  GROUP BY ALL
)
SELECT a.run_id, a.iteration, a.rank, a.collective_id, a.call_id, a.arrival_ns, a.end_ns, a.meetings, a.is_last_begun,
  LEAST(a.first_end_ns, COALESCE(a.last_arrival_ns + u.usual_ns, a.first_end_ns)) AS likely_end_ns,
  w.end_ns AS window_end_ns, w.start_ns,
  b.collective_id AS queued, CASE WHEN b.call_id IS NULL THEN 0 ELSE q.ahead_ns END AS ahead_ns
FROM met AS a
JOIN timeline.window AS w USING (run_id, iteration, rank)
LEFT JOIN graph.queued AS q USING (run_id, rank, call_id)
LEFT JOIN usual AS u ON u.run_id = a.run_id AND u.communicator_id = a.communicator_id
  AND u.size_bytes IS NOT DISTINCT FROM a.size_bytes
LEFT JOIN met AS b
  ON b.run_id = q.run_id AND b.rank = q.rank AND b.call_id = q.behind_call_id AND b.iteration = a.iteration
  AND b.is_last_begun
ORDER BY a.run_id, a.iteration, a.rank, a.call_id, a.is_last_begun, a.collective_id
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
SELECT run_id, rank, start_ns, start_ns + duration_ns AS end_ns
FROM timeline.segment
WHERE phase IN ('transfer', 'wait', 'communication')
ORDER BY run_id, rank, start_ns
"""

_RECORDED = "SELECT run_id, iteration, rank FROM timeline.window ORDER BY run_id, iteration, rank"

# Collectives of this many other streams are considered as what held up one that stands in a queue.
_STREAMS = 8
_KEY = ("run_id", "iteration", "rank")
_COLUMNS = (
    "position",
    "collective_id",
    "arrival_ns",
    "end_ns",
    "awaited_position",
    "queued_position",
    "is_regular",
    "also_awaited",
)


def rows(store: Store) -> pl.DataFrame:
    """One row a (rank, collective of an iteration) of the iterations whose order is known."""
    arrivals, exposed = store.query(_ARRIVALS), store.query(_EXPOSED)
    if arrivals.is_empty():
        return arrivals
    nothing, exposed_of = exposed.clear(), exposed.partition_by("run_id", "rank", as_dict=True)
    by_rank = arrivals.group_by("run_id", "rank", maintain_order=True)
    arrivals = pl.concat([_of_rank(own, exposed_of.get(key, nothing)) for key, own in by_rank])
    arrivals = _with_positions(arrivals, store.query(_RECORDED))
    lacking = store.query(_LACKING).with_columns(is_lacking=True)
    arrivals = arrivals.join(lacking, on=["run_id", "iteration"], how="left", maintain_order="left").with_columns(
        is_regular=pl.col("in_step") | (pl.col("position").is_not_null() & pl.col("is_lacking").is_null()),
        end_ns=pl.when("is_last_begun").then("end_ns").otherwise("likely_end_ns"),
    )
    _note_irregular(store, arrivals)
    arrivals = _with_other_meetings(arrivals.filter(pl.col("position").is_not_null()))
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
    """The arrivals with `in_step` and positions that members agree on; these are null where orders contradict.

    Ranks are in step in an iteration if all issue equally many collectives and agree on each one's place.
    """
    of_iteration = ["run_id", "iteration"]
    arrivals = arrivals.with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over(_KEY))
    lengths = recorded.join(arrivals.group_by(_KEY).len(), on=_KEY, how="left").fill_null(0)
    places = arrivals.group_by(*of_iteration, "collective_id").agg(pl.col("position").n_unique())
    in_step = lengths.group_by(of_iteration).agg(in_step=pl.col("len").n_unique() == 1)
    in_step = in_step.join(places.filter(pl.col("position") > 1), on=of_iteration, how="anti").filter("in_step")
    in_step = in_step.join(arrivals.filter(pl.col("meetings") > 1), on=of_iteration, how="anti")
    arrivals = arrivals.join(in_step, on=of_iteration, how="left", maintain_order="left").with_columns(
        pl.col("in_step").fill_null(value=False),
        is_split=pl.col("iteration").n_unique().over("run_id", "collective_id") > 1,
    )
    found: list[tuple[object, ...]] = []
    for key, frame in arrivals.filter(~pl.col("in_step")).group_by(of_iteration, maintain_order=True):
        positions = None if frame["is_split"].any() else common_positions(_chains(frame))
        found += [(*key, *one) for one in (positions or {}).items()]
    names = (*of_iteration, "collective_id", "agreed")
    agreed = pl.DataFrame(found, schema={n: arrivals.schema.get(n, pl.Int32) for n in names}, orient="row")
    joined = arrivals.join(agreed, on=names[:3], how="left", maintain_order="left")
    placed = joined.with_columns(position=pl.when("in_step").then("position").otherwise("agreed"))
    return _with_waits_behind_batches(placed)


def _chains(arrivals: pl.DataFrame) -> list[list[ChainedCall]]:
    """Chains of the ranks of one iteration; arrivals by rank and call."""
    several = arrivals.filter(pl.col("meetings") > 1).select("rank", "collective_id", "meetings")
    meetings = {(rank, one): count for rank, one, count in several.iter_rows()}
    columns = arrivals.select("rank", "call_id", "collective_id", "awaited").iter_rows()
    chains = []
    for rank, own in groupby(columns, key=itemgetter(0)):
        chain = []
        for _, call in groupby(own, key=itemgetter(1)):
            joined, awaited = zip(*((one, other) for _, _, one, other in call), strict=True)
            chain.append(ChainedCall(joined, max(meetings.get((rank, one), 1) for one in awaited) - 1))
        chains.append(chain)
    return chains


def _with_waits_behind_batches(arrivals: pl.DataFrame) -> pl.DataFrame:
    """The arrivals in order of position; of a call with several meetings the last one has the wait."""
    call = [*_KEY, "call_id"]
    is_last = pl.col("position") == pl.col("position").max().over(call)
    return arrivals.with_columns(
        awaited=pl.when((pl.col("meetings") == 1) | pl.col("position").is_null())
        .then("awaited")
        .when(is_last)
        .then(pl.col("awaited").drop_nulls().first().over(call))
    ).sort(*_KEY, "position", "call_id", maintain_order=True)


def _with_other_meetings(arrivals: pl.DataFrame) -> pl.DataFrame:
    """With `also_awaited`: where other meetings of the awaited call are; the one that began last is awaited first."""
    several = arrivals.filter(pl.col("meetings") > 1)
    call = [*_KEY, "call_id"]
    last = several.filter("is_last_begun").select(*call, binding="collective_id")
    others = several.filter(~pl.col("is_last_begun")).group_by(call).agg(also_awaited=pl.col("position").sort())
    of_call = several.select(*call, awaited="collective_id").join(last, on=call).join(others, on=call).drop("call_id")
    joined = arrivals.join(of_call, on=[*_KEY, "awaited"], how="left", maintain_order="left")
    return joined.with_columns(awaited=pl.coalesce("binding", "awaited"))


def _note_irregular(store: Store, arrivals: pl.DataFrame) -> None:
    left_out = {
        "iteration_irregular": (
            ~pl.col("is_regular"),
            "iterations that lack members of a collective or partners of calls were left out of the ledger and replay",
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
        arrivals.filter("in_step")
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
    in_time = pl.col("in_step") & (pl.col("common_end_ns") <= pl.col("until_ns"))
    return joined.with_columns(awaited_position=pl.coalesce("awaited_position", pl.when(in_time).then("common")))


def _edges(values: NDArray[np.int64]) -> list[int]:
    """Where stretches of equal values begin, and the end of the last one."""
    return [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
