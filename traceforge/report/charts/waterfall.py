"""The delay waterfall: what each cause adds to an iteration, from zero, in ms.

In: one row a cause with its share of the delay. Out: specification and table. Each bar begins where the one above
ends; a negative delay (faster than the reference) runs back.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from traceforge.report.charts.parts import (
    BAR_HEIGHT,
    BAR_OFFSET,
    LABELLED_ROW_HEIGHT,
    TICKS,
    Spec,
    labelled,
    layered,
    mode_colour,
    row_axis,
    rows_of,
)
from traceforge.report.embedded_data import Dataset

_ENDS = ("start_ms", "end_ms")


@dataclass(frozen=True, slots=True)
class Bar:
    """A cause: delay, ms per iteration; `mode` as in `mode_colour`."""

    label: str
    value: str
    mode: str
    delay_ms: float


def waterfall_spec(bars: Sequence[Bar], least_ms: float, title: str = "ms lost per iteration") -> Spec:
    """The chart for these bars; the axis spans at least `least_ms`, so that little delay looks like little."""
    table = waterfall_table(bars)
    ends = [float(str(end)) for name in _ENDS for end in table[name]]
    domain = [min(0.0, *ends), max(least_ms, *ends)]
    x = alt.X(
        "start_ms:Q",
        title=title,
        scale=alt.Scale(domain=domain, nice=True),
        axis=alt.Axis(tickCount=TICKS),
    )
    base = rows_of("bars")
    tooltip = [
        alt.Tooltip("label:N", title="cause"),
        alt.Tooltip("value:N", title="delay"),
    ]
    boxes = base.mark_bar(height=BAR_HEIGHT, yOffset=BAR_OFFSET, cornerRadius=1).encode(
        y=row_axis(),
        x=x,
        x2=alt.X2("end_ms:Q"),
        color=mode_colour(),
        tooltip=tooltip,
    )
    layers = [boxes, *labelled(base, [bar.value for bar in bars])]
    return layered(layers, height=len(bars) * LABELLED_ROW_HEIGHT)


def waterfall_table(bars: Sequence[Bar]) -> Dataset:
    """The bars with their places, ms."""
    starts: list[float] = []
    reached = 0.0
    for bar in bars:
        starts.append(0.0 if bar.mode == "total" else reached)
        reached += 0.0 if bar.mode == "total" else bar.delay_ms
    return {
        "row": list(range(len(bars))),
        "label": [bar.label for bar in bars],
        "value": [bar.value for bar in bars],
        "mode": [bar.mode for bar in bars],
        "start_ms": [round(start, 6) for start in starts],
        "end_ms": [round(start + bar.delay_ms, 6) for start, bar in zip(starts, bars, strict=True)],
    }
