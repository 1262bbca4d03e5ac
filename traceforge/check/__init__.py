"""Thresholds on a run, for continuous integration. In: a store and limits. Out: one judgement a limit, JUnit, markdown.

Reads meta.issue, align.clock, timeline.*, attribute.*. Each limit is judged against the measured value and its 95 %
interval: a value beyond the limit whose interval still holds the limit is told apart as within noise. Not handled:
trends over many runs; a limit below which a value must not fall.
"""

from traceforge.check.metrics import METRICS, Metric
from traceforge.check.thresholds import Judgement, Outcome, Threshold, against_baseline, judge, parse_limit

__all__ = ["METRICS", "Judgement", "Metric", "Outcome", "Threshold", "against_baseline", "judge", "parse_limit"]
