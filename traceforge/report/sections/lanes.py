"""One iteration, its ranks sorted by arrival: the wedge of waiting is what the last one costs the others.

Reads timeline.segment, rank_iteration and arrival. The iterations worth a look come first, then all others; where
there are too many, the longest of neighbours stands for them. With more ranks than rows, the latest of neighbouring
ranks stands for them, in each iteration anew. So nothing that is late is ever left out.
"""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from traceforge.report.blocks import Choice, Figure, LegendEntry, Missing, Panel, Section, Table, number
from traceforge.report.charts.lanes import Lanes, lanes_spec, lanes_table, thinned
from traceforge.report.context import Context, Row
from traceforge.report.formatting import count, duration, plural
from traceforge.report.missing_data import missing
from traceforge.report.palette import PHASES
from traceforge.report.plugin import Plugin
from traceforge.report.representatives import Representative, drawn_iterations

_FINEST_SLOTS = 160
_WORTH_A_LOOK, _ALL = "Worth a look", "All iterations"


@dataclass(frozen=True, slots=True)
class _Picture:
    """An iteration: its ranks by arrival, the latest first, and the intervals of those shown.

    Attributes:
        slot_ns: what the intervals were thinned to, ns; None where they were not.
    """

    representative: Representative
    order: list[Row]
    lanes: Lanes
    slot_ns: float | None = None


