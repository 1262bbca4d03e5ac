"""Who is late, when: lateness by rank and iteration against the median rank, with the last to arrive marked.

Reads timeline.arrival, collective and iteration. Shows lateness, not waiting: waiting would light up the victims and
leave the culprit dark. Cells that hold several ranks or iterations show the latest of them.
"""

from collections import Counter
from collections.abc import Sequence
from math import sqrt

from traceforge.report.blocks import DrillDown, Figure, LegendEntry, Missing, Panel, Section, Table, TableColumn, number
from traceforge.report.charts.heatmap import colour_limits, heatmap_spec
from traceforge.report.context import Context, Limits, Row
from traceforge.report.embedded_data import Dataset
from traceforge.report.formatting import count, duration, plural, span
from traceforge.report.job import Iteration, JobOverview
from traceforge.report.missing_data import missing
from traceforge.report.plugin import Plugin
from traceforge.report.representatives import worst_iteration
from traceforge.thresholds import report as thresholds

_QUERIES = ("sections/lateness", "sections/lateness_last", "sections/lateness_ranks")


def _build(context: Context) -> Section | Missing:
    if len(context.job.ranks) < 2:
        return missing("No rank can be called late", context)
    sizes = _cell_sizes(context.job, context.limits)
    cells = context.rows("sections/lateness", ranks_per_cell=sizes[0], iterations_per_cell=sizes[1])
    if not cells:
        return missing("No rank can be called late", context)
    last = [row for row in context.rows("sections/lateness_last") if row["is_resolved"]]
    by_row: dict[int, list[float]] = {}
    for cell in cells:
        by_row.setdefault(cell["rank_cell"], []).append(cell["lateness_ns"] / 1e6)
    least_ms = thresholds.LATENESS_COLOUR_SHARE * (context.job.mean_ns or 0) / 1e6 + 1e-3
    limits = colour_limits(by_row, context.trust.resolution_ns / 1e6, least_ms)
    caption, table = _caption(last, cells, sizes, context), _table(context)
    if not last and _is_uncoloured(cells, limits):
        # Cells that are all alike are no picture.
        notes = [f"All differences are within {duration(limits[4] * 1e6)} and not drawn{_because(limits, context)}."]
        return Section([Figure("lateness", caption, [], table, _QUERIES, notes=notes)])
    figure = Figure(
        name="lateness",
        caption=caption,
        panels=[_panel(cells, last, limits, context)],
        table=table,
        queries=_QUERIES,
        legend=_legend(limits, cells),
        notes=_notes(sizes, limits, context),
        drill_down=_drill_down(cells, context),
    )
    return Section([figure])


def _drill_down(cells: list[Row], context: Context) -> DrillDown:
    """Each cell opens its first rank in the longest iteration of its column."""
    columns = {cell["iteration_cell"]: (cell["first_iteration"], cell["last_iteration"]) for cell in cells}
    rows = {cell["rank_cell"]: (cell["first_rank"], cell["last_rank"]) for cell in cells}
    ordered, ranks = [columns[column] for column in sorted(columns)], [rows[row] for row in sorted(rows)]
    return DrillDown(
        table="cells",
        value="lateness_ms",
        rows=[span(*row) for row in ranks],
        columns=[span(*column) for column in ordered],
        ranks=[first for first, _ in ranks],
        iterations=[_longest(context.job.used, *column) for column in ordered],
    )


def _longest(iterations: Sequence[Iteration], first: int, last: int) -> int:
    within = [iteration for iteration in iterations if first <= iteration.number <= last]
    return worst_iteration(within).number if within else first


