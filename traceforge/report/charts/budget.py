"""The term budget: how long each term of an iteration takes, one bar a term.

In: terms with their mean duration in ms. Out: specification and table.
"""

from collections.abc import Sequence

from traceforge.report.charts.parts import Spec, bars_spec, bars_table, time_axis
from traceforge.report.islands import Dataset


def budget_spec(values: Sequence[str]) -> Spec:
    """The chart for terms with these values at the right."""
    return bars_spec("terms", time_axis("duration_ms", "ms per iteration"), ("term", "time"), values)


def budget_table(labels: Sequence[str], values: Sequence[str], durations_ms: Sequence[float]) -> Dataset:
    """The terms by column."""
    return bars_table(labels, values, "duration_ms", durations_ms)
