"""Collectives by group, operation and size: how long the data travel, how far apart the ranks arrive, which are slow.

Reads timeline.collective, slow_collective, communicator and arrival. Groups of one description and size share a row, as
the many tensor-parallel groups of a job do. Waiting here counts also where compute hides it; the exposed part is a
phase.
"""

from traceforge.report.blocks import (
    Block,
    Figure,
    LegendEntry,
    Missing,
    Note,
    Panel,
    Section,
    Table,
    TableColumn,
    TableFigure,
    number,
)
from traceforge.report.charts.bandwidth import (
    OTHER,
    bandwidth_spec,
    bandwidth_table,
    operation_swatch,
    shown_operations,
)
from traceforge.report.context import Context, Row
from traceforge.report.diagnosis import place_link
from traceforge.report.formatting import LinkedText, clean, count, duration, listed, plural, rate, size
from traceforge.report.missing_data import missing
from traceforge.report.plugin import Plugin
from traceforge.thresholds import report as thresholds

_MOST_ROWS = 40
_MOST_KINDS = 400
_NOTE = (
    "Transfer runs from the last arrival to the end, skew from the first arrival to the last; wait is the mean over "
    "the members, hidden or not. All are medians over the calls. High skew with a steady transfer points upstream, "
    "to ranks that compute unevenly; a long transfer with little skew points to the fabric."
)
_RECORD_INSIDE = "Record steps that communicate; `timeline.collective` holds what was matched."
_UNJUDGED = "No whole iteration was recorded: these are all calls that were matched, those of warm-up included."


def _build(context: Context) -> Section | Missing:
    rows = context.rows("sections/collectives")
    if not rows and context.trust.collectives and context.job.used:
        matched = f"the {plural(context.trust.collectives, 'collective')} that could be matched"
        return Missing(f"No collective to show: {matched} lie outside of the iterations that count.", _RECORD_INSIDE)
    if not rows:
        return missing("No collective to show", context)
    table = Table.of(rows, _COLUMNS, _MOST_ROWS)
    notes = [_NOTE] if context.job.used else [_NOTE, _UNJUDGED]
    blocks: list[Block] = [
        TableFigure("collectives", _caption(rows, context.trust.resolution_ns), table, ["sections/collectives"], notes)
    ]
    return Section([*blocks, *_bandwidth(rows), _slowest(context, rows)])


def _bandwidth(rows: list[Row]) -> list[Block]:
    """Size against bandwidth; nothing where there are too few known sizes to see anything."""
    known = [row for row in rows if row["bandwidth_bytes_per_s"] and row["size_bytes"]]
    drawn = known[:_MOST_KINDS]
    if len({row["size_bytes"] for row in drawn}) < thresholds.LEAST_SIZES:
        return []
    operations = shown_operations([_operation(row) for row in drawn])
    panel = Panel(
        bandwidth_spec(operations, [row["bandwidth_bytes_per_s"] for row in drawn]),
        {"kinds": bandwidth_table([_kind(row, operations) for row in drawn])},
        "Bus bandwidth of each kind of collective by its size, both on logarithmic scales.",
    )
    notes = ["Dots are medians, lines the middle nine tenths of the calls; both axes are logarithmic."]
    if len(known) > len(drawn):
        notes.append(f"The {count(len(drawn))} kinds that take most time are drawn, of {count(len(known))}.")
    return [
        Figure(
            name="bandwidth",
            caption=_bandwidth_caption(drawn),
            panels=[panel],
            table=Table.of(known, _BANDWIDTH_COLUMNS, _MOST_ROWS),
            queries=["sections/collectives"],
            legend=[LegendEntry(operation_swatch(place), name) for place, name in enumerate(operations)],
            notes=notes,
        )
    ]


def _operation(row: Row) -> str:
    return clean(row["op"] or "unknown", 40)


def _kind(row: Row, operations: list[str]) -> Row:
    operation = _operation(row)
    low, median, high = (row[f"{end}bandwidth_bytes_per_s"] for end in ("low_", "", "high_"))
    return {
        "op": operation if operation in operations else OTHER,
        "label": f"{operation} of {size(row['size_bytes'])} in {clean(row['group_name'], 60)}",
        "shown": str(rate(row["bandwidth_bytes_per_s"])),
        "size_bytes": row["size_bytes"],
        "calls": row["calls"],
        "median_bytes_per_s": float(f"{median:.6g}"),
        "low_bytes_per_s": float(f"{low:.6g}"),
        "high_bytes_per_s": float(f"{high:.6g}"),
    }


def _bandwidth_caption(rows: list[Row]) -> str:
    best = max(rows, key=lambda row: row["bandwidth_bytes_per_s"])
    text = f"The highest bus bandwidth is that of {_operation(best)} of {size(best['size_bytes'])}"
    text += f" in {clean(best['group_name'], 60)}: {rate(best['bandwidth_bytes_per_s'])}"
    largest = max(rows, key=lambda row: row["size_bytes"])
    if largest["size_bytes"] == best["size_bytes"]:
        return f"{text}."
    shown = f"{_operation(largest)} of {size(largest['size_bytes'])}, reaches {rate(largest['bandwidth_bytes_per_s'])}"
    return f"{text}. The largest, {shown}."


