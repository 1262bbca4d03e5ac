"""Hosts by rack, where the user states racks: whose ranks work longer than others of their role.

Reads align.rack, timeline.phase and role. A rack stands for where to look: it is a place, and no finding accuses it.
"""

from collections.abc import Sequence
from itertools import groupby

from traceforge.report.blocks import Figure, LegendEntry, Missing, Panel, Section, Table, TableColumn, number
from traceforge.report.charts.heatmap import colour_limits
from traceforge.report.charts.racks import racks_spec
from traceforge.report.context import Context, Row
from traceforge.report.formatting import clean, count, duration, plural
from traceforge.report.plugin import Plugin
from traceforge.thresholds import report as thresholds

_NAME_COLUMNS = 40


def _build(context: Context) -> Section | Missing | None:
    hosts = context.rows("sections/racks")
    racks = [list(own) for _, own in groupby(hosts, key=lambda row: row["rack"])]
    if len(racks) < 2 or len(hosts) > context.limits.marks:
        return None
    values = {place: [row["above_ns"] / 1e6 for row in own] for place, own in enumerate(racks)}
    least_ms = thresholds.LATENESS_COLOUR_SHARE * (context.job.mean_ns or 0) / 1e6 + 1e-3
    limits = colour_limits(values, context.trust.resolution_ns / 1e6, least_ms)
    figure = Figure(
        name="racks",
        caption=_caption(racks),
        panels=[_panel(racks, limits)],
        table=Table.of(racks, _COLUMNS, context.limits.table_rows),
        queries=["sections/racks"],
        legend=_legend(limits),
        notes=_NOTES,
    )
    return Section([figure])


def _panel(racks: Sequence[Sequence[Row]], limits: Sequence[float]) -> Panel:
    rows = [row for own in racks for row in own]
    data = {
        "rack": [clean(row["rack"], _NAME_COLUMNS) for row in rows],
        "host": [clean(row["host"], _NAME_COLUMNS) for row in rows],
        "place": [row["place"] for row in rows],
        "ranks": [row["ranks"] for row in rows],
        "above_ms": [round(row["above_ns"] / 1e6, 4) for row in rows],
    }
    what = "Own time of each host's ranks above the median rank of their role, by rack."
    return Panel(racks_spec([_name(own) for own in racks], limits), {"hosts": data}, what)


def _caption(racks: Sequence[Sequence[Row]]) -> str:
    first, last = racks[0], racks[-1]
    spread_ns = first[0]["rack_above_ns"] - last[0]["rack_above_ns"]
    longest = f"Ranks in rack {_name(first)} work {duration(spread_ns)} longer an iteration than those in rack"
    top = max(first, key=lambda row: row["above_ns"])
    rest = [row for row in first if row is not top]
    without_ns = sum(row["ranks"] * row["above_ns"] for row in rest) / max(1, sum(row["ranks"] for row in rest))
    alone = ""
    if rest and without_ns - last[0]["rack_above_ns"] < spread_ns / 2:
        alone = f"; its host {clean(top['host'], _NAME_COLUMNS)} makes most of that"
    return f"{longest} {_name(last)}, the largest difference between {plural(len(racks), 'rack')}{alone}."


def _legend(limits: Sequence[float]) -> list[LegendEntry]:
    outermost = duration(limits[-1] * 1e6)
    labels = [f"{outermost} shorter", *[""] * (len(limits) - 1), f"{outermost} longer"]
    return [LegendEntry(f"diverging-{step}", label) for step, label in enumerate(labels)]


def _name(own: Sequence[Row]) -> str:
    return clean(own[0]["rack"], _NAME_COLUMNS)


_NOTES = [
    "Own time is all that is neither waiting nor transfer; a host is compared with the median rank of the same role.",
    "Racks are as they were stated. They are drawn, not tested: findings name ranks and hosts.",
]
_COLUMNS = (
    TableColumn("rack", _name),
    number("hosts", lambda own: count(len(own))),
    number("ranks", lambda own: count(sum(row["ranks"] for row in own))),
    number("above the median rank", lambda own: duration(own[0]["rack_above_ns"])),
    number("its least host", lambda own: duration(min(row["above_ns"] for row in own))),
    number("its most", lambda own: duration(max(row["above_ns"] for row in own))),
    TableColumn("that host", lambda own: clean(max(own, key=lambda row: row["above_ns"])["host"], _NAME_COLUMNS)),
)

SECTION = Plugin(33, "Hosts by rack", "", _build)
