"""One iteration: a row a rank, the last to arrive on top, phases along the time axis.

In: consecutive intervals of each rank. Out: specification, tables, and thinned intervals where there are too many.
Thinning cuts the iteration into equal slots and gives each to the phase that fills most of it.
"""

from dataclasses import dataclass

import altair as alt
import numpy as np
from numpy.typing import NDArray

from traceforge.report.charts.parts import Spec, finished, phase_colour, rank_axis, row_height, rows_of, time_axis
from traceforge.report.embedded_data import IntervalRow, IntervalTable
from traceforge.report.palette import PHASES

Integers = NDArray[np.int64]

_STEP_NS = 1_000  # a run begins and ends at a whole µs


@dataclass(frozen=True, slots=True)
class Lanes:
    """Intervals of the rows of one picture, ordered by row and time; arrays have one entry an interval.

    Attributes:
        labels: one text a row.
        row: the row an interval belongs to, from 0.
        phase: its place in PHASES.
        start_ns, end_ns: since the start of the iteration.
    """

    labels: tuple[str, ...]
    row: Integers
    phase: Integers
    start_ns: Integers
    end_ns: Integers

    @property
    def intervals(self) -> int:
        """Number of intervals."""
        return len(self.row)

    @property
    def span_ns(self) -> int:
        """From the first start to the last end, ns."""
        return int(self.end_ns.max() - self.start_ns.min())


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
            x2=alt.X2("end_ms:Q"),
            color=phase_colour(),
            tooltip=tooltip,
        )
    )
    return finished(chart.properties(width="container", height=max(40, rows * row_height(rows))))


def lanes_table(lanes: Lanes) -> IntervalTable:
    """The intervals of every row, in the order of the rows, in ms."""
    bounds = np.searchsorted(lanes.row, np.arange(len(lanes.labels) + 1))
    rows = []
    for label, first, last in zip(lanes.labels, bounds[:-1], bounds[1:], strict=True):
        own = slice(first, last)
        starts, ends = (np.rint(times[own] / _STEP_NS).astype(np.int64) for times in (lanes.start_ns, lanes.end_ns))
        seen = ends > starts
        codes = "".join(map(str, lanes.phase[own][seen]))
        rows.append(IntervalRow(label, codes, tuple(starts[seen].tolist()), tuple(ends[seen].tolist())))
    return IntervalTable("rank", "phase", "start_ms", "end_ms", PHASES, _STEP_NS / 1e6, tuple(rows))


def thinned(lanes: Lanes, slot_ns: float) -> Lanes:
    """At most one interval a slot and row; neighbours of one phase are joined.

    Args:
        lanes: intervals of a row must follow one another without a gap.
        slot_ns: length of a slot, ns.
    """
    origin = float(lanes.start_ns.min())
    slots = int(np.ceil(lanes.span_ns / slot_ns)) or 1
    filled = _filled(lanes, origin, slot_ns, slots)
    winner = np.where(filled.any(axis=2), filled.argmax(axis=2), -1)
    changes = np.ones_like(winner, dtype=bool)
    changes[:, 1:] = winner[:, 1:] != winner[:, :-1]
    row, begin = np.nonzero(changes)
    end = np.append(begin[1:], slots)
    end[np.append(row[1:] != row[:-1], True)] = slots
    phase = winner[row, begin]
    kept = phase >= 0
    first, last = (np.full(len(lanes.labels), edge) for edge in (np.iinfo(np.int64).max, 0))
    np.minimum.at(first, lanes.row, lanes.start_ns)
    np.maximum.at(last, lanes.row, lanes.end_ns)
    start_ns, end_ns = (np.rint(origin + place * slot_ns).astype(np.int64) for place in (begin, end))
    row = row[kept]
    return Lanes(
        lanes.labels,
        row,
        phase[kept],
        np.maximum(start_ns[kept], first[row]),
        np.minimum(end_ns[kept], last[row]),
    )


def _filled(lanes: Lanes, origin: float, slot_ns: float, slots: int) -> NDArray[np.float64]:
    """Time of each phase in each slot, ns; shape (rows, slots, phases)."""
    start, end = ((times - origin) / slot_ns for times in (lanes.start_ns, lanes.end_ns))
    first = np.minimum(np.floor(start).astype(np.int64), slots - 1)
    last = np.minimum(np.ceil(end).astype(np.int64) - 1, slots - 1)
    touched = np.maximum(last - first, 0) + 1
    own = np.repeat(np.arange(lanes.intervals), touched)
    slot = first[own] + np.arange(len(own)) - np.repeat(np.cumsum(touched) - touched, touched)
    overlap = np.minimum(end[own], slot + 1) - np.maximum(start[own], slot)
    cell = (lanes.row[own] * slots + slot) * len(PHASES) + lanes.phase[own]
    cells = len(lanes.labels) * slots * len(PHASES)
    weights = np.maximum(overlap, 0) * slot_ns
    filled = np.bincount(cell, weights, minlength=cells).reshape(len(lanes.labels), slots, len(PHASES))
    return np.asarray(filled, dtype=np.float64)