def _slowest(context: Context, kinds: list[Row]) -> Block:
    rows = context.rows("sections/collectives_slowest")
    if not rows and not any(row["complete"] for row in kinds):
        return Note("Slow calls cannot be known: of no collective was every member recorded.")
    if not rows and not any(row["size_bytes"] for row in kinds):
        return Note("Slow calls cannot be known: no size was recorded, so that no two calls can be compared.")
    if not rows:
        return Note(f"No call took twice as long as others of its {_alike(kinds)}.")
    worst = rows[0]
    known = [] if context.job.is_one_stretch else [row["iteration"] for row in rows]
    iterations = [str(number) for number in dict.fromkeys(known) if number is not None]
    of_size = "" if worst["size_bytes"] is None else f" of {size(worst['size_bytes'])}"
    pair = f" between ranks {worst['between_ranks']}" if worst["between_ranks"] else ""
    caption = f"The call that loses most, {_operation(worst)}{of_size}{pair}, takes"
    caption += f" {duration(worst['transfer_ns'])}; the fastest quarter of its kind takes at most"
    caption += f" {duration(worst['reference_transfer_ns'])}."
    if iterations:
        which = "It falls" if len(rows) == 1 else f"The worst {plural(len(rows), 'call')} fall"
        caption += f" {which} into {'iteration' if len(iterations) == 1 else 'iterations'} {listed(iterations)}."
    notes = [f"Listed: transfers of more than twice the first quartile of their {_alike(kinds)}."]
    return TableFigure("slowest", caption, Table.of(rows, _SLOWEST_COLUMNS), ["sections/collectives_slowest"], notes)


def _alike(kinds: list[Row]) -> str:
    """What calls have in common that are compared."""
    pairs = ", messages also of their two ranks; those that share a kernel are left out"
    return f"group, operation and size{pairs if any(row['op'] == 'send_recv' for row in kinds) else ''}"


def _place(row: Row) -> str:
    """The iteration, which leads to that place of the timeline."""
    number = row["iteration"]
    return "—" if number is None else LinkedText(count(number), place_link(number, row["last_rank"]))


def _group(row: Row) -> str:
    name = clean(row["group_name"], 60)
    return f"{name} ({count(row['communicators'])} groups)" if row["communicators"] > 1 else name


def _caption(rows: list[Row], resolution_ns: float) -> str:
    first = rows[0]
    amount = "" if first["size_bytes"] is None else f" of {size(first['size_bytes'])}"
    name = f"{clean(first['op'] or 'collective', 40)}{amount}"
    if first["group_name"] != "unnamed":
        name += f" in {clean(first['group_name'], 60)}"
    calls, complete = (sum(row[key] for row in rows) for key in ("calls", "complete"))
    if not complete:
        return f"Transfers are not measured: of none of the {count(calls)} collectives was every member recorded."
    text = f"Most time is spent in {name}: {duration(first['transfer_ns'])} of transfer"
    skew_ns = first["skew_ns"]
    if skew_ns is None or first["ranks"] == 1:
        return f"{text}."
    is_resolved = skew_ns >= resolution_ns
    apart = duration(skew_ns) if is_resolved else f"less than the {duration(resolution_ns)} that the clocks resolve"
    text += f"; its ranks arrive within {apart}."
    transfer, skew = (sum(row[key] or 0 for row in rows) for key in ("total_transfer_ns", "total_skew_ns"))
    if is_resolved and skew > thresholds.SKEW_OVER_TRANSFER * transfer:
        return f"{text} Over all calls, uneven arrival takes more than the transfer."
    return text


_CALL_COLUMNS = (
    TableColumn("group", lambda row: clean(row["group_name"], 60)),
    TableColumn("operation", _operation),
    number("size", lambda row: size(row["size_bytes"])),
)
_BANDWIDTH_COLUMNS = (
    *_CALL_COLUMNS,
    number("calls", lambda row: count(row["calls"])),
    number("bus bandwidth, median", lambda row: rate(row["bandwidth_bytes_per_s"])),
    number("bus bandwidth, 5 %", lambda row: rate(row["low_bandwidth_bytes_per_s"])),
    number("bus bandwidth, 95 %", lambda row: rate(row["high_bandwidth_bytes_per_s"])),
)
_SLOWEST_COLUMNS = (
    number("iteration", _place),
    *_CALL_COLUMNS,
    TableColumn("between ranks", lambda row: row["between_ranks"] or "—", optional=True),
    number("transfer", lambda row: duration(row["transfer_ns"])),
    number("fastest quarter", lambda row: duration(row["reference_transfer_ns"])),
    number("lost", lambda row: duration(row["lost_ns"])),
    number("similar calls", lambda row: count(row["alike"])),
    number("bus bandwidth", lambda row: rate(row["bus_bandwidth_bytes_per_s"])),
)
_COLUMNS = (
    TableColumn("group", _group),
    number("ranks", lambda row: "—" if row["ranks"] is None else count(row["ranks"])),
    *_CALL_COLUMNS[1:],
    TableColumn("type", lambda row: clean(row["dtype"] or "—", 24)),
    number("calls", lambda row: count(row["calls"])),
    number("complete", lambda row: count(row["complete"])),
    number("transfer", lambda row: duration(row["transfer_ns"])),
    number("skew", lambda row: duration(row["skew_ns"])),
    number("wait", lambda row: duration(row["wait_ns"])),
    number("bus bandwidth", lambda row: rate(row["bandwidth_bytes_per_s"])),
)

SECTION = Plugin(60, "Collectives", "Collectives and messages", _build)
