"""Why a stage computes longer. Reads operation.stage_kernel and timeline.stage_load; fills operation.stage_work.

Idea: its time above the mean of the stages that are not longer is a sum of parts. The same kernels take longer a call,
are called more often, or it runs kernels that none of these runs, beside some that it lacks. Longer calls of the same
work are a slower pace, more calls are more work. Where neither makes nearly all of it, nothing follows.
Not handled: what slows kernels (clock, memory, transfers at the same time), and values of inputs.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.store.database import Store
from traceforge.thresholds import operation as thresholds

_KERNELS = """
SELECT run_id, stage, is_work_fixed, calls, duration_ns, peer_calls, peer_duration_ns
FROM operation.stage_kernel
ORDER BY ALL
"""
# What each longer stage computes above the mean of those that are not.
_ABOVE = """
SELECT run_id, stage, compute_ns_per_iteration - usual_stage_ns_per_iteration
FROM timeline.stage_load
WHERE is_longer
"""
_SCHEMA = {
    "run_id": pl.Int32,
    "stage": pl.Int32,
    "reason": pl.String,
    **dict.fromkeys(("slower_ns", "more_calls_ns", "own_ns", "missing_ns"), pl.Int64),
    **dict.fromkeys(("low_slowdown", "high_slowdown"), pl.Float64),
}

Values = NDArray[np.float64]


def rows(store: Store) -> pl.DataFrame:
    """One row a longer stage of which kernels say anything."""
    above_ns = {(run_id, stage): float(longer_ns) for run_id, stage, longer_ns in store.rows(_ABOVE)}
    found = []
    by_stage = store.query(_KERNELS).partition_by("run_id", "stage", as_dict=True, maintain_order=True)
    for (run_id, stage), kernels in by_stage.items():
        work = stage_work(kernels)
        if work is not None:
            parts = (work.slower_ns, work.more_calls_ns, work.own_ns, work.missing_ns)
            reason = work.reason(above_ns[run_id, stage])
            found.append((run_id, stage, reason, *map(round, parts), work.low, work.high))
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


@dataclass(frozen=True, slots=True)
class StageWork:
    """Parts of what kernels of a longer stage take above the mean one that is not, as columns of operation.stage_work.

    Attributes:
        is_alike: whether nearly all kernels take longer by a like factor.
        is_work_known: whether it is kernels whose work follows from their shapes that say so.
    """

    slower_ns: float
    more_calls_ns: float
    own_ns: float
    missing_ns: float
    low: float
    high: float
    is_alike: bool
    is_work_known: bool

    def reason(self, above_others_ns: float) -> str | None:
        """Which parts make nearly all that the stage computes longer, which is given; None where none does."""
        more_ns = self.more_calls_ns + self.own_ns - self.missing_ns
        whole_ns, share = max(self.slower_ns + more_ns, above_others_ns), thresholds.STAGE_REASON_SHARE
        least_ns, most_ns = share * whole_ns, (1 - share) * whole_ns
        if self.slower_ns >= least_ns and abs(self.more_calls_ns) + self.own_ns + self.missing_ns <= most_ns:
            return ("slower" if self.is_work_known else "perhaps_slower") if self.is_alike else None
        return "more" if more_ns >= least_ns and max(abs(self.slower_ns), self.missing_ns) <= most_ns else None


def stage_work(kernels: pl.DataFrame) -> StageWork | None:
    """The parts of one stage; None where other stages run too few of its kernels, or those take no longer in all."""
    names = ("calls", "duration_ns", "peer_calls", "peer_duration_ns")
    calls, spent_ns, peer_calls, peer_ns = (kernels[name].cast(pl.Float64).to_numpy() for name in names)
    is_shared = (spent_ns > 0) & (peer_ns > 0)
    if np.count_nonzero(is_shared) < thresholds.LEAST_SHARED_KERNELS or spent_ns.sum() <= peer_ns.sum():
        return None
    spent, peer = spent_ns[is_shared], peer_ns[is_shared]
    usual = calls[is_shared] * peer / peer_calls[is_shared]
    is_fixed = kernels["is_work_fixed"].to_numpy()[is_shared]
    is_work_known = bool(spent[is_fixed].sum() >= thresholds.KNOWN_WORK_SHARE * spent_ns.sum())
    # Without shapes most kernels may be given more to do, but hardly all of them by a like factor.
    told, share = (is_fixed, thresholds.ALIKE_SHARE) if is_work_known else (spent > 0, thresholds.NEARLY_ALL_SHARE)
    slower_ns = float((spent - usual).sum())
    low, high = _range(spent / usual - 1, spent)
    return StageWork(
        slower_ns=slower_ns,
        more_calls_ns=float((usual - peer).sum()),
        own_ns=float(spent_ns[~is_shared].sum()),
        missing_ns=float(peer_ns[~is_shared].sum()),
        low=low,
        high=high,
        is_alike=_is_alike((spent / usual - 1)[told], spent[told], slower_ns / float(usual.sum()), share),
        is_work_known=is_work_known,
    )


def _is_alike(slowdown: Values, spent_ns: Values, of_all: float, share: float) -> bool:
    """Whether such a share of the time is of several kernels that take longer by about as much as all together."""
    factor = thresholds.LIKE_FACTOR
    is_like = (slowdown >= of_all / factor) & (slowdown <= of_all * factor)
    is_most = spent_ns[is_like].sum() >= share * spent_ns.sum()
    return bool(of_all > 0 and np.count_nonzero(is_like) >= thresholds.LEAST_SHARED_KERNELS and is_most)


def _range(slowdown: Values, spent_ns: Values) -> tuple[float, float]:
    """Between which nearly all of the time lies."""
    order = np.argsort(slowdown)
    reached = np.cumsum(spent_ns[order]) / spent_ns.sum()
    edge = (1 - thresholds.NEARLY_ALL_SHARE) / 2
    low, high = slowdown[order[np.minimum(np.searchsorted(reached, [edge, 1 - edge]), len(order) - 1)]]
    return float(low), float(high)
