"""Waits that ranks in step have in common. In: chains of ranks, some iterations at a time. Out: the same, with them.

The program is the same on all ranks, so what most await at a place in their chains the others would await, too, had
they come in time. A collective that few await, and for no longer than one kernel takes to follow another, ended between
two kernels by chance, and nobody waited for it. Not handled: ranks that are not in step, whose places mean different
things.
"""

from collections.abc import Sequence

import polars as pl

from traceforge.thresholds import graph as thresholds

KEY = ("run_id", "iteration", "rank")
_PLACE = ("run_id", "calls", "position")
_WAIT = ("run_id", "calls", "awaited_position")


def common_waits(blocks: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """What most ranks in step await at each place, over all iterations."""
    waits = [one.filter("in_step").group_by(*_PLACE, "awaited_position").len() for one in blocks]
    if not waits:
        return pl.DataFrame()
    return (
        pl.concat(waits)
        .group_by(*_PLACE, "awaited_position")
        .agg(pl.col("len").sum())
        .with_columns(share=pl.col("len") / pl.col("len").sum().over(_PLACE))
        .filter((pl.col("share") >= thresholds.LEAST_SHARE_OF_COMMON_WAIT) & pl.col("awaited_position").is_not_null())
        .select(*_PLACE, common="awaited_position")
        .unique(_PLACE, keep="none")  # where two halves wait for different ones, nobody waits for none
    )


def rare_waits(blocks: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Which collectives fewer ranks in step than most await, wherever in their chains, over all iterations."""
    in_step = [one.filter("in_step") for one in blocks]
    if not in_step:
        return pl.DataFrame(schema={"run_id": pl.Int32, "calls": pl.UInt32, "awaited_position": pl.UInt32})
    chains = pl.concat([one.filter(pl.col("position") == 0).group_by(*_WAIT[:2]).len("chains") for one in in_step])
    waits = pl.concat([one.group_by(*_WAIT).len() for one in in_step]).drop_nulls()
    share = pl.col("len").sum() / pl.col("chains").first()
    return (
        waits.join(chains.group_by(*_WAIT[:2]).agg(pl.col("chains").sum()), on=_WAIT[:2])
        .group_by(*_WAIT)
        .agg(share=share)
        .filter(pl.col("share") < thresholds.LEAST_SHARE_OF_COMMON_WAIT)
        .select(*_WAIT)
    )


def without_chance_waits(arrivals: pl.DataFrame, rare: pl.DataFrame) -> pl.DataFrame:
    """Chains whose rare waits are gone where they are too short to tell from the gap between two kernels.

    Args:
        arrivals: chains; `awaited_ns` is for how long nothing but communication had run when the awaited one ended.
        rare: from `rare_waits`.
    """
    marked = arrivals.join(
        rare.with_columns(is_rare=True), on=_WAIT, how="left", maintain_order="left", nulls_equal=False
    )
    is_chance = pl.col("in_step") & pl.col("is_rare") & (pl.col("awaited_ns") < thresholds.SHORTEST_RARE_WAIT_NS)
    is_kept = ~is_chance.fill_null(value=False)
    return marked.with_columns(awaited_position=pl.when(is_kept).then("awaited_position")).drop("is_rare")


def with_common_waits(arrivals: pl.DataFrame, common: pl.DataFrame) -> pl.DataFrame:
    """Give ranks that came too late to be blocked the wait that most others have at the same place.

    The program is the same on all ranks; a late rank finds the collective over, but would have waited had it been
    early. The wait is set where it costs nothing: at the collective's end, if that precedes the next arrival.
    """
    ends = arrivals.select(*KEY, common="position", common_end_ns="end_ns")
    joined = arrivals.join(common, on=_PLACE, how="left", maintain_order="left").join(
        ends, on=[*KEY, "common"], how="left", maintain_order="left"
    )
    in_time = pl.col("in_step") & (pl.col("common_end_ns") <= pl.col("until_ns"))
    return joined.with_columns(awaited_position=pl.coalesce("awaited_position", pl.when(in_time).then("common")))
