"""Changes around zero: point, interval and ceiling; of throughput by pacing policy, or from one run to another.

In: one row a policy or a part of the iteration. Out: specification and table.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from traceforge.report.charts.parts import (
    BAR_OFFSET,
    LABELLED_ROW_HEIGHT,
    TICKS,
    Spec,
    labelled,
    layered,
    row_axis,
    rows_of,
)
from traceforge.report.embedded_data import Dataset
from traceforge.report.palette import variable

_NARROWEST = 1.0  # per cent either side of zero, so that an effect of nothing looks like nothing
_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+.3~f')"


@dataclass(frozen=True, slots=True)
class ForestRow:
    """A row with its change, in the unit of the axis; the ceiling is the most that any pacing is likely to gain."""

    label: str
    value: str
    change: float
    low: float | None
    high: float | None
    ceiling: float | None


@dataclass(frozen=True, slots=True)
class Axis:
    """What is drawn: the axis' title, what a row is, what its value is, and the least reach either side of zero."""

    title: str = "change of throughput, %"
    row: str = "policy"
    value: str = "throughput"
    reach: float = _NARROWEST


def forest_spec(predictions: Sequence[ForestRow], wording: Axis = Axis()) -> Spec:  # frozen
    """The chart for these rows."""
    base = rows_of("policies")
    y = row_axis()
    ends = [end for one in predictions for end in (one.change, one.low, one.high, one.ceiling) if end is not None]
    scale = alt.Scale(domain=[min(-wording.reach, *ends), max(wording.reach, *ends)], nice=True)
    axis = alt.Axis(tickCount=TICKS, labelExpr=_SIGNED)
    x = alt.X("change:Q", title=wording.title, scale=scale, axis=axis)
    zero = rows_of("zero").mark_rule(stroke=variable("muted"), strokeDash=[3, 3]).encode(x=alt.X("at:Q"))
    intervals = (
        base.transform_filter("isValid(datum.low)")
        .mark_rule(yOffset=BAR_OFFSET, strokeWidth=2, stroke=variable("accent"))
        .encode(y=y, x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    )
    ceilings = (
        base.transform_filter("isValid(datum.ceiling)")
        .mark_tick(yOffset=BAR_OFFSET, size=16, thickness=2, color=variable("muted"))
        .encode(y=y, x=alt.X("ceiling:Q"), tooltip=[alt.Tooltip("ceiling:Q", title="ceiling, %", format="+.2f")])
    )
    points = base.mark_circle(yOffset=BAR_OFFSET, size=70, opacity=1, fill=variable("accent")).encode(
        y=y, x=x, tooltip=[alt.Tooltip("label:N", title=wording.row), alt.Tooltip("value:N", title=wording.value)]
    )
    known = [intervals] if any(one.low is not None for one in predictions) else []
    known += [ceilings] if any(one.ceiling is not None for one in predictions) else []
    layers = [zero, *known, points, *labelled(base, [one.value for one in predictions])]
    return layered(layers, height=len(predictions) * LABELLED_ROW_HEIGHT)


def forest_table(predictions: Sequence[ForestRow]) -> Dataset:
    """The policies by column."""
    return {
        "row": list(range(len(predictions))),
        "label": [one.label for one in predictions],
        "value": [one.value for one in predictions],
        "change": [round(one.change, 4) for one in predictions],
        "low": [_rounded(one.low) for one in predictions],
        "high": [_rounded(one.high) for one in predictions],
        "ceiling": [_rounded(one.ceiling) for one in predictions],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
