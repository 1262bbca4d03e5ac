"""What charts share: the theme, the finishing of a specification, rows with a text line above each bar.

In: Altair charts. Out: Vega-Lite as plain data. Nothing here names a view or a parameter by Altair's own counters,
which would make two reports of the same data differ.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from traceforge.report.embedded_data import Dataset
from traceforge.report.palette import MODES, PHASES, fill, variable

FONT = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, system-ui, sans-serif'
SMALL, TEXT = 11, 12
LABELLED_ROW_HEIGHT = 44
_TEXT_OFFSET, BAR_OFFSET, BAR_HEIGHT = -9, 9, 12
_LETTER_WIDTH = 7.2
_MOST_PARTED_ROWS = 64
TICKS = alt.ExprRef("ceil(width / 110)")

Spec = dict[str, Any]


def theme() -> Spec:
    """Vega-Lite configuration of every chart; colours follow the page."""
    quiet = {"labelColor": variable("muted"), "titleColor": variable("muted")}
    return {
        # A chart is one picture with a description, and its numbers are a table: a label a mark would be hundreds.
        "aria": False,
        "background": "transparent",
        "font": FONT,
        "padding": {"left": 2, "right": 8, "top": 4, "bottom": 4},
        "view": {"stroke": None},
        "axis": {
            **quiet,
            "labelFontSize": SMALL,
            "titleFontSize": TEXT,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "gridColor": variable("grid"),
            "domainColor": variable("line"),
            "tickColor": variable("line"),
            "labelOverlap": True,
            "labelSeparation": 6,
            "labelFlush": True,
        },
        "axisY": {"titleAngle": -90, "labelFlush": False},
        "text": {"fill": variable("text"), "fontSize": TEXT},
        "rule": {"stroke": variable("text")},
    }


def finished(chart: alt.Chart, *, height: float) -> Spec:
    """The specification without Altair's own theme and schema address; not validated, see `unvalidated`."""
    return {**_plain(chart), "height": height, "width": "container"}


def layered(layers: Sequence[alt.Chart], *, height: float) -> Spec:
    """The specification of charts on top of one another; a table that all of them show is named once, for all.

    Altair's own `layer` copies all of them down to the last value, several times over.
    """
    specs = [_plain(layer) for layer in layers]
    shared = specs[0].get("data")
    if any(spec.get("data") != shared for spec in specs):
        return {"layer": specs, "height": height, "width": "container"}
    own = [{key: part for key, part in spec.items() if key != "data"} for spec in specs]
    return {"layer": own, "data": shared, "height": height, "width": "container"}


def _plain(chart: alt.Chart) -> Spec:
    spec: Spec = chart.to_dict(validate=False)
    spec.pop("config", None)
    spec.pop("$schema", None)
    return spec


@contextmanager
def unvalidated() -> Iterator[None]:
    """Inside, Altair does not hold each part of a chart against its schema, most of the time that a page takes.

    What a chart is made of stands in our sources; that it is valid is what tests are for.
    """
    with debug_mode(False):
        yield


def rows_of(name: str) -> alt.Chart:
    """A chart over the table of that name."""
    return alt.Chart(alt.NamedData(name))


def row_height(rows: int) -> int:
    """Height of a row in px: 24 for a few rows, 5 for many."""
    return max(5, min(24, 620 // max(rows, 1)))


def phase_colour() -> alt.Color:
    """Colour by phase; the legend stands in the page, not in the chart."""
    scale = alt.Scale(domain=list(PHASES), range=[fill(phase) for phase in PHASES])
    return alt.Color("phase:N", scale=scale, legend=None)


def mode_colour() -> alt.Color:
    """Colour by failure mode; a `credit`, the `total`, what is `avoidable` and what is `given` belong to none."""
    names = [*MODES, "credit", "total", "avoidable", "given"]
    others = (variable("line"), variable("muted"), variable("accent"), variable("muted"))
    scale = alt.Scale(domain=names, range=[*(fill(mode) for mode in MODES), *others])
    return alt.Color("mode:N", scale=scale, legend=None)


def time_axis(field: str, title: str, *, nice: bool = True) -> alt.X:
    """A zero-based axis of times in ms; it ends at a round number if `nice`, else with the data."""
    scale = alt.Scale(zero=True, nice=nice)
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=TICKS))


def share_axis(title: str) -> alt.X:
    """A zero-based axis of shares, in per cent."""
    per_cent = "format(100 * datum.value, ',.3~r') + '\N{NO-BREAK SPACE}%'"
    axis = alt.Axis(labelExpr=per_cent, tickCount=5)
    return alt.X("share:Q", title=title, scale=alt.Scale(zero=True, nice=True), axis=axis)


def rank_axis(rows: int) -> alt.Y:
    """One row a rank, in the order of the data; rows touch where there are many."""
    axis = alt.Axis(domain=False, ticks=False, labelPadding=5, labelFontSize=10)
    scale = alt.Scale(paddingInner=0.12 if rows <= _MOST_PARTED_ROWS else 0)
    return alt.Y("rank:N", title="rank", sort=None, axis=axis, scale=scale)


def labelled(base: alt.Chart, values: Sequence[str]) -> list[alt.Chart]:
    """Two texts above each bar: `label` at the left, `value` at the right edge. No axis labels that could clip.

    Args:
        values: the texts at the right; a label is cut where the longest of them begins.
    """
    room = _LETTER_WIDTH * max(map(len, values)) + 10
    row = base.encode(y=row_axis())
    name = row.mark_text(
        align="left", baseline="middle", dy=_TEXT_OFFSET, limit=alt.ExprRef(f"max(40, width - {room:.0f})")
    ).encode(x=x_at(0), text=alt.Text("label:N"))
    value = row.mark_text(align="right", baseline="middle", dy=_TEXT_OFFSET, fontWeight=600).encode(
        x=x_at("width"), text=alt.Text("value:N")
    )
    return [name, value]


def x_at(place: float | str) -> alt.XValue:
    """The same place from the left for every mark, in px or as an expression such as `width`."""
    return alt.XValue(place)  # type: ignore[no-untyped-call]  # Altair states no types here


def y_at(place: float) -> alt.YValue:
    """The same place from the top for every mark, in px."""
    return alt.YValue(place)  # type: ignore[no-untyped-call]  # as above


def row_axis() -> alt.Y:
    """Rows from top to bottom by the number in `row`, without labels."""
    return alt.Y("row:O", axis=None, scale=alt.Scale(paddingInner=0, paddingOuter=0))


def bars_spec(dataset: str, x: alt.X, tooltips: tuple[str, str], values: Sequence[str]) -> Spec:
    """One labelled bar a row of a table with the columns `row`, `label`, `value` and that of `x`.

    Args:
        tooltips: what label and value are called where the pointer rests.
        values: the texts at the right, one a row.
    """
    base = rows_of(dataset)
    named = [
        alt.Tooltip(f"{column}:N", title=title) for column, title in zip(("label", "value"), tooltips, strict=True)
    ]
    bars = base.mark_bar(height=BAR_HEIGHT, yOffset=BAR_OFFSET, cornerRadius=1, fill=variable("accent")).encode(
        y=row_axis(), x=x, tooltip=named
    )
    return layered([bars, *labelled(base, values)], height=len(values) * LABELLED_ROW_HEIGHT)


def bars_table(labels: Sequence[str], values: Sequence[str], column: str, lengths: Sequence[float]) -> Dataset:
    """The rows of such bars by column."""
    return {
        "row": list(range(len(labels))),
        "label": list(labels),
        "value": list(values),
        column: [round(length, 5) for length in lengths],
    }
