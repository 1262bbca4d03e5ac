"""The metrics that limits can be set on: one entry each. In: `Measured`, or a kept summary. Out: values by name.

A metric reads its value from a run, or from the summary that `traceforge report --json` writes, which serves as a
baseline without a database. The name says the unit: `_ms` is milliseconds, `_share` 0..1; a grade is its index in
`none, low, medium, high`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from traceforge.check.measured import GRADES, Findings, Measured, MeasuredValue, ratio
from traceforge.vocabulary import vocabulary

Summary = Mapping[str, Any]
_SIGNIFICANT = ("medium", "high")
_COMMUNICATING = ("wait", "transfer", "communication")


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a run.

    Attributes:
        name: as in `--max NAME=VALUE`; its ending says the unit.
        about: one sentence for `--help` and for errors.
        measured: the value of a run; None where the run does not show it.
        kept: the value in a summary; None where the summary lacks it.
        compared: whether a baseline compares it without being asked to.
    """

    name: str
    about: str
    measured: Callable[[Measured], MeasuredValue | None]
    kept: Callable[[Summary], float | None]
    compared: bool = False

    @property
    def is_share(self) -> bool:
        """Whether its tolerance is in percentage points rather than relative."""
        return self.name.endswith("_share")

    @property
    def is_grade(self) -> bool:
        """Whether its values are words."""
        return self.name == "finding_confidence"


def _ms(measured: MeasuredValue | None) -> MeasuredValue | None:
    if measured is None:
        return None
    low, high = (None if end is None else end / 1e6 for end in (measured.low, measured.high))
    return MeasuredValue(measured.value / 1e6, low, high, measured.unknown / 1e6)


def _iterations(key: str, factor: float = 1e-6) -> Callable[[Summary], float | None]:
    def read(summary: Summary) -> float | None:
        value = summary["iterations"].get(key)
        return None if value is None else float(value) * factor

    return read


def _exposed(summary: Summary) -> float | None:
    """Waiting and transfer; where they are known together only, a summary has null for each."""
    shares = summary["phase_shares"]
    return sum(shares.get(phase) or 0.0 for phase in _COMMUNICATING) if shares else None


def _phase(phase: str) -> Metric:
    about = f"Share of the ranks' time in the phase {phase}."
    perhaps = "communication" if phase in ("wait", "transfer") else None
    return Metric(
        f"{phase}_share",
        about + (" Not measured where members of collectives have no trace." if perhaps else ""),
        lambda run: run.share_of(phase, perhaps=perhaps),
        lambda summary: summary["phase_shares"].get(phase, 0.0) if summary["phase_shares"] else None,
    )


def _about_findings(
    name: str, about: str, value_of: Callable[[Findings], MeasuredValue | None], *, compared: bool = False
) -> Metric:
    """A metric of the findings, worked out alike for a run and for a summary."""

    def measured(findings: Findings | None) -> MeasuredValue | None:
        return None if findings is None else value_of(findings)

    def kept(summary: Summary) -> float | None:
        value = measured(_kept_findings(summary))
        return None if value is None else value.value

    return Metric(name, about, lambda run: measured(run.findings), kept, compared)


def _kept_findings(summary: Summary) -> Findings | None:
    verdict = summary["verdict"]
    if verdict is None or verdict["kind"] == "cannot_be_known":
        return None
    return [(one["confidence"], MeasuredValue(one["delay_ns_per_iteration"])) for one in summary["findings"]]


def _confidence(findings: Findings) -> MeasuredValue:
    return MeasuredValue(float(max((GRADES.index(confidence) for confidence, _ in findings), default=0)))


def _largest(findings: Findings) -> MeasuredValue | None:
    delays = [delay for confidence, delay in findings if confidence in _SIGNIFICANT]
    return _ms(max(delays, key=lambda delay: delay.value, default=MeasuredValue(0.0)))


def _count(findings: Findings) -> MeasuredValue:
    return MeasuredValue(float(sum(confidence in _SIGNIFICANT for confidence, _ in findings)))


def _residual(summary: Summary) -> float | None:
    value = summary["trust"]["largest_residual_ns"]
    return None if value is None else float(value) / 1e6


_ENTRIES = (
    Metric("iteration_ms", "Mean iteration, over all ranks.", lambda run: _ms(run.mean()),
           _iterations("mean_ns"), True),
    Metric("p50_ms", "Median iteration.", lambda run: _ms(run.quantile(0.50)), _iterations("p50_ns")),
    Metric("p95_ms", "Time that one iteration in twenty exceeds.", lambda run: _ms(run.quantile(0.95)),
           _iterations("p95_ns"), True),
    Metric("p99_ms", "Time that one iteration in a hundred exceeds.", lambda run: _ms(run.quantile(0.99)),
           _iterations("p99_ns")),
    Metric("cv", "Standard deviation of the iterations over their mean.", lambda run: run.variation(),
           _iterations("variation", 1)),
    Metric("exposed_communication_share", "Share of the ranks' time in communication that no compute hides (wait and "
           "transfer).", lambda run: run.share_of(*_COMMUNICATING), _exposed, True),
    *(_phase(phase) for phase in vocabulary().phases if phase != "communication"),
    Metric("delay_share", "Share of an iteration above what the same work takes at reference durations.",
           lambda run: ratio(run.excess_ns, run.accounted_ns), lambda _: None),
    _about_findings("finding_confidence", "Highest confidence of any finding: none, low, medium or high.", _confidence,
                    compared=True),
    _about_findings("finding_ms", "Delay per iteration of the largest finding of medium or high confidence.", _largest),
    _about_findings("findings", "Findings of medium or high confidence.", _count),
    Metric("lost_events", "Events of the files that could not be stored.",
           lambda run: MeasuredValue(float(run.lost_events)),
           lambda summary: float(summary["trust"]["events_lost"])),
    Metric("unmatched_share", "Share of collective calls, sends and receives that were not matched across ranks.",
           lambda run: None if run.unmatched_share is None else MeasuredValue(run.unmatched_share), lambda _: None),
    Metric("clock_residual_ms", "Largest uncertainty of any rank's clock.",
           lambda run: None if run.residual_ns is None else _ms(MeasuredValue(float(run.residual_ns))), _residual),
)  # fmt: skip

METRICS = {metric.name: metric for metric in _ENTRIES}
"""All metrics by name, in the order in which help lists them."""
