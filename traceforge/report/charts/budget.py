"""The term budget: how long each term of an iteration takes, one bar a term.

In: terms with their mean duration in ms. Out: specification and table.
"""

from collections.abc import Sequence

import altair as alt

from traceforge.report.charts.parts import (
    BAR_HEIGHT,
    BAR_OFFSET,
    LABELLED_ROW_HEIGHT,
    Spec,
    finished,
    labelled,
    row_axis,
    rows_of,
    time_axis,
)
from traceforge.report.islands import Dataset
from traceforge.report.palette import variable


def budget_spec(values: Sequence[str]) -> Spec:
    """The chart for terms with these values at the right."""
    base = rows_of("terms")
    bars = base.mark_bar(height=BAR_HEIGHT, yOffset=BAR_OFFSET, cornerRadius=1, fill=variable("accent")).encode(
        y=row_axis(),
        x=time_axis("duration_ms", "ms per iteration"),
        tooltip=[alt.Tooltip("label:N", title="term"), alt.Tooltip("value:N", title="time")],
    )
    layers = alt.layer(bars, *labelled(base, values))
    return finished(layers.properties(width="container", height=len(values) * LABELLED_ROW_HEIGHT))


def budget_table(labels: Sequence[str], values: Sequence[str], durations_ms: Sequence[float]) -> Dataset:
    """The terms by column."""
    return {
        "row": list(range(len(labels))),
        "label": list(labels),
        "value": list(values),
        "duration_ms": [round(duration, 5) for duration in durations_ms],
    }