def _cell_sizes(job: JobOverview, limits: Limits) -> tuple[int, int]:
    """Ranks and iterations a cell, so that rows, columns and their product stay within the limits."""
    ranks_per_cell = job.ranks_per_row(limits.heat_rows)
    rows = -(-len(job.ranks) // ranks_per_cell)
    columns = max(1, min(limits.heat_columns, limits.marks // rows - 2))
    return ranks_per_cell, max(1, -(-len(job.used) // columns))


def _panel(cells: list[Row], last: list[Row], limits: Sequence[float], context: Context) -> Panel:
    ranks = {cell["rank_cell"]: span(cell["first_rank"], cell["last_rank"]) for cell in cells}
    iterations = {cell["iteration_cell"]: span(cell["first_iteration"], cell["last_iteration"]) for cell in cells}
    table: Dataset = {
        "rank": [ranks[cell["rank_cell"]] for cell in cells],
        "iteration": [iterations[cell["iteration_cell"]] for cell in cells],
        "lateness_ms": [round(cell["lateness_ns"] / 1e6, 4) for cell in cells],
    }
    data = {"cells": table, "last": _last_marks(last, cells), "hosts": _host_starts(context, cells)}
    rows, columns = ([names[key] for key in sorted(names)] for names in (ranks, iterations))
    return Panel(
        heatmap_spec(rows, columns, limits), data, "Lateness of each rank in each iteration against the median rank."
    )


def _last_marks(last: list[Row], cells: list[Row]) -> Dataset:
    marks: dict[tuple[str, str], None] = {}
    columns = {(cell["first_iteration"], cell["last_iteration"]) for cell in cells}
    rows = {(cell["first_rank"], cell["last_rank"]) for cell in cells}
    column_of = {number: pair for pair in columns for number in range(pair[0], pair[1] + 1)}
    row_of = {rank: pair for pair in rows for rank in range(pair[0], pair[1] + 1)}
    for row in last:
        if row["iteration"] in column_of and row["last_rank"] in row_of:
            marks[span(*row_of[row["last_rank"]]), span(*column_of[row["iteration"]])] = None
    return {"rank": [mark[0] for mark in marks], "iteration": [mark[1] for mark in marks]}


def _host_starts(context: Context, cells: list[Row]) -> Dataset:
    """The first row of every host but the first, where hosts are several rows each."""
    job, on_host = context.job, context.job.ranks_per_host
    labels = {cell["first_rank"]: span(cell["first_rank"], cell["last_rank"]) for cell in cells}
    starts = job.ranks[on_host::on_host] if on_host and len(labels) > len(job.hosts) else []
    shown = [rank for rank in starts if rank in labels]
    return {"rank": [labels[rank] for rank in shown], "host": [job.host_of[rank] or "unknown" for rank in shown]}


def _caption(last: list[Row], cells: list[Row], sizes: tuple[int, int], context: Context) -> str:
    if not last:
        return "All ranks arrive together, within the resolution of the clocks."
    iterations = len(last)
    tally = Counter(row["last_rank"] for row in last)
    rank, times = min(tally.items(), key=lambda item: (-item[1], item[0]))
    shown = "in the one iteration" if iterations == 1 else f"in {count(times)} of {plural(iterations, 'iteration')}"
    if iterations < len(context.job.used):
        shown += " in which the clocks can tell"
    is_habit = _is_habit(times, iterations, len(context.job.ranks))
    beside = _beside_the_finding(rank, context)
    if beside is not None and (is_habit or context.diagnosis.leading is not None):
        return f"Rank {rank} is last most often, {shown}; {beside}."
    if not is_habit:
        return _without_habit(rank, times >= thresholds.HABITUALLY_LAST_SHARE * iterations, shown, context)
    own = [cell["lateness_ns"] for cell in cells if cell["first_rank"] == rank]
    text = f"Rank {rank} is the last to arrive {shown}"
    if sizes != (1, 1) or not own:
        return f"{text}."
    mean_ns = sum(own) / len(own)
    if mean_ns < context.trust.resolution_ns:
        return f"{text}; the average is too small for the clocks to tell."
    return f"{text}, on average {duration(mean_ns)} after the median rank."


def _without_habit(rank: int, is_often: bool, shown: str, context: Context) -> str:
    if is_often:
        return f"Too few iterations to call a rank late: rank {rank} is last {shown}."
    is_said = context.diagnosis.leading is not None
    nobody = "No rank is last in most iterations" if is_said else "No rank is consistently late"
    return f"{nobody}; rank {rank} is last most often, {shown}."


def _beside_the_finding(rank: int, context: Context) -> str | None:
    """What the finding of the verdict rests on, where that is not this rank's lateness."""
    leading = context.diagnosis.leading
    if leading is None:
        return "no finding rests on it"
    if leading.subject_kind in ("communicator", "nic", "link", "job"):
        return "the finding is about transfers after all have arrived, not about who is last"
    blamed = leading.ranks or [one for one in (leading.rank,) if one is not None]
    return None if rank in blamed or not blamed else "the finding rests on what its own ranks do, not on who is last"


def _is_habit(times: int, iterations: int, ranks: int) -> bool:
    """Whether a rank is last in most iterations, and more often than chance would have it."""
    expected = iterations / ranks
    scatter = sqrt(expected * (1 - 1 / ranks))
    is_often = times >= thresholds.HABITUALLY_LAST_SHARE * iterations
    return is_often and times > expected + thresholds.HABITUALLY_LAST_SIGMAS * scatter


def _is_uncoloured(cells: list[Row], limits: Sequence[float]) -> bool:
    return all(abs(cell["lateness_ns"]) < limits[4] * 1e6 for cell in cells)


def _legend(limits: Sequence[float], cells: list[Row]) -> list[LegendEntry]:
    if _is_uncoloured(cells, limits):
        return [LegendEntry("diverging-4", f"within {duration(limits[4] * 1e6)}")]
    outermost = duration(limits[-1] * 1e6)
    labels = [f"{outermost} early", *[""] * (len(limits) - 1), f"{outermost} late"]
    return [LegendEntry(f"diverging-{step}", label) for step, label in enumerate(labels)]


def _notes(sizes: tuple[int, int], limits: Sequence[float], context: Context) -> list[str]:
    notes = [
        "Mean over the collectives of an iteration; a dot marks the rank whose lateness cost the others most.",
        f"Differences within {duration(limits[4] * 1e6)} are left uncoloured{_because(limits, context)}.",
    ]
    ranks_per_cell, iterations_per_cell = sizes
    if ranks_per_cell > 1 or iterations_per_cell > 1:
        share = [plural(size, noun) for size, noun in zip(sizes, ("rank", "iteration"), strict=True) if size > 1]
        notes.append(f"A cell holds {' and '.join(share)} and shows the latest of them.")
    on_host = context.job.ranks_per_host
    if on_host and ranks_per_cell < on_host:
        notes.append("Lines separate hosts.")
    return notes


def _because(limits: Sequence[float], context: Context) -> str:
    is_coarse = context.trust.resolution_ns >= 0.999e6 * limits[4]
    return ": they are below the resolution of the clocks" if is_coarse else ""


def _table(context: Context) -> Table:
    columns = (
        number("rank", lambda row: str(row["rank"])),
        TableColumn("host", lambda row: context.job.host_of.get(row["rank"]) or "unknown"),
        number("arrivals", lambda row: count(row["arrivals"])),
        number("last to arrive", lambda row: count(row["times_last"])),
        number("mean lateness", lambda row: duration(row["late_ns"])),
        number("mean wait", lambda row: duration(row["wait_ns"])),
    )
    return Table.of(context.rows("sections/lateness_ranks"), columns, context.limits.table_rows)


SECTION = Plugin(32, "Who is late, and when", "", _build)
