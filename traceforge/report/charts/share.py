"""Shares of a whole, one bar a row. In: labels, values and shares 0..1. Out: specification and table."""

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
)
from traceforge.report.islands import Dataset
from traceforge.report.palette import variable


def share_spec(values: Sequence[str], title: str) -> Spec:
    """The chart for rows with these values at the right; `title` says what is shared."""
    base = rows_of("shares")
    axis = alt.Axis(format="%", tickCount=5)
    bars = base.mark_bar(height=BAR_HEIGHT, yOffset=BAR_OFFSET, cornerRadius=1, fill=variable("accent")).encode(
        y=row_axis(),
        x=alt.X("share:Q", title=title, scale=alt.Scale(zero=True, nice=True), axis=axis),
        tooltip=[alt.Tooltip("label:N", title="NIC"), alt.Tooltip("value:N", title="carries")],
    )
    layers = alt.layer(bars, *labelled(base, values))
    return finished(layers.properties(width="container", height=len(values) * LABELLED_ROW_HEIGHT))


def share_table(labels: Sequence[str], values: Sequence[str], shares: Sequence[float]) -> Dataset:
    """The rows by column."""
    return {
        "row": list(range(len(labels))),
        "label": list(labels),
        "value": list(values),
        "share": [round(share, 5) for share in shares],
    }
