"""Fills forecast.outlook: the slowest rank at more ranks, from one run alone."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.forecast.order_statistics import FURTHEST_BLOCKS, parts_of, slowest_of, step_quantile
from traceforge.forecast.own_time import own_time
from traceforge.forecast.points import run_ids
from traceforge.forecast.tail import HEAVIEST, LEAST_EXCESSES, Tail, fit_tail
from traceforge.store.database import Store

Array = NDArray[np.float64]

_BLOCKS = (2, FURTHEST_BLOCKS)
_TAIL = (16, 64)
_LEAST_ITERATIONS = 5


@dataclass(frozen=True, slots=True)
class OutlookRow:
    """One row of forecast.outlook without its run; see there for the fields."""

    ranks: int
    method: str
    step_quantile: float
    slowest_ns: float | None
    low_ns: float | None
    high_ns: float | None
    persistent_share: float
    refusal: str | None


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, number of ranks)."""
    result: list[dict[str, object]] = []
    for run_id in run_ids(store):
        own = own_time(store, run_id)
        if own is not None and len(own.ranks) > 1 and len(own.iterations) >= _LEAST_ITERATIONS:
            found = outlook(own.own_ns, np.random.default_rng(0))
            result += [{"run_id": run_id, **_whole(asdict(row))} for row in found]
    return pl.DataFrame(result, infer_schema_length=None)


def _whole(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its times as whole ns."""
    times = ("slowest_ns", "low_ns", "high_ns")
    return row | {name: None if row[name] is None else round(row[name]) for name in times}


def outlook(own_ns: Array, rng: np.random.Generator) -> list[OutlookRow]:
    """The slowest rank at the measured ranks and at multiples of them, from own times of shape (I, R)."""
    measured = own_ns.shape[1]
    parts = parts_of(own_ns)
    result = []
    for factor in (1, *_BLOCKS):
        ranks = factor * measured
        found = slowest_of(own_ns, ranks, rng)
        method = "measured" if factor == 1 else "rank_blocks"
        quantile, share = step_quantile(ranks), parts.persistent_share
        result.append(OutlookRow(ranks, method, quantile, found.mean, found.low, found.high, share, None))
    # Of any iteration the slowest rank counts, so that ranks differ by what lasts and by what comes and goes alike.
    tail = fit_tail(parts.persistent + parts.transient, rng)
    refusal = _refusal(tail)
    for factor in _TAIL:
        ranks = factor * measured
        slowest, low, high = None, None, None
        if tail is not None and refusal is None:
            slowest = tail.slowest(ranks)
            low, high = tail.slowest_between(ranks)
        quantile, share = step_quantile(ranks), parts.persistent_share
        result.append(OutlookRow(ranks, "tail", quantile, slowest, low, high, share, refusal))
    return result


def _refusal(tail: Tail | None) -> str | None:
    if tail is None:
        return f"Fewer than {LEAST_EXCESSES} values lie above the 90 % quantile: too few to tell a tail."
    if not tail.is_bounded:
        return (
            f"The shape of the tail is {tail.shape:.2f} [{tail.low_shape:.2f}, {tail.high_shape:.2f}]: it may be"
            f" {HEAVIEST} or more, where the slowest rank has no expected lateness."
        )
    return None
