"""Limits on a run, for continuous integration. In: a store and limits. Out: one result per limit, JUnit, markdown.

Reads meta.issue, align.clock, timeline.*, attribute.*. Each limit is compared with the measured value and its 95 %
interval: a value beyond a limit that lies inside the interval is reported as within noise. Not handled: trends over
many runs; lower limits.
"""

from traceforge.check.comparable import refuse_unlike
from traceforge.check.limits import LimitOutcome, LimitResult, MetricLimit, against_baseline, check_limits, parse_limit
from traceforge.check.metrics import METRICS, Metric

__all__ = [
    "METRICS",
    "LimitOutcome",
    "LimitResult",
    "Metric",
    "MetricLimit",
    "against_baseline",
    "check_limits",
    "parse_limit",
    "refuse_unlike",
]
