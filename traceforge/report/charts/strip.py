"""Iteration time over the run. In: one row an iteration (or a bin of them), ms. Out: specification.

Each iteration is a short line at its duration. Where iterations are binned, a box spans their fastest and slowest.
"""

from collections.abc import Collection

import altair as alt

from traceforge.report.charts.parts import SMALL, TICKS, Spec, layered, rows_of
from traceforge.report.palette import variable
from traceforge.thresholds import report as thresholds

STATES = ("used", "warm-up", "partial")
_HEIGHT = 150
_BELOW = 11  # px from a bar to the middle of the word below it
# A word at an end of the chart begins or ends there: centred, it would lie on the axis or be cut.
_INWARDS = "scale('x', datum.at) < 24 ? 'left' : scale('x', datum.at) > width - 24 ? 'right' : 'center'"


def strip_spec(low_ms: float, high_ms: float, tables: Collection[str]) -> Spec:
    """The chart between these durations; iterations outside lie on its edge.

    Args:
        low_ms: shortest duration that counts.
        high_ms: longest duration that counts.
        tables: which of `above`, `below` (words) and `change` (a line) hold rows; Vega dislikes empty ones.
    """
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
        axis=alt.Axis(grid=False, tickMinStep=1, format="d", tickCount=TICKS),
    )
    scale = alt.Scale(zero=False, nice=True, clamp=True, domain=strip_domain(low_ms, high_ms))
    y = alt.Y("duration_ms:Q", title="ms", scale=scale, axis=alt.Axis(tickCount=5))
    low = alt.Y("low_ms:Q", title="ms")
    spans = base.mark_rect(opacity=0.25).encode(x=x, x2=alt.X2("to:Q"), y=low, y2=alt.Y2("high_ms:Q"), color=colour)
    # Square ends: a line of an iteration far from its neighbours in number would be narrower than a pixel.
    lines = base.mark_rule(strokeWidth=3, strokeCap="square").encode(
        x=x, x2=alt.X2("to:Q"), y=y, color=colour, tooltip=tooltip
    )
    median = rows_of("median").mark_rule(stroke=variable("muted"), strokeDash=[3, 3]).encode(y=alt.Y("duration_ms:Q"))
    change = rows_of("change").mark_rule(stroke=variable("caution"), strokeDash=[2, 2]).encode(x=alt.X("at:Q"))
    layers = {"change": change, "above": _marked("above", -9), "below": _marked("below", _BELOW)}
    shown = [layer for name, layer in layers.items() if name in tables]
    return layered([spans, median, lines, *shown], height=_HEIGHT)


def strip_domain(low_ms: float, high_ms: float) -> list[float]:
    """Ends of the axis of durations: from zero where little would be left out."""
    margin = max(0.15 * (high_ms - low_ms), 0.01 * high_ms)
    start = low_ms - margin
    return [start if start >= thresholds.LEAST_LEFT_OUT_SHARE * high_ms else 0.0, high_ms + 2 * margin]


def is_crossed(duration_ms: float, median_ms: float, domain: list[float]) -> bool:
    """Whether the line of the median would run through a word below the bar of an iteration."""
    below_px = _HEIGHT * (duration_ms - median_ms) / (domain[1] - domain[0])
    return 0.2 * _BELOW < below_px < 1.6 * _BELOW


def _marked(table: str, offset: int) -> alt.Chart:
    words = rows_of(table).mark_text(dy=offset, fontSize=SMALL, fill=variable("text"), align=alt.expr(_INWARDS))
    placed: alt.Chart = words.encode(x=alt.X("at:Q"), y=alt.Y("duration_ms:Q"), text=alt.Text("label:N"))
    return placed
