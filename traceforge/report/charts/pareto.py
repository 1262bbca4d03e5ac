"""Parameters of pacing policies: throughput against variation, with what nothing beats joined by a line.

In: one row a combination of parameters, per cent. Out: specification and table. Only points on the front carry their
intervals; the unpaced run is where the dashed lines cross.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from traceforge.report.charts.parts import TICKS, Spec, layered, rows_of
from traceforge.report.embedded_data import Dataset
from traceforge.report.palette import variable

_HEIGHT = 260
_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+.3~f')"


@dataclass(frozen=True, slots=True)
class Trial:
    """A policy with parameters: change of throughput and variation of the iteration time, per cent, with intervals."""

    label: str
    change: float
    low: float
    high: float
    variation: float
    variation_low: float
    variation_high: float
    is_on_front: bool


def pareto_spec() -> Spec:
    """The chart over tables `trials`, `front` and `zero`."""
    scale = alt.Scale(zero=False, nice=True, padding=12)
    axis = alt.Axis(tickCount=TICKS, labelExpr=_SIGNED)
    x = alt.X("change:Q", title="change of throughput, %", scale=scale, axis=axis)
    y = alt.Y("variation:Q", title="variation of steps end to end, %", scale=scale, axis=alt.Axis(tickCount=5))
    tooltip = [
        alt.Tooltip("label:N", title="policy"),
        alt.Tooltip("change:Q", title="throughput, %", format="+.2f"),
        alt.Tooltip("variation:Q", title="variation, %", format=".2f"),
    ]
    crossing = rows_of("zero").encode(tooltip=[alt.Tooltip("label:N")])
    front = rows_of("front")
    dashed = crossing.mark_rule(stroke=variable("muted"), strokeDash=[3, 3])
    whiskers = front.mark_rule(stroke=variable("accent"), opacity=0.35)
    layers = [
        dashed.encode(x=alt.X("change:Q")),
        dashed.encode(y=alt.Y("variation:Q")),
        whiskers.encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"), y=y),
        whiskers.encode(x=x, y=alt.Y("variation_low:Q"), y2=alt.Y2("variation_high:Q")),
        front.mark_line(stroke=variable("accent"), strokeWidth=1.5).encode(x=x, y=y, order=alt.Order("change:Q")),
        rows_of("trials").mark_circle(size=36, opacity=1, fill=variable("line")).encode(x=x, y=y, tooltip=tooltip),
        front.mark_circle(size=64, opacity=1, fill=variable("accent")).encode(x=x, y=y, tooltip=tooltip),
    ]
    return layered(layers, height=_HEIGHT)


def trials_table(trials: Sequence[Trial]) -> Dataset:
    """The trials by column."""
    return {
        "label": [one.label for one in trials],
        **{
            name: [round(float(getattr(one, name)), 4) for one in trials]
            for name in ("change", "low", "high", "variation", "variation_low", "variation_high")
        },
    }
