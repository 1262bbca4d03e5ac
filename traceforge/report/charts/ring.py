"""Rings as a grid: a row a channel, a cell a rank in the order of the ring, coloured by the path to the next one.

In: number of channels and of ranks. Out: specification. Cells carry the rank where there is room; the path is said in
the tooltip and in the table below as well, so that no statement rests on colour alone.
"""

from collections.abc import Mapping
from types import MappingProxyType

import altair as alt

from traceforge.report.charts.parts import Spec, layered, row_height, rows_of
from traceforge.report.palette import fill, variable

PATHS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "p2p": ("idle", "direct, GPU to GPU"),
        "shared_memory": ("input", "through the node's memory"),
        "network_gdr": ("transfer", "network, GPU Direct RDMA"),
        "network_host": ("copy", "network, copied through host memory"),
        "socket": ("wait", "network, TCP socket"),
        "collnet": ("compute", "reduced in the network"),
        "unknown": ("runtime", "no connection in these logs"),
    }
)
"""Class of a path: swatch of its colour, and the class in words."""

_MOST_LABELLED = 16


def ring_spec(channels: int, ranks: int) -> Spec:
    """The chart over that many channels and ranks a channel."""
    names = list(PATHS)
    colours = alt.Scale(domain=names, range=[fill(PATHS[name][0]) for name in names])
    base = rows_of("cells").encode(
        x=alt.X("position:O", title="place in the ring", axis=alt.Axis(domain=False, ticks=False, labelAngle=0)),
        y=alt.Y("channel:O", title="channel", axis=alt.Axis(domain=False, ticks=False)),
    )
    cells = base.mark_rect(stroke=variable("surface"), strokeWidth=1).encode(
        color=alt.Color("path:N", scale=colours, legend=None),
        tooltip=[
            alt.Tooltip("channel:O"),
            alt.Tooltip("rank:N"),
            alt.Tooltip("host:N"),
            alt.Tooltip("words:N", title="path to the next rank"),
            alt.Tooltip("nics:N", title="NICs"),
        ],
    )
    height = max(40, channels * max(16, row_height(channels)))
    layers = [cells]
    if ranks <= _MOST_LABELLED:
        dot = rows_of("cells").mark_text(
            fontSize=10, fontWeight=600, stroke=variable("surface"), strokeWidth=3, strokeJoin="round"
        )
        place = {"x": alt.X("position:O"), "y": alt.Y("channel:O"), "text": alt.Text("rank:N")}
        layers += [dot.encode(**place), rows_of("cells").mark_text(fontSize=10, fontWeight=600).encode(**place)]
    return layered(layers, height=height)
