"""One iteration, its ranks sorted by arrival: the wedge of waiting is what the last one costs the others.

Reads timeline.segment, arrival and collective for the median iteration, the worst, and the first after the largest
change. Beyond the limit of rows the ranks that were last most often are shown, and others evenly spread.
"""

from dataclasses import dataclass

from traceforge.report.absence import missing
from traceforge.report.blocks import Choice, Column, Figure, LegendEntry, Missing, Panel, Plugin, Section, Table
from traceforge.report.charts.lanes import Interval, lanes_spec, lanes_table, thinned
from traceforge.report.context import Context
from traceforge.report.exemplars import Exemplar, exemplars
from traceforge.report.job import quantile
from traceforge.report.palette import PHASES
from traceforge.report.words import capital, count, duration, plural


@dataclass(frozen=True, slots=True)
class _Lane:
    """A rank in one iteration; lateness and wait are means over its collectives, ns, None without any."""

    rank: int
    late_ns: float | None
    wait_ns: float | None
    intervals: list[Interval]

    def time_in(self, phase: str) -> int:
        return sum(one.end_ns - one.start_ns for one in self.intervals if one.phase == phase)


def _build(context: Context) -> Section | Missing:
    chosen = exemplars(context.job.used)
    ranks = _shown_ranks(context)
    pictures = [(exemplar, lanes) for exemplar, lanes in _pictures(chosen, ranks, context) if lanes]
    if not pictures:
        return missing("No iteration can be drawn", context)
    slot_ns = [_slot_ns(lanes, context) for _, lanes in pictures]
    resolution_ns = context.trust.resolution_ns
    choices = [_choice(picture, slot, resolution_ns) for picture, slot in zip(pictures, slot_ns, strict=True)]
    rows = max(len(lanes) for _, lanes in pictures)
    figure = Figure(
        name="lanes",
        caption=choices[0].caption,
        panels=[Panel(lanes_spec(rows), choices[0].data, "Phases of every rank in one iteration.")],
        table=_table(pictures),
        queries=["sections/lanes", "sections/lanes_order", "sections/lanes_last", "iterations"],
        legend=_legend(pictures),
        notes=_notes(slot_ns, len(context.job.ranks) - len(ranks)),
        choices=choices,
        choice_label="Iteration",
    )
    return Section([figure])


