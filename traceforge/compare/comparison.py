"""Two runs compared, row by row. In: two sides. Out: `Comparison`, every row with its interval and p-value.

A row is a mean time per judged iteration: of the whole, of a phase, a cause, a class of collectives, a rank. Phases add
up to the mean iteration of a rank; causes, with the reference durations, to the iteration. A change is significant if
it exceeds scatter (the families of rows share a 1 % chance of any false one, Holm within each), 0.5 % of an iteration,
and the uncertainty of clocks; a rank's, if by as much it also stands out of how much the other ranks changed
(`traceforge.thresholds.compare`). What comes and goes shows in the findings of both runs, not in means.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from traceforge.compare.comparability import JobFacts, Objection, job_facts, objections, other_program
from traceforge.compare.finding_changes import FindingChange, finding_changes
from traceforge.compare.operation_changes import OperationChange, operation_changes
from traceforge.compare.sides import Row, Side, query_text
from traceforge.errors import UsageError
from traceforge.stats import LEAST_COUNT, Values, holm, least_seen, mean_difference, prediction_reach, share_above
from traceforge.thresholds import compare as thresholds
from traceforge.thresholds.align import RESOLUTION_RESIDUALS


class _Family(NamedTuple):
    """Rows of one kind: their query, their name in a comparison, and whether they are times between two clocks."""

    query: str
    name: str
    is_between_clocks: bool = False
    is_by_rank: bool = False


_ITERATION = _Family("iteration", "iteration")
_PHASE = _Family("phase", "phase")
_REFERENCE = "reference"
_COMMUNICATING = ("wait", "transfer", "communication")
_FAMILIES = (
    _PHASE,
    _Family("cause", "cause"),
    _Family("collective_transfer", "collective_transfer", is_between_clocks=True),
    _Family("collective_skew", "collective_skew", is_between_clocks=True),
    _Family("rank_own", "rank_work", is_by_rank=True),
    _Family("rank_delay", "rank_delay", is_by_rank=True),
)
QUERIES = ("job", "calls", "iteration", "finding", "operation", *(family.query for family in _FAMILIES))


@dataclass(frozen=True, slots=True)
class Change:
    """One row: a mean time per iteration in both runs, ns.

    Attributes:
        family: iteration, phase, cause, collective_transfer, collective_skew, rank_work or rank_delay.
        name: which of them: `wait`; `mode/cause` or `reference`; `op/size class/ranks`; a rank.
        low_ns, high_ns: 95 % interval of the difference; None where the scatter is unknown.
        p_value: probability of so large a difference by scatter alone, adjusted for the family's size; None likewise.
        below_resolution: whether the difference is below the uncertainty of the clocks.
    """

    family: str
    name: str
    before_ns: float
    after_ns: float
    low_ns: float | None
    high_ns: float | None
    p_value: float | None
    is_significant: bool
    below_resolution: bool = False

    @property
    def difference_ns(self) -> float:
        """After minus before, ns."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one run (`before`, the baseline) to another.

    Attributes:
        iteration: the mean iteration.
        slower_share: share of all pairs of iterations, one of each run, in which that of `after` took longer.
        durations_ns: durations of the judged iterations of both, in order.
        findings: what stands out of either run, new ones first.
        changes: all rows, by family, the significant first, then by size.
        work: what is worked on, by operation and finer, the significant changes first, then by size.
        objections: why the runs are not fully comparable.
        queries: names and texts of the queries, as executed for `after`.
        paced: rows of replay.paced of `after`: what pacing brought while it ran, beside what was predicted.
    """

    before: JobFacts
    after: JobFacts
    iteration: Change
    slower_share: float
    durations_ns: tuple[Values, Values]
    findings: Sequence[FindingChange]
    changes: Sequence[Change]
    work: Sequence[OperationChange]
    objections: Sequence[Objection]
    queries: Sequence[tuple[str, str]]
    paced: Sequence[Row] = ()

    @property
    def unseen_ns(self) -> float | None:
        """The largest change of the iteration that may well not have shown, ns; None where the scatter is unknown."""
        if self.iteration.low_ns is None:
            return None
        before_ns, after_ns = self.durations_ns
        seen_ns = least_seen(before_ns[:, None], after_ns[:, None], thresholds.FALSE_POSITIVE_RATE)
        return max(float(seen_ns[0]), thresholds.LEAST_SHARE * self.iteration.before_ns)

    @property
    def pace_ns(self) -> tuple[float, float] | None:
        """What an iteration takes of the job's time in both runs, ns; None where in neither iterations overlap."""
        paces = self.before.overlapping_ns, self.after.overlapping_ns
        if paces == (None, None):
            return None
        return paces[0] or self.iteration.before_ns, paces[1] or self.iteration.after_ns

    @property
    def is_judged(self) -> bool:
        """Whether `no significant change` would mean something: enough iterations, and scatter that hides little."""
        if self.iteration.is_significant:
            return True
        few = min(map(len, self.durations_ns)) < thresholds.LEAST_ITERATIONS
        limit_ns = thresholds.MOST_UNSEEN_SHARE * self.iteration.before_ns
        return not few and self.unseen_ns is not None and self.unseen_ns <= limit_ns

    @property
    def operations(self) -> list[OperationChange]:
        """The work by operation."""
        return [one for one in self.work if one.level == "operation"]

    @property
    def details(self) -> list[OperationChange]:
        """The work by kernel, module and shapes, as far as it changed."""
        return [one for one in self.work if one.level != "operation" and one.difference_ns]

    def of(self, family: str, *, only_significant: bool = False) -> list[Change]:
        """The rows of a family."""
        return [c for c in self.changes if c.family == family and (c.is_significant or not only_significant)]


