"""A run in the numbers that limits are set on. In: a store and a run. Out: `Measured`, series over judged iterations.

Intervals of means are those of `traceforge.stats`. Those of quantiles and of the variation come from a
circular block bootstrap with a fixed seed. Not handled: the uncertainty of counts and grades, which have none here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.stats import bootstrap_interval, mean_interval
from traceforge.store.database import Store

GRADES = ("none", "low", "medium", "high")

_PHASES = """
SELECT p.iteration, p.phase, CAST(SUM(p.duration_ns) AS DOUBLE) AS duration_ns
FROM timeline.phase AS p
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE p.run_id = ? AND NOT i.is_warmup AND NOT i.is_partial
GROUP BY p.iteration, p.phase
ORDER BY p.iteration
"""
_EXCESS = """
SELECT CAST(e.excess_ns AS DOUBLE) AS excess_ns, CAST(i.duration_ns AS DOUBLE) AS duration_ns
FROM attribute.excess AS e
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE e.run_id = ? AND NOT i.is_warmup
ORDER BY e.iteration
"""
_DURATIONS = """
SELECT CAST(duration_ns AS DOUBLE) AS duration_ns FROM timeline.iteration
WHERE run_id = ? AND NOT is_warmup AND NOT is_partial
ORDER BY iteration
"""
_FINDINGS = """
SELECT confidence, delay_ns_per_iteration, delay_low_ns, delay_high_ns FROM attribute.finding
WHERE run_id = ?
ORDER BY finding_id
"""
_COUNTS = """
SELECT
  (SELECT COALESCE(SUM(lost_events), 0) FROM meta.issue WHERE run_id = $1) AS lost_events,
  (SELECT COUNT(*) FROM attribute.verdict WHERE run_id = $1 AND kind <> 'cannot_be_known') AS judged,
  (SELECT CASE WHEN COUNT(*) > 1 THEN MAX(residual_ns) END FROM align.clock WHERE run_id = $1) AS residual_ns,
  (SELECT 1 - matched_share FROM timeline.matching WHERE run_id = $1) AS unmatched_share
"""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeasuredValue:
    """A value with its 95 % interval; the ends are None where the value is exact or its uncertainty is unknown.

    Attributes:
        unknown: what was not measured may add this much to the value, and to both ends.
    """

    value: float
    low: float | None = None
    high: float | None = None
    unknown: float = 0.0


Findings = Sequence[tuple[str, MeasuredValue]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A run in the numbers that limits are set on; times in ns.

    Attributes:
        durations_ns: of the judged iterations, in order.
        phases_ns: time in each phase, summed over ranks, by judged iteration.
        excess_ns, accounted_ns: excess and duration of each iteration that the ledger covers.
        findings: confidence and delay (ns) of each finding; None where the run allows no verdict, so that "no finding"
            would mean nothing.
    """

    durations_ns: Values
    phases_ns: Mapping[str, Values]
    excess_ns: Values
    accounted_ns: Values
    findings: Findings | None
    lost_events: int
    residual_ns: float | None
    unmatched_share: float | None

    def mean(self) -> MeasuredValue | None:
        """Mean iteration, ns."""
        return _with_interval(self.durations_ns) if len(self.durations_ns) else None

    def quantile(self, share: float) -> MeasuredValue | None:
        """A quantile of the iterations' durations, linearly interpolated, ns."""
        return self._drawn(lambda values: np.quantile(values, share, axis=-1))

    def variation(self) -> MeasuredValue | None:
        """Sample standard deviation over mean; None below two iterations."""
        if len(self.durations_ns) < 2:
            return None
        return self._drawn(lambda values: values.std(axis=-1, ddof=1) / values.mean(axis=-1))

    def share_of(self, *phases: str, perhaps: str | None = None) -> MeasuredValue | None:
        """Time in these phases over all time of all ranks.

        Args:
            perhaps: the phase whose time may belong to them: nobody knows.
        """
        if not self.phases_ns:
            return None
        whole = np.sum(list(self.phases_ns.values()), axis=0)
        part = np.sum([self.phases_ns.get(phase, np.zeros_like(whole)) for phase in phases], axis=0)
        share = ratio(part, whole)
        if share is None:
            return None
        unknown = float(self.phases_ns[perhaps].sum() / whole.sum()) if perhaps and perhaps in self.phases_ns else 0.0
        # A share of time is never negative, whatever a symmetric interval says.
        return MeasuredValue(share.value, share.low and max(0.0, share.low), share.high, unknown)

    def _drawn(self, statistic: Callable[[Values], Values]) -> MeasuredValue | None:
        values = self.durations_ns
        if not len(values):
            return None
        measured = float(statistic(values))
        interval = bootstrap_interval(values, statistic, np.random.default_rng(0))
        if interval is None:
            return MeasuredValue(measured)
        return MeasuredValue(measured, min(interval.low, measured), max(interval.high, measured))


def ratio(part: Values, whole: Values) -> MeasuredValue | None:
    """Sum over sum, with the interval of the ratio (first order); None where there is nothing to divide."""
    if not len(whole) or not whole.sum():
        return None
    share = float(part.sum() / whole.sum())
    return _with_interval(share + (part - share * whole) / whole.mean())


def _with_interval(values: Values) -> MeasuredValue:
    return MeasuredValue(float(values.mean()), *(mean_interval(values) or (None, None)))


def measure(store: Store, run_id: int) -> Measured:
    """The numbers of a run."""
    phases = store.query(_PHASES, [run_id])
    iterations = {number: place for place, number in enumerate(phases["iteration"].unique(maintain_order=True))}
    by_phase = {phase: np.zeros(len(iterations)) for phase in phases["phase"].unique().sort()}
    for iteration, phase, duration_ns in phases.iter_rows():
        by_phase[phase][iterations[iteration]] = duration_ns
    excess = store.arrays(_EXCESS, [run_id])
    findings = [(confidence, MeasuredValue(*delay)) for confidence, *delay in store.rows(_FINDINGS, [run_id])]
    counts = store.query(_COUNTS, [run_id]).row(0, named=True)
    return Measured(
        durations_ns=store.arrays(_DURATIONS, [run_id])["duration_ns"],
        phases_ns=by_phase,
        excess_ns=excess["excess_ns"],
        accounted_ns=excess["duration_ns"],
        findings=findings if counts["judged"] else None,
        lost_events=int(counts["lost_events"]),
        residual_ns=counts["residual_ns"],
        unmatched_share=counts["unmatched_share"],
    )
