"""Shares of a whole, one bar a row. In: labels, values and shares 0..1. Out: specification and table."""

from collections.abc import Sequence

import altair as alt

from traceforge.report.charts.parts import Spec, bars_spec, bars_table
from traceforge.report.islands import Dataset


def share_spec(values: Sequence[str], title: str) -> Spec:
    """The chart for rows with these values at the right; `title` says what is shared."""
    axis = alt.Axis(format="%", tickCount=5)
    x = alt.X("share:Q", title=title, scale=alt.Scale(zero=True, nice=True), axis=axis)
    return bars_spec("shares", x, ("NIC", "carries"), values)


def share_table(labels: Sequence[str], values: Sequence[str], shares: Sequence[float]) -> Dataset:
    """The rows by column."""
    return bars_table(labels, values, "share", shares)
