"""Fills forecast.outlook: the slowest rank at more ranks, from one run alone."""

from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.forecast.order_statistics import parts_of, slowest_of, step_quantile
from traceforge.forecast.own_time import own_time
from traceforge.forecast.tail import Tail, fit_tail
from traceforge.store.database import Store
from traceforge.thresholds import forecast as thresholds
from traceforge.units import format_share

Array = NDArray[np.float64]

_BLOCKS = (2, thresholds.FURTHEST_BLOCKS)
_TAIL = (16, 64)


@dataclass(frozen=True, slots=True)
class OutlookRow:
    """One row of forecast.outlook without its run; see there for the fields."""

    ranks: int
    method: str
    step_quantile: float
    slowest_ns: int | None
    low_ns: int | None
    high_ns: int | None
    persistent_share: float
    refusal: str | None


def rows(store: Store) -> pl.DataFrame:
    """One row a (run, number of ranks); none for a run of one rank or few iterations."""
    result: list[dict[str, object]] = []
    for run_id in store.run_ids():
        own = store.once(own_time, run_id)
        if own is not None and len(own.ranks) > 1 and len(own.iterations) >= thresholds.LEAST_OUTLOOK_ITERATIONS:
            found = outlook(own.own_ns, np.random.default_rng(0))
            result += [{"run_id": run_id, **asdict(row)} for row in found]
    return pl.DataFrame(result, infer_schema_length=None)


def outlook(own_ns: Array, rng: np.random.Generator) -> list[OutlookRow]:
    """The slowest rank at the measured ranks and at multiples of them, from own times of shape (I, R)."""
    measured = own_ns.shape[1]
    parts = parts_of(own_ns)

    def row(ranks: int, method: str, lateness_ns: tuple[float, ...] | None, refusal: str | None = None) -> OutlookRow:
        slowest, low, high = map(round, lateness_ns) if lateness_ns else (None, None, None)
        return OutlookRow(ranks, method, step_quantile(ranks), slowest, low, high, parts.persistent_share, refusal)

    result = []
    for factor in (1, *_BLOCKS):
        found = slowest_of(own_ns, factor * measured, rng)
        method = "measured" if factor == 1 else "rank_blocks"
        result.append(row(factor * measured, method, (found.mean, found.low, found.high)))
    # In any iteration the slowest rank counts, so that ranks differ by what lasts and by what comes and goes alike.
    tail = fit_tail(parts.persistent + parts.transient, rng)
    for factor in _TAIL:
        ranks = factor * measured
        if tail is None or not tail.is_bounded:
            result.append(row(ranks, "tail", None, _refusal(tail)))
        else:
            result.append(row(ranks, "tail", (tail.slowest(ranks), *tail.slowest_between(ranks))))
    return result


def _refusal(tail: Tail | None) -> str:
    if tail is None:
        above = f"the {format_share(thresholds.TAIL_QUANTILE)} quantile"
        return f"Fewer than {thresholds.LEAST_TAIL_VALUES} values lie above {above}: too few to show a tail."
    return (
        f"The tail may be too heavy for the slowest rank to have an expected lateness: its shape is {tail.shape:.2f} "
        f"(95 % interval {tail.low_shape:.2f} to {tail.high_shape:.2f}); from {thresholds.HEAVIEST_TAIL} on there is"
        " none."
    )
