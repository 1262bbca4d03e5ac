"""A pipeline's schedule as lanes: a lane a stage, a block a pass of a micro-batch, bubbles hatched.

In: turns by stage, ms. Out: specification. Blocks carry the number of their micro-batch where there is room; chunk,
direction and times stand in the tooltip and in the table below as well.
"""

from collections.abc import Mapping
from types import MappingProxyType

import altair as alt

from traceforge.report.charts.parts import Spec, layered, rows_of
from traceforge.report.palette import fill, variable

DIRECTIONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "forward": ("compute", "forward"),
        "backward": ("transfer", "backward"),
        "backward_input": ("transfer", "backward, of the input"),
        "backward_weight": ("copy", "backward, of the weights"),
        "bubble": ("wait", "bubble"),
    }
)
"""Kind of a block: swatch of its colour, and the kind in words."""

_MOST_LABELLED = 48
_LANE = 30
# Whether a block is wide enough for its number, at the width that the page gives the chart.
_HAS_ROOM = "scale('x', datum.end_ms) - scale('x', datum.start_ms) > 3 + 6 * length('' + datum.number)"


def pipeline_spec(stages: int, blocks_of_lane: int) -> Spec:
    """The chart over that many stages, of which the fullest has so many blocks."""
    names = list(DIRECTIONS)
    colours = alt.Scale(domain=names, range=[fill(DIRECTIONS[name][0]) for name in names])
    lane = alt.Y("stage:N", title=None, sort=None, axis=alt.Axis(domain=False, ticks=False))
    ends = {"x": alt.X("start_ms:Q", title="ms", axis=alt.Axis(grid=False)), "x2": alt.X2("end_ms:Q"), "y": lane}
    bars = (
        rows_of("blocks")
        .mark_rect(stroke=variable("surface"), strokeWidth=0.6)
        .encode(
            **ends,
            color=alt.Color("kind:N", scale=colours, legend=None),
            tooltip=[
                alt.Tooltip("stage:N"),
                alt.Tooltip("words:N", title="what"),
                alt.Tooltip("start_ms:Q", title="from, ms", format=",.3f"),
                alt.Tooltip("end_ms:Q", title="to, ms", format=",.3f"),
            ],
        )
    )
    layers = [bars]
    if blocks_of_lane <= _MOST_LABELLED:
        seen = alt.condition(_HAS_ROOM, alt.value(1), alt.value(0))
        place = {"x": alt.X("middle_ms:Q"), "y": lane, "text": alt.Text("number:N"), "opacity": seen}
        words = rows_of("blocks")
        halo = words.mark_text(fontSize=10, stroke=variable("surface"), strokeWidth=3, strokeJoin="round")
        layers += [halo.encode(**place), words.mark_text(fontSize=10).encode(**place)]
    return layered(layers, height=max(60, _LANE * stages))