def compare_runs(before: Side, after: Side, *, force: bool = False) -> Comparison:
    """What changed between two runs.

    Args:
        before: the baseline.
        force: compare although the number of ranks differs.

    Raises:
        UsageError: the runs are not comparable; the message names the field.
    """
    facts = job_facts(before), job_facts(after)
    against = objections(*facts)
    for objection in against:
        if objection.is_refusal and not (force and all(side.iterations for side in facts)):
            raise _refusal(objection)
    durations = tuple(_matrix(side.rows("iteration"), ["iteration"])[:, 0] for side in (before, after))
    mean_ns = durations[0].mean()
    (whole,) = _changes(_ITERATION, (before, after), facts, mean_ns, 1)
    changes = [c for family in _FAMILIES for c in _changes(family, (before, after), facts, mean_ns, len(_FAMILIES))]
    if not whole.is_significant:
        # Reference durations are medians of a run, the same in each of its iterations: their own error does not show
        # as scatter, so that alone they are no evidence of a change.
        changes = [replace(one, is_significant=False) if one.name == _REFERENCE else one for one in changes]
    if min(map(len, durations)) < thresholds.LEAST_ITERATIONS and not whole.is_significant:
        # A part that stays the same by its making, such as the reference, is no evidence where the whole is none.
        changes = [replace(change, is_significant=False) for change in changes]
    work = operation_changes(before, after, mean_ns)
    return Comparison(
        before=facts[0],
        after=facts[1],
        iteration=whole,
        slower_share=share_above(*durations),
        durations_ns=(durations[0], durations[1]),
        findings=finding_changes(before, after),
        changes=changes,
        work=work,
        objections=[*other_program(work), *against],
        queries=[(name, query_text(name, after.run_id)) for name in QUERIES],
        paced=after.rows("paced"),
    )


def _refusal(objection: Objection) -> UsageError:
    hint = "give two runs of the same job on the same number of ranks"
    if objection.field == "world_size":
        hint = "`traceforge forecast` takes runs of several scales; `force` (`--force`) compares these all the same"
    if objection.field == "iterations":
        hint = "`traceforge doctor` says why a run has none, and how to record them"
    what = f"not comparable by {objection.field} ({objection.before} against {objection.after}): {objection.why}"
    return UsageError(what, hint=hint)


def _changes(
    family: _Family, sides: tuple[Side, Side], facts: tuple[JobFacts, JobFacts], iteration_ns: float, families: int
) -> list[Change]:
    rows = [side.rows(family.query) for side in sides]
    if family is _PHASE and any(side.is_split is False for side in facts):
        rows = [_together(side) for side in rows]
    names = list(dict.fromkeys(row["name"] for side in rows for row in side))
    if not rows[0] or not rows[1]:
        return []
    found = mean_difference(_matrix(rows[0], names), _matrix(rows[1], names))
    p_values = found.p_value if np.isnan(found.p_value).any() else holm(found.p_value)
    unsure_ns = RESOLUTION_RESIDUALS * max(side.residual_ns for side in facts) if family.is_between_clocks else 0
    changes = []
    for place, name in enumerate(names):
        gap, p_value = abs(float(found.difference[place])), float(p_values[place])
        calls = max(side.calls.get(name, 1.0) for side in facts)
        is_unsure = bool(0 < gap < unsure_ns * calls)
        least_ns = thresholds.LEAST_SHARE * iteration_ns
        is_large = gap >= least_ns
        stands_out = not family.is_by_rank or _stands_out(found.difference, place, least_ns)
        is_beyond_scatter = p_value < thresholds.FALSE_POSITIVE_RATE / families
        changes.append(
            Change(
                family=family.name,
                name=name,
                before_ns=float(found.before[place]),
                after_ns=float(found.after[place]),
                low_ns=_known(found.low[place]),
                high_ns=_known(found.high[place]),
                p_value=_known(p_value),
                is_significant=bool(is_large and is_beyond_scatter and stands_out and not is_unsure),
                below_resolution=is_unsure,
            )
        )
    return sorted(changes, key=lambda change: (not change.is_significant, -abs(change.difference_ns), change.name))


def _stands_out(differences: Values, place: int, least_ns: float) -> bool:
    """Whether a rank changed otherwise than the others: each drifts by a little from run to run, in its own way."""
    others = np.delete(differences, place)
    if not len(others):
        return True
    apart = abs(differences[place] - np.median(others))
    chance = thresholds.RANK_DRIFT_RATE / len(differences)
    is_drift = len(others) >= LEAST_COUNT and apart <= prediction_reach(others, chance)
    return bool(apart >= least_ns and not is_drift)


def _together(rows: Sequence[Row]) -> list[Row]:
    """Phases with waiting and transfer as one, where one of the runs does not tell them apart."""
    total: dict[tuple[int, str], float] = {}
    for row in rows:
        key = row["iteration"], "communication" if row["name"] in _COMMUNICATING else row["name"]
        total[key] = total.get(key, 0.0) + row["value"]
    return [{"iteration": iteration, "name": name, "value": value} for (iteration, name), value in total.items()]


def _matrix(rows: Sequence[Row], names: Sequence[str]) -> Values:
    """Values of shape (iterations, names); 0 where an iteration lacks a name."""
    iterations = {number: place for place, number in enumerate(sorted({row["iteration"] for row in rows}))}
    columns = {name: place for place, name in enumerate(names)}
    values = np.zeros((len(iterations), len(names)))
    for row in rows:
        values[iterations[row["iteration"]], columns[row["name"]]] = row["value"] or 0.0
    return values


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
