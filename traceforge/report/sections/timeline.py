"""The run to walk in: phases of every rank in every iteration, operations where it matters, findings at their moments.

Reads timeline.segment, rank_iteration, arrival, collective, gap, attribute.delay and raw events. `report.timeline`
gathers what is drawn; here stand the words around it, and the table for those who do not see the picture.
"""

from collections.abc import Sequence
from dataclasses import replace

from traceforge.report.blocks import LegendEntry, Missing, Section, Table, TimelineFigure, number
from traceforge.report.context import Context, Row
from traceforge.report.diagnosis import place_link
from traceforge.report.formatting import LinkedText, count, duration, listed, plural, rank_list
from traceforge.report.missing_data import missing
from traceforge.report.palette import PHASES
from traceforge.report.plugin import Plugin
from traceforge.report.timeline.payload import TimelineData, axes_of, read_timeline

_MOST_HOSTS = 24  # as in timeline_rows.js
_AXES = {"pp": "pipeline stage", "dp": "data parallel", "tp": "tensor parallel", "ep": "expert", "cp": "context"}
_QUERIES = (
    "sections/timeline", "sections/timeline_ranks", "sections/timeline_delays", "sections/timeline_arrivals",
    "sections/timeline_host", "sections/timeline_events", "sections/timeline_names", "sections/timeline_origins",
    "sections/timeline_mesh", "racks",
)  # fmt: skip


def _build(context: Context) -> Section | Missing:
    found = read_timeline(context)
    if found is None:
        return missing("No iteration can be drawn", context)
    shown = [number for number in found.detail.iterations if number in found.axis.offset_ns]
    rows = context.rows("sections/timeline_ranks", iterations=shown)
    number, caption = _caption(found, rows, context)
    figure = TimelineFigure(
        name="timeline",
        caption=caption,
        shown=number,
        data=found.page,
        table=_table(rows, shown, context),
        queries=_QUERIES,
        legend=_legend(found),
        iterations=_iterations(found, context),
        ranks=[(rank, _rank(rank, context)) for rank in context.job.ranks],
        lanes=[(axis, _AXES.get(axis, axis)) for axis, *_ in axes_of(context)],
        notes=_notes(found, context),
    )
    return Section([figure])


def _iterations(found: TimelineData, context: Context) -> list[tuple[int, str]]:
    lasting = {one.number: one.duration_ns for one in context.job.iterations}
    reasons = found.detail.iterations
    return [
        (number, ", ".join(filter(None, [_name(number, context), duration(lasting[number]), reasons.get(number)])))
        for number in found.axis.numbers
    ]


def _name(number: int, context: Context) -> str:
    return "whole recording" if context.job.is_one_stretch else str(number)


def _rank(rank: int, context: Context) -> str:
    host = context.job.host_of[rank]
    return str(rank) if host is None else f"{rank}, {host}"


def _caption(found: TimelineData, rows: Sequence[Row], context: Context) -> tuple[int | None, str]:
    """The iteration that is shown first, and what is to be seen there."""
    moment = next((one for one in found.moments if one.span and one.finding.is_significant), None)
    if moment is not None:
        excess = duration(moment.excess_ns)
        awaited, whom = moment.awaited
        what = f"rank {moment.rank} reaches {awaited} {excess} after {whom}"
        if moment.rank is None:
            what = f"a transfer takes {excess} after all ranks have arrived"
        return moment.iteration, f"Iteration {moment.iteration}: {what}."
    first = found.detail.normal
    last = next((row for row in rows if row["iteration"] == first), None)
    if last is None or last["late_ns"] is None or len(context.job.ranks) < 2:
        return None, f"What {'the' if len(context.job.ranks) == 1 else 'each'} rank did, instant by instant."
    if last["behind_median_ns"] < context.trust.resolution_ns:
        least = duration(context.trust.resolution_ns)
        return first, f"Iteration {first}: all ranks arrive within the {least} that the clocks cannot resolve."
    behind = duration(last["behind_median_ns"])
    if context.diagnosis.leading is None:
        throughout = "it is not certain that one is late" if context.diagnosis.findings else "none is late throughout"
        return first, f"Iteration {first}: the last rank arrives {behind} after the median one; {throughout}."
    return first, f"Iteration {first}: rank {last['rank']} arrives last, on average {behind} after the median rank."


def _legend(found: TimelineData) -> list[LegendEntry]:
    seen = {code for codes, _ in found.runs.by_rank.values() for code in codes}
    return [LegendEntry(phase, phase) for code, phase in enumerate(PHASES) if str(code) in seen]


def _notes(found: TimelineData, context: Context) -> list[str]:
    detail, notes = found.detail, []
    if found.page["opened"]:
        ranks = f"{'rank' if len(detail.ranks) == 1 else 'ranks'} {rank_list(detail.ranks)}"
        shown = sorted(number for number in detail.iterations if number in found.axis.offset_ns)
        noun = "iteration" if len(shown) == 1 else "iterations"
        notes.append(f"Operations in detail: {ranks} in {noun} {listed([str(number) for number in shown], 8)}.")
    if found.blocks_left_out:
        notes.append(f"There, the {plural(found.blocks_left_out, 'shortest block')} are not drawn.")
    if found.runs.slot_ns is not None:
        step = duration(found.runs.slot_ns)
        notes.append(f"Other ranks and iterations are drawn in steps of {step}; each shows what fills most of it.")
    if found.page["racks"]:
        notes.append(
            "Hosts of a rack are drawn together, but for those of culprits; a click opens a rack, then a host."
        )
    elif len(context.job.hosts) > _MOST_HOSTS:
        notes.append("Hosts without a culprit are drawn in blocks; a click opens a block, then a host.")
    left_out = len(context.job.iterations) - len(found.axis.numbers)
    if left_out > 0:
        notes.append(f"{plural(left_out, 'iteration')} not drawn: the longest of each run of neighbours is shown.")
    if found.axis.unaligned:
        ranks = rank_list(found.axis.unaligned)
        notes.append(f"The clocks of ranks {ranks} are not aligned: their iterations begin where the others' do.")
    return notes


def _table(rows: Sequence[Row], shown: Sequence[int], context: Context) -> Table:
    place = {number: place for place, number in enumerate(shown)}
    ordered = sorted(rows, key=lambda row: place[row["iteration"]])
    table = Table.of(ordered, _COLUMNS, context.limits.table_rows)
    return replace(table, omitted=len(ordered) - len(table.rows))


_COLUMNS = (
    number("iteration", lambda row: LinkedText(count(row["iteration"]), place_link(row["iteration"]))),
    number("rank", lambda row: LinkedText(str(row["rank"]), place_link(row["iteration"], row["rank"]))),
    number("mean lateness", lambda row: duration(row["late_ns"])),
    number("waiting", lambda row: duration(row["wait_ns"])),
    number("compute", lambda row: duration(row["compute_ns"])),
    number("transfer", lambda row: duration(row["transfer_ns"])),
    number("waiting or transfer, not told apart", lambda row: duration(row["communication_ns"])),
)

SECTION = Plugin(20, "Timeline", "Timeline", _build)
