"""Hosts by rack: a row a rack, a cell a host, orange where its ranks work longer than others of their role.

In: hosts with their place in the rack. Out: specification and table.
"""

from collections.abc import Sequence

import altair as alt

from traceforge.report.charts.parts import Spec, finished, row_height, rows_of
from traceforge.report.palette import DIVERGING_STEPS, variable


def racks_spec(racks: Sequence[str], limits: Sequence[float]) -> Spec:
    """The chart over these racks from top to bottom, with `limits` between its colours, ms."""
    colours = [variable(f"diverging-{step}") for step in range(DIVERGING_STEPS)]
    quiet = alt.Axis(domain=False, ticks=False, labelPadding=5)
    cells = (
        rows_of("hosts")
        .mark_rect(stroke=variable("line"), strokeWidth=1)
        .encode(
            x=alt.X("place:O", title="host of the rack", axis=alt.Axis(domain=False, ticks=False, labelAngle=0)),
            y=alt.Y("rack:N", title="rack", sort=None, axis=quiet, scale=alt.Scale(padding=0, domain=list(racks))),
            color=alt.Color(
                "above_ms:Q", legend=None, scale=alt.Scale(type="threshold", domain=list(limits), range=colours)
            ),
            tooltip=[
                alt.Tooltip("rack:N"),
                alt.Tooltip("host:N"),
                alt.Tooltip("ranks:Q"),
                alt.Tooltip("above_ms:Q", title="ms an iteration above the median rank", format="+,.3f"),
            ],
        )
    )
    height = max(40, len(racks) * row_height(len(racks)))
    return finished(cells, height=height)
