"""Lateness by rank and iteration: purple is early, orange is late, a dot marks the last to arrive.

In: cells of lateness in ms. Out: specification and tables. The scale has nine steps around zero; its inmost step is
never narrower than the clocks' resolution, so that nothing below the clocks' resolution is coloured.
"""

from collections.abc import Mapping, Sequence
from math import floor, log10

import altair as alt
import numpy as np

from traceforge.report.charts.parts import Spec, layered, row_height, rows_of
from traceforge.report.palette import DIVERGING_STEPS, variable

_INMOST = 0.1
_STEPS = (0, 1 / 6, 4 / 9, 1)  # between the inmost limit and the outermost: 1, 2.5, 5 and 10 times the inmost


def colour_limits(lateness_ms: Mapping[int, Sequence[float]], resolution_ms: float, least_ms: float) -> list[float]:
    """Eight limits between the nine colours, ms, symmetric around zero.

    The outermost is what all but a hundredth of the cells stay within, or, if that is more, what some row has in half
    of its cells: a rank that is always late sets the scale, a single spike does not.

    Args:
        lateness_ms: cells by row, ms; no row may be empty.
        resolution_ms: what the clocks resolve, ms; nothing below it is coloured.
        least_ms: the outermost limit is no less, ms, so that a run without trouble looks like one.
    """
    rows = [np.abs(row) for row in lateness_ms.values()]
    common = float(np.quantile(np.concatenate(rows), 0.99))
    habitual = max(float(np.median(row)) for row in rows)
    outermost = max(_rounded_down(max(common, habitual, least_ms)), 2 * resolution_ms)
    inmost = max(_INMOST * outermost, resolution_ms)
    upper = [inmost + (outermost - inmost) * step for step in _STEPS]
    return [round(limit, 9) for limit in (*(-limit for limit in reversed(upper)), *upper)]


def _rounded_down(value: float) -> float:
    power = 10.0 ** floor(log10(value))
    return max(power * step for step in (1, 1.5, 2, 3, 4, 5, 6, 8) if power * step <= value * (1 + 1e-9))


def heatmap_spec(ranks: Sequence[str], iterations: Sequence[str], limits: Sequence[float]) -> Spec:
    """The chart over rows and columns of these names, with `limits` between its colours, ms."""
    colours = [variable(f"diverging-{step}") for step in range(DIVERGING_STEPS)]
    cells = (
        rows_of("cells")
        .mark_rect()
        .encode(
            x=_columns(iterations),
            y=_rows(ranks),
            color=alt.Color(
                "lateness_ms:Q", legend=None, scale=alt.Scale(type="threshold", domain=list(limits), range=colours)
            ),
            tooltip=[
                alt.Tooltip("rank:N"),
                alt.Tooltip("iteration:N"),
                alt.Tooltip("lateness_ms:Q", title="ms after the median rank", format="+,.3f"),
            ],
        )
    )
    last = (
        rows_of("last")
        .mark_circle(size=22, opacity=1, fill=variable("text"), stroke=variable("surface"), strokeWidth=1)
        .encode(
            x=_columns(iterations),
            y=_rows(ranks),
            tooltip=[alt.Tooltip("rank:N", title="last to arrive: rank"), alt.Tooltip("iteration:N")],
        )
    )
    height = max(40, len(ranks) * row_height(len(ranks)))
    return layered([cells, last, _host_rules(ranks)], height=height)


def _host_rules(ranks: Sequence[str]) -> alt.Chart:
    y = alt.Y("rank:N", sort=None, bandPosition=0, scale=alt.Scale(domain=list(ranks)))
    rules = rows_of("hosts").mark_rule(stroke=variable("muted"), strokeWidth=1)
    placed: alt.Chart = rules.encode(y=y, tooltip=[alt.Tooltip("host:N", title="from here on")])
    return placed


def _columns(iterations: Sequence[str]) -> alt.X:
    axis = alt.Axis(domain=False, ticks=False, labelAngle=0, labelPadding=5)
    scale = alt.Scale(padding=0, domain=list(iterations))
    return alt.X("iteration:N", title="iteration", sort=None, axis=axis, scale=scale)


def _rows(ranks: Sequence[str]) -> alt.Y:
    axis = alt.Axis(domain=False, ticks=False, labelPadding=5, labelFontSize=10)
    return alt.Y("rank:N", title="rank", sort=None, axis=axis, scale=alt.Scale(padding=0, domain=list(ranks)))
