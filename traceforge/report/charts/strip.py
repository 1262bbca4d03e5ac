"""Iteration time over the run. In: one row an iteration (or a bin of them), ms. Out: specification.

Each iteration is a short line at its duration. Where iterations are binned, a box spans their fastest and slowest.
"""

import altair as alt

from traceforge.report.charts.parts import Spec, finished, rows_of
from traceforge.report.palette import variable

STATES = ("used", "warm-up", "partial")
_HEIGHT = 150


def strip_spec() -> Spec:
    """The chart."""
    base = rows_of("iterations")
    colour = alt.Color(
        "state:N",
        legend=None,
        scale=alt.Scale(domain=list(STATES), range=[variable("accent"), variable("line"), variable("line")]),
    )
    tooltip = [
        alt.Tooltip("label:N", title="iteration"),
        alt.Tooltip("duration_ms:Q", title="ms", format=",.3f"),
        alt.Tooltip("state:N"),
    ]
    x = alt.X(
        "from:Q",
        title="iteration",
        scale=alt.Scale(zero=False, nice=False, padding=4),
        axis=alt.Axis(grid=False, tickMinStep=1, format="d"),
    )
    y = alt.Y("duration_ms:Q", title="ms", scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(tickCount=5))
    spans = base.mark_rect(opacity=0.25).encode(x=x, x2="to:Q", y="low_ms:Q", y2="high_ms:Q", color=colour)
    lines = base.mark_rule(strokeWidth=3).encode(x=x, x2="to:Q", y=y, color=colour, tooltip=tooltip)
    median = rows_of("median").mark_rule(stroke=variable("muted"), strokeDash=[3, 3]).encode(y="duration_ms:Q")
    return finished(alt.layer(spans, median, lines, _marked()).properties(width="container", height=_HEIGHT))


def _marked() -> alt.Chart:
    return (
        rows_of("marked")
        .mark_text(dy=-9, fontSize=11, fill=variable("text"))
        .encode(x="at:Q", y="duration_ms:Q", text="label:N")
    )