def _shown_ranks(context: Context) -> list[int]:
    ranks, room = context.job.ranks, context.limits.lane_rows
    if len(ranks) <= room:
        return ranks
    often_last = [row["last_rank"] for row in context.rows("sections/lanes_last")][: room // 2]
    spread = [ranks[place * len(ranks) // room] for place in range(room)]
    return _with(often_last, spread, room)


def _with(first: list[int], others: list[int], room: int) -> list[int]:
    """The first ranks, and as many of the others, evenly taken, as there is room for."""
    rest = [rank for rank in others if rank not in first]
    free = room - len(first)
    return sorted([*first, *(rest[place * len(rest) // free] for place in range(min(free, len(rest))))])


def _pictures(chosen: list[Exemplar], ranks: list[int], context: Context) -> list[tuple[Exemplar, list[_Lane]]]:
    if not chosen or not ranks:
        return []
    numbers = [exemplar.iteration.number for exemplar in chosen]
    intervals: dict[tuple[int, int], list[Interval]] = {}
    for row in context.rows("sections/lanes", iterations=numbers, ranks=ranks):
        own = intervals.setdefault((row["iteration"], row["rank"]), [])
        own.append(Interval(row["phase"], row["start_ns"], row["end_ns"]))
    order = {(row["iteration"], row["rank"]): row for row in context.rows("sections/lanes_order", iterations=numbers)}
    pictures = []
    for exemplar, number in zip(chosen, numbers, strict=True):
        lanes = [
            _Lane(rank, row["late_ns"] if row else None, row["wait_ns"] if row else None, intervals[number, rank])
            for rank in ranks
            if (number, rank) in intervals
            for row in [order.get((number, rank))]
        ]
        pictures.append((exemplar, sorted(lanes, key=_by_arrival)))
    return pictures


def _by_arrival(lane: _Lane) -> tuple[float, int, int]:
    """Latest first; without arrivals the one that waits least comes first."""
    if lane.late_ns is None:
        return (0.0, lane.time_in("wait"), lane.rank)
    return (-lane.late_ns, 0, lane.rank)


def _slot_ns(lanes: list[_Lane], context: Context) -> float | None:
    """Length of the slots a picture is thinned to, ns; None where all its intervals can be drawn."""
    if sum(len(lane.intervals) for lane in lanes) <= context.limits.marks:
        return None
    span_ns = max(lane.intervals[-1].end_ns - lane.intervals[0].start_ns for lane in lanes)
    return span_ns / max(1, context.limits.marks // len(lanes) - 1)


def _choice(picture: tuple[Exemplar, list[_Lane]], slot_ns: float | None, resolution_ns: float) -> Choice:
    exemplar, lanes = picture
    rows = [(str(lane.rank), lane.intervals if slot_ns is None else thinned(lane.intervals, slot_ns)) for lane in lanes]
    number = exemplar.iteration.number
    label = f"{number} — {exemplar.reason}, {duration(exemplar.iteration.duration_ns)}"
    return Choice(label, _caption(exemplar, lanes, resolution_ns), {"lanes": lanes_table(rows)})


def _caption(exemplar: Exemplar, lanes: list[_Lane], resolution_ns: float) -> str:
    place = f"Iteration {exemplar.iteration.number} ({exemplar.reason}, {duration(exemplar.iteration.duration_ns)})"
    arrivals = [lane.late_ns for lane in lanes if lane.late_ns is not None]
    first = lanes[0]
    if len(arrivals) < 2 or first.late_ns is None:
        return f"{place}: no matched collective tells who arrived when."
    behind_ns = first.late_ns - quantile(arrivals, 0.5)
    waits = [lane.time_in("wait") for lane in lanes[1:]]
    if behind_ns < resolution_ns:
        return f"{place}: the ranks arrive within {duration(resolution_ns)}, which the clocks cannot tell apart."
    text = f"{place}: rank {first.rank} arrives last, {duration(behind_ns)} after the median rank"
    return f"{text}; the others spend {duration(sum(waits) / len(waits))} waiting."


def _legend(pictures: list[tuple[Exemplar, list[_Lane]]]) -> list[LegendEntry]:
    seen = {interval.phase for _, lanes in pictures for lane in lanes for interval in lane.intervals}
    return [LegendEntry(phase, phase) for phase in PHASES if phase in seen]


def _notes(slot_ns: list[float | None], folded: int) -> list[str]:
    notes = ["Ranks are sorted by their mean lateness over the collectives of the iteration."]
    slots = [slot for slot in slot_ns if slot is not None]
    if slots:
        notes.append(f"Drawn in steps of {duration(max(slots))}; each shows the phase that fills most of it.")
    if folded:
        notes.append(
            f"{capital(plural(folded, 'further rank'))} not drawn: shown are the ranks that were last most often, "
            "and others evenly spread."
        )
    return notes


def _table(pictures: list[tuple[Exemplar, list[_Lane]]]) -> Table:
    columns = [
        Column("iteration", numeric=True),
        Column("rank", numeric=True),
        Column("mean lateness", numeric=True),
        Column("waiting", numeric=True),
        Column("compute", numeric=True),
        Column("transfer", numeric=True),
    ]
    rows = [
        [
            count(exemplar.iteration.number),
            str(lane.rank),
            duration(lane.late_ns),
            *(duration(lane.time_in(phase)) for phase in ("wait", "compute", "transfer")),
        ]
        for exemplar, lanes in pictures
        for lane in lanes
    ]
    return Table(columns, rows)


SECTION = Plugin("One iteration, rank by rank", "", _build)