def _build(context: Context) -> Section | Missing:
    ranks_per_row = max(1, -(-len(context.job.ranks) // context.limits.lane_rows))
    pictures = _within_limits(_pictures(ranks_per_row, context), context)
    if not pictures:
        return missing("No iteration can be drawn", context)
    choices = [_choice(picture, context.trust.resolution_ns) for picture in pictures]
    rows = max(len(picture.lanes.labels) for picture in pictures)
    figure = Figure(
        name="lanes",
        caption=choices[0].caption,
        panels=[Panel(lanes_spec(rows), choices[0].data, "Phases of every rank in one iteration.")],
        table=_table(pictures, context),
        queries=["sections/lanes_order", "sections/lanes", "iterations"],
        legend=_legend(pictures),
        notes=_notes(pictures, ranks_per_row, context),
        choices=choices,
        choice_label="Iteration",
    )
    return Section([figure])


def _pictures(ranks_per_row: int, context: Context) -> list[_Picture]:
    chosen = drawn_iterations(context.job.used, context.limits.pictures)
    numbers = sorted(representative.iteration.number for representative in chosen)
    if not numbers:
        return []
    order: dict[int, list[Row]] = {}
    for row in context.rows("sections/lanes_order", iterations=numbers):
        order.setdefault(row["iteration"], []).append(row)
    frame = context.frame("sections/lanes", iterations=numbers, ranks_per_row=ranks_per_row)
    intervals = {int(part["iteration"][0]): part for part in frame.partition_by("iteration")}
    return [
        _Picture(representative, order[number], _lanes(intervals[number], order[number]))
        for representative in chosen
        if (number := representative.iteration.number) in intervals and number in order
    ]


def _lanes(intervals: pl.DataFrame, order: list[Row]) -> Lanes:
    """The intervals with their rows in the order of arrival."""
    shown = set(intervals["rank"].unique().to_list())
    ranks = [row["rank"] for row in order if row["rank"] in shown]
    places = pl.DataFrame({"rank": ranks, "row": range(len(ranks))}, schema_overrides={"rank": pl.Int32})
    phases = pl.DataFrame({"phase": PHASES, "code": range(len(PHASES))})
    joined = intervals.join(places, on="rank").join(phases, on="phase").sort("row", "start_ns")
    row, phase, start_ns, end_ns = (
        joined[name].to_numpy().astype(np.int64) for name in ("row", "code", "start_ns", "end_ns")
    )
    return Lanes(tuple(map(str, ranks)), row, phase, start_ns, end_ns)


def _within_limits(pictures: list[_Picture], context: Context) -> list[_Picture]:
    """The pictures, thinned where one has too many marks, and coarser where all together have too many."""
    slots = context.limits.marks
    while True:
        thin = [_thinned(picture, slots, context) for picture in pictures]
        drawn = sum(picture.lanes.intervals for picture in thin if not picture.representative.reason)
        if drawn <= context.limits.runs or slots <= 1:
            return thin
        slots = min(slots, 2 * _FINEST_SLOTS) // 2


def _thinned(picture: _Picture, slots: int, context: Context) -> _Picture:
    lanes = picture.lanes
    if not picture.representative.reason and slots <= _FINEST_SLOTS:
        slot_ns = lanes.span_ns / slots
    elif lanes.intervals > context.limits.marks:
        slot_ns = lanes.span_ns / max(1, context.limits.marks // len(lanes.labels) - 1)
    else:
        return picture
    return _Picture(picture.representative, picture.order, thinned(lanes, slot_ns), slot_ns)


def _choice(picture: _Picture, resolution_ns: float) -> Choice:
    representative = picture.representative
    details = [representative.reason, duration(representative.iteration.duration_ns)]
    label = f"{representative.iteration.number} — {', '.join(filter(None, details))}"
    group = _WORTH_A_LOOK if representative.reason else _ALL
    return Choice(label, _caption(picture, resolution_ns), {"lanes": lanes_table(picture.lanes)}, group)


def _caption(picture: _Picture, resolution_ns: float) -> str:
    representative, last = picture.representative, picture.order[0]
    details = ", ".join(filter(None, [representative.reason, duration(representative.iteration.duration_ns)]))
    place = f"Iteration {representative.iteration.number} ({details})"
    if last["late_ns"] is None or len(picture.order) < 2:
        return f"{place}: no matched collective shows who arrived when."
    if last["behind_median_ns"] < resolution_ns:
        return (
            f"{place}: the ranks arrive within {duration(resolution_ns)}, which is below the resolution of the clocks."
        )
    text = f"{place}: rank {last['rank']} arrives last, {duration(last['behind_median_ns'])} after the median rank"
    return f"{text}; the others spend {duration(last['others_wait_ns'])} waiting."


def _legend(pictures: list[_Picture]) -> list[LegendEntry]:
    seen = {int(code) for picture in pictures for code in np.unique(picture.lanes.phase)}
    return [LegendEntry(phase, phase) for code, phase in enumerate(PHASES) if code in seen]


def _notes(pictures: list[_Picture], ranks_per_row: int, context: Context) -> list[str]:
    notes = ["Ranks are sorted by their mean lateness over the collectives of the iteration."]
    slots = [picture.slot_ns for picture in pictures if picture.slot_ns is not None]
    if slots:
        steps = duration(min(slots)) if len(set(slots)) == 1 else f"{duration(min(slots))} to {duration(max(slots))}"
        notes.append(f"Drawn in steps of {steps}; each shows the phase that fills most of it.")
    if ranks_per_row > 1:
        notes.append(f"A row represents {count(ranks_per_row)} neighbouring ranks and shows the latest of them.")
    left_out = len(context.job.used) - len(pictures)
    if left_out > 0:
        notes.append(f"{plural(left_out, 'iteration')} not drawn: the longest of each run of neighbours is shown.")
    return notes


def _table(pictures: list[_Picture], context: Context) -> Table:
    rows = [row for picture in pictures if picture.representative.reason for row in picture.order]
    table = Table.of(rows, _COLUMNS, context.limits.table_rows)
    return replace(table, omitted=sum(len(picture.order) for picture in pictures) - len(table.rows))


_COLUMNS = (
    number("iteration", lambda row: count(row["iteration"])),
    number("rank", lambda row: str(row["rank"])),
    number("mean lateness", lambda row: duration(row["late_ns"])),
    number("waiting", lambda row: duration(row["wait_ns"])),
    number("compute", lambda row: duration(row["compute_ns"])),
    number("transfer", lambda row: duration(row["transfer_ns"])),
    number("waiting or transfer, not told apart", lambda row: duration(row["communication_ns"])),
)

SECTION = Plugin(70, "One iteration, rank by rank", "", _build)
