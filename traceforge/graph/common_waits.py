"""Waits that ranks in step have in common. In: chains of ranks, some iterations at a time. Out: the same, with them.

The program is the same on all ranks, so what most await at a place in their chains the others would await, too, had
they come in time. Not handled: ranks that are not in step, whose places mean different things.
"""

from collections.abc import Sequence

import polars as pl

from traceforge.thresholds import graph as thresholds

KEY = ("run_id", "iteration", "rank")
_PLACE = ("run_id", "calls", "position")


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
