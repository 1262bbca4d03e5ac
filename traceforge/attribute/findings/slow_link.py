"""Which link is slow. In: messages of a run and iterations in which transfers were slow. Out: two ranks, or two hosts.

Against its own usual time, a message that takes longer in the affected iterations points at what it passes. Where
nearly all of that is between two ranks they are the link; else, where it is between two hosts, those are. Not handled:
links that are slow in all iterations (they may be long ones), and collectives, whose paths messages do not tell.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from traceforge.attribute.findings.lost_time import JudgedRun
from traceforge.attribute.findings.subjects import Subject, between_hosts
from traceforge.thresholds import attribute as thresholds


def slow_link(run: JudgedRun, affected: Sequence[int], delay_ns: float) -> Subject | None:
    """The link that slow transfers point at.

    Args:
        affected: places of the affected iterations among those judged.
        delay_ns: what slow transfers cost in all of these together; messages have to explain it.
    """
    if run.messages is None or run.messages.is_empty():
        return None
    alike = ["low", "high", "size_bytes"]
    is_slow = run.messages["iteration"].is_in([run.iterations[place] for place in affected])
    usual = run.messages.filter(~is_slow).group_by(alike).agg(usual_ns=pl.col("transfer_ns").median())
    # Medians: messages that share a kernel with a slow one seem to take as long, now and then.
    now = run.messages.filter(is_slow).group_by(alike).agg(pl.len(), now_ns=pl.col("transfer_ns").median())
    longer = now.join(usual, on=alike, nulls_equal=True).with_columns(
        excess_ns=pl.col("len") * (pl.col("now_ns") - pl.col("usual_ns")).clip(0)
    )
    whole = float(longer["excess_ns"].sum())
    # What passes through the pipeline is less than what its messages lose together, but not more.
    if whole < delay_ns * thresholds.SOLE_DOMINANCE or not whole:
        return None
    by_ranks = _largest(longer, "low", "high")
    if by_ranks[2] >= thresholds.SOLE_DOMINANCE * whole:
        return between_ranks(run, by_ranks[0], by_ranks[1])
    return _hosts_between(run, longer, whole)


def _largest(longer: pl.DataFrame, *ends: str) -> tuple[Any, Any, float]:
    found = (
        longer.group_by(ends).agg(pl.col("excess_ns").sum()).sort("excess_ns", *ends, descending=[True, False, False])
    )
    one, other, excess_ns = found.row(0)
    return one, other, float(excess_ns)


def between_ranks(run: JudgedRun, one: int, other: int) -> Subject:
    """The link between two ranks."""
    places = tuple(place for place, rank in enumerate(run.ranks) if rank in (one, other))
    return Subject("link", f"{one}, {other}", places, f"the link between ranks {one} and {other}")


def _hosts_between(run: JudgedRun, longer: pl.DataFrame, whole_ns: float) -> Subject | None:
    host_of = {rank: host or "" for rank, host in zip(run.ranks, run.hosts, strict=True)}
    ends = [
        sorted((host_of.get(low, ""), host_of.get(high, ""))) for low, high in longer.select("low", "high").iter_rows()
    ]
    named = longer.with_columns(pl.Series("one", [pair[0] for pair in ends]), pl.Series("other", [p[1] for p in ends]))
    one, other, excess_ns = _largest(named, "one", "other")
    if excess_ns < thresholds.SOLE_DOMINANCE * whole_ns or "" in (one, other) or one == other:
        return None
    return between_hosts(run, [one, other])
