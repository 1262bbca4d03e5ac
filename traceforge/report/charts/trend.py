"""A metric from run to run: values with their intervals, the level they scatter around, and where it changed.

In: one row a run, levels, changes. Out: specification and tables. Runs stand at equal distances, in order of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from traceforge.report.charts.parts import SMALL, TICKS, Spec, layered, rows_of
from traceforge.report.embedded_data import Dataset
from traceforge.report.palette import variable

_HEIGHT = 180


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """A run; `number` is its place in the series, from 1, the ends of the interval None where there is none."""

    number: int
    label: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class TrendLevel:
    """A usual value from one run to another; `change` says how it differs from the one before, empty for the first."""

    first: int
    last: int
    value: float
    change: str


# Of few runs the scale has ticks between them.
_WHOLE = "datum.value === floor(datum.value) ? format(datum.value, 'd') : ''"


def trend_spec(title: str, levels: Sequence[TrendLevel]) -> Spec:
    """The chart of a metric with this title and unit."""
    x = alt.X(
        "number:Q",
        title="run",
        scale=alt.Scale(zero=False, nice=False, padding=10),
        axis=alt.Axis(grid=False, tickCount=TICKS, labelExpr=_WHOLE),
    )
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(tickCount=5))
    runs = rows_of("runs")
    tooltip = [alt.Tooltip("label:N", title="run"), alt.Tooltip("value:Q", title=title, format=",.4~g")]
    intervals = (
        runs.transform_filter("isValid(datum.low)")
        .mark_rule(stroke=variable("line"), strokeWidth=2)
        .encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    )
    points = runs.mark_circle(size=36, opacity=1, fill=variable("accent")).encode(x=x, y=y, tooltip=tooltip)
    usual = (
        rows_of("levels")
        .mark_rule(stroke=variable("muted"), strokeWidth=2)
        .encode(x=alt.X("first:Q"), x2=alt.X2("last:Q"), y=alt.Y("value:Q"))
    )
    layers = [intervals, usual, points]
    if any(level.change for level in levels):
        rules = rows_of("changes").mark_rule(stroke=variable("caution"), strokeDash=[2, 2]).encode(x=alt.X("first:Q"))
        words = (
            rows_of("changes")
            .mark_text(align="left", baseline="bottom", dx=4, dy=-4, fontSize=SMALL, fill=variable("text"))
            .encode(x=alt.X("first:Q"), y=alt.Y("value:Q"), text=alt.Text("change:N"))
        )
        layers += [rules, words]
    return layered(layers, height=_HEIGHT)


def trend_tables(points: Sequence[TrendPoint], levels: Sequence[TrendLevel]) -> dict[str, Dataset]:
    """The tables of the chart; that of changes only where there are any."""
    changed = [level for level in levels if level.change]
    tables: dict[str, Dataset] = {
        "runs": {name: [getattr(point, name) for point in points] for name in TrendPoint.__slots__},
        "levels": {name: [getattr(level, name) for level in levels] for name in TrendLevel.__slots__},
    }
    if changed:
        tables["changes"] = {name: [getattr(level, name) for level in changed] for name in TrendLevel.__slots__}
    return tables
