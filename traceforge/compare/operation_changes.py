"""What is worked on, compared by operation. In: two sides. Out: rows that are new, gone, called more often, or slower.

Calls are counted, so that a changed number needs no test. Times are tested over ranks, each against itself: the number
of a rank's iterations says nothing of how much it differs from run to run. Below three ranks in both runs, or where
one rank alone changed, a slower call cannot be judged here. Not handled: communication (see the rows of collectives);
an operation under another name.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from traceforge.compare.sides import Row, Side
from traceforge.stats import LEAST_COUNT, Values, holm, t_p_value
from traceforge.thresholds import compare as thresholds

# In the place of an infinite t.
_CERTAIN = 1e9

Kind = Literal["new", "gone", "more_calls", "fewer_calls", "slower_each", "faster_each"]


@dataclass(frozen=True, slots=True)
class OperationChange:
    """One operation (or kernel without one), mean over the ranks of both runs, an iteration.

    Attributes:
        rank: where nearly all of the change (in calls, if these changed) is one rank's, that rank; all numbers are then
            its own.
        kind: what changed most about it.
        before_calls, after_calls: calls of a rank.
        p_value: probability of so large a difference by chance, adjusted for the number of rows; None where calls
            were counted to differ, or ranks are too few.
        is_significant: whether it is large enough, and certain.
    """

    name: str
    rank: int | None
    kind: Kind
    before_ns: float
    after_ns: float
    before_calls: float
    after_calls: float
    p_value: float | None
    is_significant: bool

    @property
    def difference_ns(self) -> float:
        """After minus before, ns."""
        return self.after_ns - self.before_ns


def operation_changes(before: Side, after: Side, iteration_ns: float) -> list[OperationChange]:
    """All operations of both runs, the significant first, then by size; `iteration_ns` is the baseline's mean."""
    rows = before.rows("operation"), after.rows("operation")
    ranks = sorted({row["rank"] for row in rows[0]} & {row["rank"] for row in rows[1]})
    names = sorted({row["name"] for side in rows for row in side})
    if not ranks:
        return []
    (time_a, calls_a), (time_b, calls_b) = (_by_rank(side, ranks, names) for side in rows)
    p_values = _p_values(time_b - time_a)
    changes = []
    for place, name in enumerate(names):
        calls = calls_b[:, place] - calls_a[:, place]
        alone = _alone(calls if calls.any() else time_b[:, place] - time_a[:, place])
        chosen = slice(None) if alone is None else slice(alone, alone + 1)
        before_ns, after_ns, before_calls, after_calls = (
            float(values[chosen, place].mean()) for values in (time_a, time_b, calls_a, calls_b)
        )
        kind = _kind(before_ns, after_ns, before_calls, after_calls)
        is_tested = kind.endswith("_each") and alone is None
        p_value = float(p_values[place]) if is_tested else math.nan
        is_certain = not kind.endswith("_each") or p_value < thresholds.FALSE_POSITIVE_RATE
        changes.append(
            OperationChange(
                name=name,
                rank=None if alone is None else ranks[alone],
                kind=kind,
                before_ns=before_ns,
                after_ns=after_ns,
                before_calls=before_calls,
                after_calls=after_calls,
                p_value=None if math.isnan(p_value) else p_value,
                is_significant=bool(is_certain and abs(after_ns - before_ns) >= thresholds.LEAST_SHARE * iteration_ns),
            )
        )
    return sorted(changes, key=lambda one: (not one.is_significant, -abs(one.difference_ns), one.name))


def _by_rank(rows: Sequence[Row], ranks: Sequence[int], names: Sequence[str]) -> tuple[Values, Values]:
    """Times and calls, shape (ranks, names); 0 where a rank does not do it."""
    of_rank, of_name = ({key: place for place, key in enumerate(keys)} for keys in (ranks, names))
    result = np.zeros((2, len(ranks), len(names)))
    for row in rows:
        if row["rank"] in of_rank:
            result[:, of_rank[row["rank"]], of_name[row["name"]]] = row["value"], row["calls"]
    return result[0], result[1]


def _alone(differences: Values) -> int | None:
    """The place of the one rank that changed; None where several did, or there is only one."""
    sizes = np.abs(differences)
    is_one = len(sizes) > 1 and sizes.max() > thresholds.ONE_RANK_SHARE * sizes.sum()
    return int(sizes.argmax()) if is_one else None


def _p_values(differences: Values) -> Values:
    """Of differences of shape (ranks, names), by Student's t, corrected by Holm; NaN below three ranks."""
    if len(differences) < LEAST_COUNT:
        return np.full(differences.shape[1], np.nan)
    count = len(differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(differences.mean(axis=0)) / (differences.std(axis=0, ddof=1) / np.sqrt(count))
    # No difference on any rank is no change, and the same one on all of them is certain.
    return holm(t_p_value(np.nan_to_num(t, nan=0.0, posinf=_CERTAIN), count - 1))


def _kind(before_ns: float, after_ns: float, before_calls: float, after_calls: float) -> Kind:
    if not before_calls or not after_calls:
        return "new" if not before_calls else "gone"
    if abs(after_calls - before_calls) > thresholds.COMPARABLE_SHARE * max(before_calls, after_calls):
        return "more_calls" if after_calls > before_calls else "fewer_calls"
    return "slower_each" if after_ns >= before_ns else "faster_each"
