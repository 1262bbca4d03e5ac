"""Where arrivals stand in the order of their iteration. In: arrivals, and what ranks await. Out: the same, placed.

Members of a collective agree on its position. Ranks that issue equally many collectives in one order are in step, and
positions are those of issue; else they are those of a common order (`positions`). Receives that are posted ahead may
contradict every order of issue: of such calls the usual order counts in which ranks are ready for them.
"""

from itertools import groupby
from operator import itemgetter

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from traceforge.graph.common_waits import KEY
from traceforge.graph.positions import ChainedCall, common_positions
from traceforge.graph.schedule import topological_order

# Iterations that ranks issue in contradicting orders, as receives that are posted ahead make them. The meetings of one
# call have no order of their own.
CROSSED = pl.col("position").is_null() & ~(
    (pl.col("is_split") | (pl.col("meetings") > 1)).any().over("run_id", "iteration")
)


def with_positions(arrivals: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    """The arrivals with `in_step` and positions that members agree on; these are null where orders contradict.

    Ranks are in step in an iteration if all issue equally many collectives and agree on each one's place.
    """
    of_iteration = ["run_id", "iteration"]
    arrivals = arrivals.with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over(KEY))
    lengths = recorded.join(arrivals.group_by(KEY).len(), on=KEY, how="left").fill_null(0)
    places = arrivals.group_by(*of_iteration, "collective_id").agg(pl.col("position").n_unique())
    in_step = lengths.group_by(of_iteration).agg(in_step=pl.col("len").n_unique() == 1)
    in_step = in_step.join(places.filter(pl.col("position") > 1), on=of_iteration, how="anti").filter("in_step")
    in_step = in_step.join(arrivals.filter(pl.col("meetings") > 1), on=of_iteration, how="anti")
    arrivals = arrivals.join(in_step, on=of_iteration, how="left", maintain_order="left").with_columns(
        pl.col("in_step").fill_null(value=False)
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


def in_usual_order(arrivals: pl.DataFrame, program: str) -> pl.DataFrame:
    """Arrivals of each rank in the order in which it is usually ready for its calls; receives where they meet.

    A receive that is posted ahead stands before what its rank does first; a sender that is ready goes on with what the
    receiver may do first. Calls that ranks so put around in a circle stand in the order in which they meet. What counts
    is the usual time since the iteration's start of the same call of the program, that is: of the same number on its
    first rank.

    Args:
        program: `role`, where ranks of a role run the same program, so that replicas have one order; else `rank`.
    """
    call = ("run_id", "first", "number")
    numbered = arrivals.with_columns(number=pl.int_range(pl.len()).over(KEY))
    begun = pl.col("start_ns").min().over("run_id", "iteration")
    first = (
        numbered.sort("rank", maintain_order=True)
        .group_by("run_id", "iteration", "collective_id", maintain_order=True)
        .agg(pl.col(program).first().alias("first"), pl.col("number").first())
    )
    ready_ns = pl.col("arrival_ns") - pl.col("ahead_ns")
    placed = numbered.with_columns(
        met_ns=pl.col("last_arrival_ns") - begun,
        ready_ns=pl.when("is_receiver").then("last_arrival_ns").otherwise(ready_ns) - begun,
    ).drop("number")
    placed = placed.join(first, on=["run_id", "iteration", "collective_id"], maintain_order="left")
    met = placed.group_by(call).agg(usually_met_ns=pl.col("met_ns").median())
    ready = placed.group_by(*call, program).agg(usually_ready_ns=pl.col("ready_ns").median())
    usual = placed.join(met, on=call, maintain_order="left").join(ready, on=[*call, program], maintain_order="left")
    usual = _in_stream_order(usual).with_columns(one=pl.struct(call).rank("dense") - 1)
    by = ("rank", "iteration", "usually_ready_ns", "usually_met_ns", "first", "number")
    turn = _turns(usual.sort(by, maintain_order=True))
    ordered = usual.with_columns(turn=pl.Series(turn).gather(usual["one"]))
    by = ("rank", "iteration", "turn", "usually_met_ns", "first", "number")
    return ordered.sort(by, maintain_order=True).select(arrivals.columns)


def _in_stream_order(arrivals: pl.DataFrame) -> pl.DataFrame:
    """The arrivals, of which none is usually ready before what its own stream does first."""
    names = ("rank", "iteration", "collective_id", "behind", "usually_ready_ns")
    known: dict[tuple[int, int, int], float] = {}
    found = []
    for rank, iteration, collective, behind, ready_ns in arrivals.select(names).iter_rows():
        at_ns = max(ready_ns, known.get((rank, iteration, behind), ready_ns))
        known[rank, iteration, collective] = at_ns
        found.append(at_ns)
    return arrivals.with_columns(usually_ready_ns=pl.Series(found, dtype=pl.Float64))


def _turns(chains: pl.DataFrame) -> NDArray[np.int64]:
    """When each call (`one`) has its turn in an order of all ranks; those of a circle have the same.

    Args:
        chains: calls of each rank in its own order.
    """
    pairs = chains.select(begin="one", end=pl.col("one").shift(-1).over("rank", "iteration")).drop_nulls().unique()
    begin, end = (pairs[name].to_numpy().astype(np.int64) for name in ("begin", "end"))
    count = int(str(chains["one"].max())) + 1
    follows = coo_array((np.ones(len(begin)), (begin, end)), shape=(count, count))
    circles, circle = connected_components(follows.tocsr(), connection="strong")
    begin, end = circle[begin], circle[end]
    order, _ = topological_order(circles, begin[begin != end], end[begin != end])
    turn: NDArray[np.int64] = np.argsort(order)[circle]
    return turn


def _chains(arrivals: pl.DataFrame) -> list[list[ChainedCall]]:
    """Chains of the ranks of one iteration; arrivals by rank and call."""
    columns = arrivals.select("rank", "call_id", "collective_id").iter_rows()
    chains = []
    for _, own in groupby(columns, key=itemgetter(0)):
        joined = [tuple(one for _, _, one in call) for _, call in groupby(own, key=itemgetter(1))]
        # Positions stay free whether the call is awaited or not: places must not differ between iterations.
        chains.append([ChainedCall(meetings, len(meetings) - 1) for meetings in joined])
    return chains


def _with_waits_behind_batches(arrivals: pl.DataFrame) -> pl.DataFrame:
    """The arrivals in order of position; of a call with several meetings the last one has the wait."""
    call = [*KEY, "call_id"]
    is_last = pl.col("position") == pl.col("position").max().over(call)
    return arrivals.with_columns(
        awaited=pl.when((pl.col("meetings") == 1) | pl.col("position").is_null())
        .then("awaited")
        .when(is_last)
        .then(pl.col("awaited").drop_nulls().first().over(call))
    ).sort(*KEY, "position", "call_id", maintain_order=True)
