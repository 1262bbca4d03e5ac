"""One iteration: a row a rank, the last to arrive on top, phases along the time axis.

In: consecutive intervals of each rank. Out: specification, tables, and thinned intervals where there are too many.
Thinning cuts the iteration into equal slots and gives each to the phase that fills most of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import altair as alt
import numpy as np
from numpy.typing import NDArray

from traceforge.report.charts.parts import Spec, finished, phase_colour, rank_axis, row_height, rows_of, time_axis
from traceforge.report.islands import Dataset
from traceforge.report.palette import PHASES

Instants = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of one phase on one rank; times in ns since the start of the iteration."""

    phase: str
    start_ns: int
    end_ns: int


def lanes_spec(rows: int) -> Spec:
    """The chart for that many ranks."""
    tooltip = [
        alt.Tooltip("rank:N"),
        alt.Tooltip("phase:N"),
        alt.Tooltip("start_ms:Q", title="from, ms", format=",.3f"),
        alt.Tooltip("end_ms:Q", title="to, ms", format=",.3f"),
    ]
    chart = (
        rows_of("lanes")
        .mark_bar()
        .encode(
            y=rank_axis(rows),
            x=time_axis("start_ms", "ms since the iteration began", nice=False),
            x2="end_ms:Q",
            color=phase_colour(),
            tooltip=tooltip,
        )
    )
    return finished(chart.properties(width="container", height=max(40, rows * row_height(rows))))


def lanes_table(lanes: Sequence[tuple[str, Sequence[Interval]]]) -> Dataset:
    """The intervals of every row, in the order of the rows; ms."""
    marks = [(label, interval) for label, intervals in lanes for interval in intervals]
    return {
        "rank": [label for label, _ in marks],
        "phase": [interval.phase for _, interval in marks],
        "start_ms": [round(interval.start_ns / 1e6, 4) for _, interval in marks],
        "end_ms": [round(interval.end_ns / 1e6, 4) for _, interval in marks],
    }


def thinned(intervals: Sequence[Interval], slot_ns: float) -> list[Interval]:
    """At most one interval a slot; neighbours of one phase are joined.

    Args:
        intervals: consecutive, in order of time.
        slot_ns: length of a slot, ns.
    """
    first_ns, last_ns = intervals[0].start_ns, intervals[-1].end_ns
    slots = max(1, int(np.ceil((last_ns - first_ns) / slot_ns)))
    edges = np.linspace(first_ns, last_ns, slots + 1)
    filled = np.stack([np.diff(_time_in(phase, intervals, edges)) for phase in PHASES])
    winners = filled.argmax(axis=0)
    cuts = [0, *(int(cut) + 1 for cut in np.flatnonzero(np.diff(winners))), slots]
    return [
        Interval(PHASES[int(winners[begin])], round(float(edges[begin])), round(float(edges[end])))
        for begin, end in pairwise(cuts)
    ]


def _time_in(phase: str, intervals: Sequence[Interval], at_ns: Instants) -> Instants:
    """Time spent in a phase from the beginning until each instant, ns."""
    instants, spent = [float(intervals[0].start_ns)], [0.0]
    for interval in intervals:
        length = interval.end_ns - interval.start_ns if interval.phase == phase else 0
        instants.append(float(interval.end_ns))
        spent.append(spent[-1] + length)
    return np.interp(at_ns, instants, spent).astype(np.float64)
