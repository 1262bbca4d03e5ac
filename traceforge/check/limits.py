"""Limits and whether a run keeps them. In: texts such as `iteration_ms=130`, a summary. Out: one result per limit.

A limit is exceeded if the value and its whole 95 % interval lie above it. A value above a limit that its interval still
includes is `within_noise`: another run might well have kept it. Values without an interval (counts, grades, fewer than
three iterations) are compared as they are. What cannot be measured never passes silently: where a part of a value was
not, the limit is kept only if it would be with that part, and exceeded only if it is without.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from traceforge.check.measured import GRADES, Measured, MeasuredValue
from traceforge.check.metrics import METRICS, Metric, Summary
from traceforge.errors import InputUnusableError, UsageError
from traceforge.thresholds import check as thresholds

_UNITS_MS = {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}
_SCHEMA_VERSION = 1


class LimitOutcome(StrEnum):
    """Whether a limit is kept."""

    ok = "ok"
    within_noise = "within noise"
    exceeded = "exceeded"
    not_measured = "not measured"


@dataclass(frozen=True, slots=True)
class MetricLimit:
    """The largest value that a metric may have; `basis` says where it comes from, empty where the user stated it."""

    metric: Metric
    value: float
    basis: str = ""


@dataclass(frozen=True, slots=True)
class LimitResult:
    """A limit with what was measured, which is None where the run does not show it, and a lower bound in part."""

    limit: MetricLimit
    measured: MeasuredValue | None
    outcome: LimitOutcome

    @property
    def margin(self) -> float | None:
        """How far the value is below the limit, over the limit; negative above it. None for grades and a limit of 0."""
        if self.measured is None or not self.limit.value or self.limit.metric.is_grade:
            return None
        if self.outcome is LimitOutcome.not_measured:
            return None
        return (self.limit.value - self.measured.value) / self.limit.value


def metric_of(name: str) -> Metric:
    """A metric by name.

    Raises:
        UsageError: there is none; the hint lists all.
    """
    if name not in METRICS:
        raise UsageError(f"there is no metric `{name}`", hint=f"metrics: {', '.join(METRICS)}")
    return METRICS[name]


def parse_limit(text: str) -> MetricLimit:
    """A limit such as `iteration_ms=130`, `p95_ms=0.2s`, `wait_share=20%` or `finding_confidence=low`.

    Raises:
        UsageError: it is not of that form, or there is no such metric.
    """
    name, sign, value = text.partition("=")
    metric = metric_of(name.strip())
    if not sign:
        raise UsageError(f"`{text}` names no limit", hint=f"write {metric.name}=VALUE")
    return MetricLimit(metric, _limit(metric, value.strip()))


def _limit(metric: Metric, text: str) -> float:
    if metric.is_grade:
        if text not in GRADES:
            raise UsageError(f"`{text}` is no confidence", hint=f"one of: {', '.join(GRADES)}")
        return float(GRADES.index(text))
    if metric.name.endswith("_ms"):
        for unit in sorted(_UNITS_MS, key=len, reverse=True):
            if text.endswith(unit):
                return _number(text.removesuffix(unit), metric) * _UNITS_MS[unit]
    return _number(text, metric)


def _number(text: str, metric: Metric | None) -> float:
    is_percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        where = f" for {metric.name}" if metric else ""
        raise UsageError(f"`{text}` is no limit{where}", hint="write a number that is not negative, such as 130 or 20%")
    return value / 100 if is_percent else value


def parse_tolerances(texts: Iterable[str]) -> tuple[float, dict[str, float]]:
    """The tolerance of all metrics (5 % where not stated), and those stated by name, such as `p95_ms=10%`.

    Raises:
        UsageError: one is no number, or names no metric.
    """
    general: float = thresholds.BASELINE_TOLERANCE
    by_name = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if sign:
            by_name[metric_of(name.strip()).name] = _number(value.strip(), None)
        else:
            general = _number(text.strip(), None)
    return general, by_name


def against_baseline(summary: Summary, tolerances: Sequence[str], *, where: str) -> list[MetricLimit]:
    """Limits from the summary of an earlier run.

    Times may grow by the tolerance in per cent of themselves, shares by as many points of the whole; counts and grades
    not at all. The metrics that sum up a run are compared, and those that `tolerances` names.

    Args:
        tolerances: texts such as `5%` (for all) and `p95_ms=10%`.
        where: the file, for errors.

    Raises:
        InputUnusableError: the summary is not one of `traceforge report --json`, or of another version of it.
        UsageError: a tolerance is wrong, or the summary does not hold a metric that one names.
    """
    general, by_name = parse_tolerances(tolerances)
    if summary.get("schema_version") != _SCHEMA_VERSION or not isinstance(summary.get("iterations"), Mapping):
        hint = "write it with `traceforge report DB --json SUMMARY.json`, by this version of traceforge"
        raise InputUnusableError("this is no summary of a report that can be read", where=where, hint=hint)
    limits = []
    for metric in METRICS.values():
        if not metric.compared and metric.name not in by_name:
            continue
        try:
            kept = metric.kept(summary)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputUnusableError(f"the summary is damaged at {metric.name}", where=where) from error
        if kept is not None and not math.isfinite(kept):
            raise InputUnusableError(f"the summary is damaged at {metric.name}", where=where)
        if kept is None and metric.name in by_name:
            raise UsageError(f"the baseline does not hold {metric.name}", where=where)
        if kept is not None:
            tolerance = by_name.get(metric.name, general)
            limits.append(MetricLimit(metric, *_allowed(metric, kept, tolerance)))
    return limits


def _allowed(metric: Metric, kept: float, tolerance: float) -> tuple[float, str]:
    if metric.is_grade:
        return kept, f"baseline {GRADES[int(kept)]}"
    if metric.is_share:
        return kept + tolerance, f"baseline {100 * kept:.3g} % + {100 * tolerance:.3g} points"
    if metric.name.endswith("_ms") or metric.name == "cv":
        return kept * (1 + tolerance), f"baseline {kept:.4g} + {100 * tolerance:.3g} %"
    return kept, f"baseline {kept:.4g}"


def check_limits(run: Measured, limits: Iterable[MetricLimit]) -> list[LimitResult]:
    """The result of each limit."""
    return [_result(limit, limit.metric.measured(run)) for limit in limits]


def _result(limit: MetricLimit, measured: MeasuredValue | None) -> LimitResult:
    if measured is None:
        return LimitResult(limit, None, LimitOutcome.not_measured)
    if measured.value <= limit.value:
        is_sure = measured.value + measured.unknown <= limit.value
        return LimitResult(limit, measured, LimitOutcome.ok if is_sure else LimitOutcome.not_measured)
    is_noise = measured.low is not None and measured.low <= limit.value
    if is_noise and measured.unknown:
        return LimitResult(limit, measured, LimitOutcome.not_measured)
    return LimitResult(limit, measured, LimitOutcome.within_noise if is_noise else LimitOutcome.exceeded)
