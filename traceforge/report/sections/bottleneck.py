"""Where the time goes: the whole step from what the device could do to what was measured.

Reads attribute.bottleneck and bound. One rank is enough. The delay of single ranks and
iterations stands in a section of its own: this one sees what is always slow.
"""

from traceforge.report.blocks import Block, Figure, Missing, Panel, Section, Table, TableColumn, number
from traceforge.report.charts.waterfall import Bar, waterfall_spec, waterfall_table
from traceforge.report.context import Context, Row
from traceforge.report.diagnosis import leading_sentences
from traceforge.report.formatting import clean, duration, lowered, percent
from traceforge.report.job import JobOverview
from traceforge.report.missing_data import missing
from traceforge.report.part_names import part_name
from traceforge.report.plugin import Plugin

_MOST_LETTERS = 160
# From what the device could do to what keeps it waiting; parts of other names follow.
_ORDER = (
    "ideal", "compute_bound", "memory_bound", "small_kernels", "unmodelled_kernels", "host_compute",
    "communication_at_line_rate", "communication_bound", "imbalance_bound", "pipeline_bubble", "copy_bound",
    "input_bound", "launch_bound", "synchronisation_bound", "device_queue", "allocator", "garbage_collection",
    "checkpoint", "system_call", "mpi_call", "idle", "stagger", "unexplained",
)  # fmt: skip


# A name for all of the time, and how a sentence calls it: of marked iterations, and of a stretch without any.
_WHOLE = {False: ("A mean iteration", "the iteration"), True: ("The time recorded", "the time recorded")}


def _build(context: Context) -> Section | Missing:
    parts = [row for row in context.rows("sections/bottleneck") if row["duration_ns"]]
    bounds = context.rows("sections/bottleneck_ranks")
    if not parts or not bounds:
        return missing("The step could not be divided", context)
    job, ranks = bounds[0], bounds[1:]
    blocks: list[Block] = [_waterfall(parts, job, context.job)]
    if len(ranks) > 1:
        queries = ["sections/bottleneck_ranks"]
        shown = Table.of(ranks, _RANK_COLUMNS, context.limits.table_rows, "What bounds each rank", queries)
        blocks.append(shown)
    return Section(blocks)


def _waterfall(parts: list[Row], bound: Row, job: JobOverview) -> Figure:
    mean_ns = sum(part["duration_ns"] for part in parts)
    ordered = sorted(parts, key=lambda part: _ORDER.index(part["bound"]) if part["bound"] in _ORDER else len(_ORDER))
    bars = [
        Bar(
            part_name(part),
            f"{duration(part['duration_ns'])} · {percent(part['share'])}",
            "avoidable" if part["is_avoidable"] else "given",
            part["duration_ns"] / 1e6,
        )
        for part in ordered
    ]
    total, whole = _WHOLE[job.is_one_stretch]
    bars.append(Bar(total, duration(mean_ns), "total", mean_ns / 1e6))
    sentence = clean(bound["sentence"], 600)
    opening = leading_sentences(sentence, _MOST_LETTERS)
    return Figure(
        name="bottleneck",
        caption=opening,
        panels=[
            Panel(
                waterfall_spec(bars, 0.0, "ms recorded" if job.is_one_stretch else "ms of an iteration"),
                {"bars": waterfall_table(bars)},
                "Waterfall from what the device could do to what was measured.",
            )
        ],
        table=Table.of(parts, _PART_COLUMNS),
        queries=["sections/bottleneck", "sections/bottleneck_ranks"],
        notes=[
            *filter(None, [sentence[len(opening) :].strip()]),
            f"Blue bars can be avoided; grey ones cannot, or are not known to be. Together they are {whole}.",
            f"Next step: {lowered(bound['next_step'])}",
        ],
    )


_PART_COLUMNS = (
    TableColumn("part", part_name),
    number("time", lambda part: duration(part["duration_ns"])),
    number("share", lambda part: percent(part["share"])),
    TableColumn("avoidable", lambda part: "yes" if part["is_avoidable"] else "no, or not known"),
    TableColumn("what it rests on", lambda part: clean(part["basis"], 200), wide=True),
)
_RANK_COLUMNS = (
    number("rank", lambda row: str(row["rank"])),
    TableColumn("bound", part_name),
    number("share", lambda row: percent(row["share"])),
    number("device busy", lambda row: percent(row["busy_share"])),
    number("of peak", lambda row: percent(row["peak_share"])),
)


def _summarise(context: Context) -> dict[str, object]:
    bounds = context.rows("sections/bottleneck_ranks")
    if not bounds:
        return {"bound": None}
    return {"bound": {"name": bounds[0]["bound"], "sentence": clean(bounds[0]["sentence"], 600)}}


SECTION = Plugin(40, "Where the time goes", "Bottleneck", _build, _summarise)
