"""A quantity by number of ranks: what was measured, the forecast with its band, and where one more rank stops paying.

In: one row a number of ranks. Out: specification and tables. Beyond the measured scales the line is dashed and the
band lighter, so that nobody takes a forecast for a measurement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from traceforge.report.charts.parts import SMALL, Spec, layered, rows_of, y_at
from traceforge.report.embedded_data import Dataset
from traceforge.report.palette import variable

_HEIGHT = 240
_MEASURED, _EXTRAPOLATED = "measured range", "extrapolated"


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The forecast at one number of ranks; None where there is no value or no band."""

    ranks: int
    value: float | None
    low: float | None
    high: float | None
    extrapolated: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A measured value, or (with `value` None) a number of ranks at which something changes."""

    ranks: int
    value: float | None
    label: str


def scaling_spec(title: str, ranks: Sequence[int], tables: Mapping[str, Dataset]) -> Spec:
    """The chart over these tables.

    Args:
        title: what is shown, with its unit.
        ranks: numbers of ranks to label.
        tables: as made by `scaling_tables`; only those that hold rows.
    """
    scale = alt.Scale(type="log", base=2, domain=[min(ranks), max(ranks)], nice=False, padding=6)
    axis = alt.Axis(values=sorted(set(ranks)), format="d", grid=False)
    x = alt.X("ranks:Q", title="ranks", scale=scale, axis=axis)
    y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(tickCount=5))
    layers = {
        "beyond": _band("beyond", 0.14, x),
        "band": _band("band", 0.28, x),
        "knees": rows_of("knees")
        .mark_rule(stroke=variable("muted"), strokeDash=[2, 3])
        .encode(x=x, tooltip=[alt.Tooltip("label:N", title="limit")]),
        "forecast": _line("forecast", x, y, dashed=True),
        "fitted": _line("fitted", x, y, dashed=False),
        "measured": rows_of("measured")
        .mark_circle(size=70, opacity=1, fill=variable("text"))
        .encode(x=x, y=y, tooltip=_tooltip("label:N", "measured")),
    }
    shown = [layer for name, layer in layers.items() if name in tables]
    if "border" in tables:
        shown.append(_border_label(x))
    if "knees" in tables:
        shown.append(_knee_labels(x))
    return layered(shown, height=_HEIGHT)


def scaling_tables(curve: Sequence[CurvePoint], measured: Sequence[Mark], knees: Sequence[Mark]) -> dict[str, Dataset]:
    """The tables of the chart by name; those without rows are left out.

    The last measured scale belongs to both parts, so that they meet.
    """
    inside = [point for point in curve if not point.extrapolated]
    outside = [point for point in curve if point.extrapolated]
    beyond = inside[-1:] + outside if outside else []
    tables = {
        "band": _band_table(inside),
        "beyond": _band_table(beyond),
        "fitted": _line_table(inside, _MEASURED),
        "forecast": _line_table(beyond, _EXTRAPOLATED),
        "measured": _marks(measured),
        "knees": _marks(knees),
        "border": _marks([Mark(beyond[0].ranks, None, f"{_EXTRAPOLATED} →")] if len(beyond) > 1 else []),
    }
    return {name: table for name, table in tables.items() if table["ranks"]}


def _band(table: str, opacity: float, x: alt.X) -> alt.Chart:
    area = rows_of(table).mark_area(fill=variable("accent"), opacity=opacity, line=False)
    drawn: alt.Chart = area.encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    return drawn


def _line(table: str, x: alt.X, y: alt.Y, *, dashed: bool) -> alt.Chart:
    line = rows_of(table).mark_line(
        stroke=variable("accent"), strokeWidth=2, strokeDash=[6, 4] if dashed else [1, 0], point=False
    )
    drawn: alt.Chart = line.encode(x=x, y=y, tooltip=_tooltip("part:N", "forecast"))
    return drawn


def _border_label(x: alt.X) -> alt.Chart:
    text = rows_of("border").mark_text(
        align="left", baseline="bottom", dx=6, dy=-4, fontSize=SMALL, fill=variable("muted")
    )
    drawn: alt.Chart = text.encode(x=x, y=y_at(_HEIGHT), text=alt.Text("label:N"))
    return drawn


def _knee_labels(x: alt.X) -> alt.Chart:
    text = rows_of("knees").mark_text(align="left", baseline="top", dx=4, dy=2, fontSize=SMALL, fill=variable("muted"))
    drawn: alt.Chart = text.encode(x=x, y=y_at(0), text=alt.Text("label:N"))
    return drawn


def _tooltip(name: str, title: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("ranks:Q", title="ranks", format="d"),
        alt.Tooltip("value:Q", title="value", format=",.4~g"),
        alt.Tooltip(name, title=title),
    ]


def _band_table(points: Sequence[CurvePoint]) -> Dataset:
    shown = [point for point in points if point.low is not None and point.high is not None]
    return {
        "ranks": [point.ranks for point in shown],
        "low": [round(point.low or 0.0, 4) for point in shown],
        "high": [round(point.high or 0.0, 4) for point in shown],
    }


def _line_table(points: Sequence[CurvePoint], part: str) -> Dataset:
    shown = [point for point in points if point.value is not None]
    return {
        "ranks": [point.ranks for point in shown],
        "value": [round(point.value or 0.0, 4) for point in shown],
        "part": [part] * len(shown),
    }


def _marks(marks: Sequence[Mark]) -> Dataset:
    return {
        "ranks": [mark.ranks for mark in marks],
        "value": [None if mark.value is None else round(mark.value, 4) for mark in marks],
        "label": [mark.label for mark in marks],
    }
