"""Phases of a mean iteration, stacked by rank, and the communication hidden behind compute.

In: mean ms per iteration by rank and phase. Out: specifications and tables. The stack of a rank is as long as its
mean iteration; hidden communication lies under compute and is therefore drawn apart, never in the stack.
"""

from collections.abc import Mapping, Sequence

import altair as alt

from traceforge.report.charts.parts import (
    TICKS,
    Spec,
    finished,
    phase_colour,
    rank_axis,
    row_height,
    rows_of,
    time_axis,
)
from traceforge.report.embedded_data import Dataset
from traceforge.report.palette import variable

# What a rank does by itself, then the waiting, then the data: late ranks reach far to the right before they wait.
STACK = ("compute", "copy", "input", "runtime", "idle", "wait", "transfer", "communication")


def phases_spec(ranks: int) -> Spec:
    """Stacked bars, one row a rank."""
    tooltip = [
        alt.Tooltip("rank:N"),
        alt.Tooltip("phase:N"),
        alt.Tooltip("duration_ms:Q", title="ms per iteration", format=",.3f"),
    ]
    chart = (
        rows_of("phases")
        .mark_bar()
        .encode(
            y=rank_axis(ranks),
            x=time_axis("start_ms", "ms per iteration", nice=False),
            x2=alt.X2("end_ms:Q"),
            color=phase_colour(),
            tooltip=tooltip,
        )
    )
    return finished(chart, height=_height(ranks))


def hidden_spec(ranks: int) -> Spec:
    """Bars of hidden communication, one row a rank, in the same rows as the phases."""
    tooltip = [alt.Tooltip("rank:N"), alt.Tooltip("hidden_ms:Q", title="ms per iteration", format=",.3f")]
    chart = (
        rows_of("hidden")
        .mark_bar(fill=variable("transfer"))
        .encode(
            y=rank_axis(ranks),
            x=alt.X("hidden_ms:Q", title="ms per iteration", axis=alt.Axis(tickCount=TICKS)),
            tooltip=tooltip,
        )
    )
    return finished(chart, height=_height(ranks))


def _height(ranks: int) -> int:
    return max(40, ranks * row_height(ranks))


def phases_table(labels: Sequence[str], durations_ms: Sequence[Mapping[str, float]]) -> Dataset:
    """Places of the stacked boxes.

    Args:
        labels: one text a row.
        durations_ms: per row the mean duration of each phase, ms per iteration.
    """
    boxes = [
        (label, phase, start, start + duration)
        for label, durations in zip(labels, durations_ms, strict=True)
        for phase, start, duration in _stack(durations)
    ]
    return {
        "rank": [box[0] for box in boxes],
        "phase": [box[1] for box in boxes],
        "start_ms": [round(box[2], 5) for box in boxes],
        "end_ms": [round(box[3], 5) for box in boxes],
        "duration_ms": [round(box[3] - box[2], 5) for box in boxes],
    }


def _stack(durations: Mapping[str, float]) -> list[tuple[str, float, float]]:
    stacked, start = [], 0.0
    for phase in STACK:
        duration = durations.get(phase, 0.0)
        if duration > 0:
            stacked.append((phase, start, duration))
            start += duration
    return stacked
