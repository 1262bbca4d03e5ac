"""The metrics that limits can be set on: one entry each. In: `Measured`, or a kept summary. Out: values by name.

A metric reads its value from a run, and from the summary that `traceforge report --json` writes, which serves as a
baseline without its database. Values are in the unit of their name: `_ms` milliseconds, `_share` 0..1, a grade is its
place in `none, low, medium, high`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from traceforge.check.measured import GRADES, Measured, Quantity, ratio

Summary = Mapping[str, Any]
_SIGNIFICANT = ("medium", "high")


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a run.

    Attributes:
        name: as in `--max NAME=VALUE`; its ending says the unit.
        about: one sentence for `--help` and for errors.
        measured: the value of a run; None where the run does not tell it.
        kept: the value in a summary; None where it is not in there.
        compared: whether a baseline compares it without being asked to.
    """

    name: str
    about: str
    measured: Callable[[Measured], Quantity | None]
    kept: Callable[[Summary], float | None]
    compared: bool = False

    @property
    def is_share(self) -> bool:
        """Whether its tolerance counts in points of the whole, not in per cent of itself."""
        return self.name.endswith("_share")

    @property
    def is_grade(self) -> bool:
        """Whether its values are words."""
        return self.name == "finding_confidence"


def _ms(quantity: Quantity | None) -> Quantity | None:
    if quantity is None:
        return None
    ends = (None if end is None else end / 1e6 for end in (quantity.low, quantity.high))
    return Quantity(quantity.value / 1e6, *ends)


def _iterations(key: str, factor: float = 1e-6) -> Callable[[Summary], float | None]:
    def read(summary: Summary) -> float | None:
        value = summary["iterations"].get(key)
        return None if value is None else float(value) * factor

    return read


def _shares(*phases: str) -> Callable[[Summary], float | None]:
    return lambda summary: sum(summary["phase_shares"].get(p, 0.0) for p in phases) if summary["phase_shares"] else None


def _phase(phase: str) -> Metric:
    about = f"Share of the ranks' time in the phase {phase}."
    return Metric(f"{phase}_share", about, lambda run: run.share_of(phase), _shares(phase))


def _largest_finding(run: Measured) -> Quantity | None:
    found = [Quantity(*finding[1:]) for finding in run.findings if finding[0] in _SIGNIFICANT]
    if not run.is_judged:
        return None
    return _ms(max(found, key=lambda quantity: quantity.value, default=Quantity(0.0)))


def _confidence(run: Measured) -> Quantity | None:
    grades = [GRADES.index(finding[0]) for finding in run.findings]
    return Quantity(float(max(grades, default=0))) if run.is_judged else None


def _kept_findings(summary: Summary) -> list[Mapping[str, Any]] | None:
    verdict = summary["verdict"]
    return None if verdict is None or verdict["kind"] == "cannot_be_known" else list(summary["findings"])


def _kept_confidence(summary: Summary) -> float | None:
    findings = _kept_findings(summary)
    return None if findings is None else float(max((GRADES.index(f["confidence"]) for f in findings), default=0))


def _kept_largest(summary: Summary) -> float | None:
    findings = _kept_findings(summary)
    if findings is None:
        return None
    told = [f["delay_ns_per_iteration"] / 1e6 for f in findings if f["confidence"] in _SIGNIFICANT]
    return float(max(told, default=0))


def _kept_count(summary: Summary) -> float | None:
    findings = _kept_findings(summary)
    return None if findings is None else float(sum(f["confidence"] in _SIGNIFICANT for f in findings))


def _count(run: Measured) -> Quantity | None:
    return Quantity(float(sum(f[0] in _SIGNIFICANT for f in run.findings))) if run.is_judged else None


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
           "transfer).", lambda run: run.share_of("wait", "transfer"), _shares("wait", "transfer"), True),
    *(_phase(phase) for phase in ("compute", "transfer", "wait", "copy", "input", "runtime", "idle")),
    Metric("delay_share", "Share of an iteration above what the same work takes at reference durations.",
           lambda run: ratio(run.excess_ns, run.accounted_ns), lambda _: None),
    Metric("finding_confidence", "Highest confidence of any finding: none, low, medium or high.", _confidence,
           _kept_confidence, True),
    Metric("finding_ms", "Delay an iteration of the largest finding of medium or high confidence.", _largest_finding,
           _kept_largest),
    Metric("findings", "Findings of medium or high confidence.", _count, _kept_count),
    Metric("lost_events", "Events of the files that could not be stored.", lambda run: Quantity(float(run.lost_events)),
           lambda summary: float(summary["trust"]["events_lost"])),
    Metric("unmatched_share", "Share of collective calls that were not matched across ranks.",
           lambda run: None if run.unmatched_share is None else Quantity(run.unmatched_share), lambda _: None),
    Metric("clock_residual_ms", "Largest uncertainty of any rank's clock.",
           lambda run: None if run.residual_ns is None else _ms(Quantity(float(run.residual_ns))), _residual),
)  # fmt: skip

METRICS = {metric.name: metric for metric in _ENTRIES}
"""All metrics by name, in the order in which help lists them."""
