"""Size of collectives against the bus bandwidth they reach, both on logarithmic scales.

In: one row a kind of collective (group, operation, size). Out: specification and table. A dot is the median, the line
runs over the middle nine tenths of the calls. What a link gives for large messages shows as a plateau; what lies below
it at the same size, or spreads far down, is worth a look.
"""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from types import MappingProxyType

import altair as alt

from traceforge.report.charts.parts import TICKS, Spec, layered, rows_of
from traceforge.report.embedded_data import Dataset
from traceforge.report.palette import variable

_HEIGHT = 240
_MOST_OPERATIONS = 5
_FEW_POWERS = 4

# Shape and colour of the operations, so that no statement rests on colour alone.
_MARKS: Mapping[str, str] = MappingProxyType(
    {"circle": "transfer", "square": "input", "triangle-up": "copy", "diamond": "compute", "cross": "runtime"}
)
OTHER = "other"


def shown_operations(operations: Sequence[str]) -> list[str]:
    """The operations with a mark of their own, the first ones; all further ones share the last."""
    distinct = list(dict.fromkeys(operations))
    return distinct if len(distinct) <= _MOST_OPERATIONS else [*distinct[: _MOST_OPERATIONS - 1], OTHER]


def operation_swatch(place: int) -> str:
    """The colour of an operation by its place among those shown, as the page's legend names it."""
    return list(_MARKS.values())[place]


def bandwidth_spec(operations: Sequence[str], bytes_per_s: Sequence[float]) -> Spec:
    """The chart for these operations, in the order of their marks, over these median bandwidths."""
    shapes = list(_MARKS)[: len(operations)]
    colours = [variable(_MARKS[shape]) for shape in shapes]
    x = alt.X(
        "size_bytes:Q",
        title="bytes a call",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(format="~s", tickCount=TICKS, grid=False),
    )
    y = alt.Y(
        "median_bytes_per_s:Q",
        title="bus bandwidth, B/s",
        scale=alt.Scale(type="log", nice=True),
        axis=alt.Axis(format="~s", values=_ticks(min(bytes_per_s), max(bytes_per_s))),
    )
    colour = alt.Color("op:N", legend=None, scale=alt.Scale(domain=list(operations), range=colours))
    base = rows_of("kinds")
    spans = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=x, y=alt.Y("low_bytes_per_s:Q"), y2=alt.Y2("high_bytes_per_s:Q"), color=colour
    )
    dots = base.mark_point(size=70, filled=True, opacity=1, strokeWidth=1).encode(
        x=x,
        y=y,
        color=colour,
        shape=alt.Shape("op:N", legend=None, scale=alt.Scale(domain=list(operations), range=shapes)),
        tooltip=[
            alt.Tooltip("label:N", title="collective"),
            alt.Tooltip("shown:N", title="median"),
            alt.Tooltip("calls:Q", title="calls"),
        ],
    )
    return layered([spans, dots], height=_HEIGHT)


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten around the values, and where these are few 2 and 5 times them."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= _FEW_POWERS else (1,)
    return [float(f"{step * 10.0**power:.6g}") for power in powers for step in steps]


def bandwidth_table(rows: Sequence[Mapping[str, object]]) -> Dataset:
    """The kinds by column; bandwidths in bytes a second."""
    names = ("op", "label", "shown", "size_bytes", "calls", "median_bytes_per_s", "low_bytes_per_s", "high_bytes_per_s")
    return {name: [row[name] for row in rows] for name in names}
