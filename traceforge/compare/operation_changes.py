"""What is worked on, compared. In: two sides. Out: rows that are new, gone, called more often, or slower.

By operation, and finer by kernel, by module and by operation with its shapes.

Calls are counted, so that a changed number needs no test. Times are tested over ranks, each against itself: the number
of a rank's iterations says nothing of how much it differs from run to run. Below three ranks in both runs, or where
one rank alone changed, a slower call cannot be judged here. Not handled: communication (see the rows of collectives);
an operation under another name.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from traceforge.compare.sides import Row, Side
from traceforge.stats import LEAST_COUNT, Values, holm, t_p_value
from traceforge.thresholds import compare as thresholds

# In the place of an infinite t.
_CERTAIN = 1e9

Level = Literal["operation", "kernel", "module", "shapes"]
LEVELS: tuple[Level, ...] = ("operation", "kernel", "module", "shapes")

Kind = Literal["new", "gone", "more_calls", "fewer_calls", "slower_each", "faster_each"]


@dataclass(frozen=True, slots=True)
class OperationChange:
    """One operation (or kernel without one), mean over the ranks of both runs, an iteration.

    Attributes:
        level: by what it is grouped.
        name: of the operation, kernel or module, or of an operation with its shapes.
        rank: where nearly all of the change (in calls, if these changed) is one rank's, that rank; all numbers are then
            its own.
        kind: what changed most about it.
        before_calls, after_calls: calls of a rank.
        before_flops_per_s, after_flops_per_s: achieved arithmetic; None where it is not known.
        p_value: probability of so large a difference by chance, adjusted for the number of rows; None where calls
            were counted to differ, or ranks are too few.
        is_significant: whether it is large enough, and certain.
    """

    level: Level
    name: str
    rank: int | None
    kind: Kind
    before_ns: float
    after_ns: float
    before_calls: float
    after_calls: float
    before_flops_per_s: float | None
    after_flops_per_s: float | None
    p_value: float | None
    is_significant: bool

    @property
    def difference_ns(self) -> float:
        """After minus before, ns."""
        return self.after_ns - self.before_ns


def operation_changes(before: Side, after: Side, iteration_ns: float) -> list[OperationChange]:
    """All work of both runs by level, the significant first, then by size; `iteration_ns` is the baseline's mean."""
    rows = before.rows("operation"), after.rows("operation")
    ranks = sorted({row["rank"] for row in rows[0]} & {row["rank"] for row in rows[1]})
    if not ranks:
        return []
    changes: list[OperationChange] = []
    for level in LEVELS:
        own = [[row for row in side if row["level"] == level] for side in rows]
        names = sorted({row["name"] for side in own for row in side})
        changes += _of_level(level, names, [_by_rank(side, ranks, names) for side in own], ranks, iteration_ns)
    return sorted(
        changes, key=lambda one: (LEVELS.index(one.level), not one.is_significant, -abs(one.difference_ns), one.name)
    )


@dataclass(frozen=True, slots=True)
class _WorkOfRanks:
    """Of one run, shape (ranks, names); 0 where a rank does not do it, arithmetic NaN where it is not known."""

    time_ns: Values
    calls: Values
    flops: Values

    def mean(self, ranks: slice, place: int) -> tuple[float, float, float | None]:
        """Time and calls of a rank, and achieved arithmetic."""
        time_ns = float(self.time_ns[ranks, place].mean())
        flops = float(self.flops[ranks, place].mean())
        pace = None if math.isnan(flops) or not time_ns or not flops else flops * 1e9 / time_ns
        return time_ns, float(self.calls[ranks, place].mean()), pace


def _of_level(
    level: Level, names: Sequence[str], sides: Sequence[_WorkOfRanks], ranks: Sequence[int], iteration_ns: float
) -> Iterator[OperationChange]:
    before, after = sides
    p_values = _p_values(after.time_ns - before.time_ns) if names else np.empty(0)
    for place, name in enumerate(names):
        calls = after.calls[:, place] - before.calls[:, place]
        alone = _alone(calls if calls.any() else after.time_ns[:, place] - before.time_ns[:, place])
        chosen = slice(None) if alone is None else slice(alone, alone + 1)
        before_ns, before_calls, before_pace = before.mean(chosen, place)
        after_ns, after_calls, after_pace = after.mean(chosen, place)
        kind = _kind(before_ns, after_ns, before_calls, after_calls)
        is_tested = kind.endswith("_each") and alone is None
        p_value = float(p_values[place]) if is_tested else math.nan
        is_certain = not kind.endswith("_each") or p_value < thresholds.FALSE_POSITIVE_RATE
        yield OperationChange(
            level=level,
            name=name,
            rank=None if alone is None else ranks[alone],
            kind=kind,
            before_ns=before_ns,
            after_ns=after_ns,
            before_calls=before_calls,
            after_calls=after_calls,
            before_flops_per_s=before_pace,
            after_flops_per_s=after_pace,
            p_value=None if math.isnan(p_value) else p_value,
            is_significant=bool(is_certain and abs(after_ns - before_ns) >= thresholds.LEAST_SHARE * iteration_ns),
        )


def _by_rank(rows: Sequence[Row], ranks: Sequence[int], names: Sequence[str]) -> _WorkOfRanks:
    of_rank, of_name = ({key: place for place, key in enumerate(keys)} for keys in (ranks, names))
    result = np.zeros((3, len(ranks), len(names)))
    for row in rows:
        if row["rank"] in of_rank:
            flops = math.nan if row["flops"] is None else row["flops"]
            result[:, of_rank[row["rank"]], of_name[row["name"]]] = row["value"], row["calls"], flops
    return _WorkOfRanks(*result)


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
