"""Collectives by group, operation and size: how long the data travel, how far apart the ranks arrive.

Reads timeline.collective, communicator and arrival. Groups of one description and size share a row, as the many
tensor-parallel groups of a job do. Waiting here counts also where compute hides it; the exposed part is a phase.
"""

from traceforge.report.absence import missing
from traceforge.report.blocks import Column, Missing, Plugin, Section, Table, TableFigure
from traceforge.report.context import Context, Row
from traceforge.report.words import clean, count, duration, size

_MOST_ROWS = 40
_MUCH_MORE = 2.0
_NOTE = (
    "Transfer runs from the last arrival to the end, skew from the first arrival to the last; wait is the mean over "
    "the members, hidden or not. All are medians over the calls. High skew with a steady transfer points upstream, "
    "to ranks that compute unevenly; a long transfer with little skew points to the fabric."
)


def _build(context: Context) -> Section | Missing:
    rows = context.rows("sections/collectives")
    if not rows:
        return missing("There is no collective to show", context)
    table = Table(_COLUMNS, [_row(row) for row in rows[:_MOST_ROWS]], max(0, len(rows) - _MOST_ROWS))
    return Section([TableFigure("collectives", _caption(rows), table, ["sections/collectives"], [_NOTE])])


_COLUMNS = [
    Column("group"),
    Column("ranks", numeric=True),
    Column("operation"),
    Column("size", numeric=True),
    Column("type"),
    Column("calls", numeric=True),
    Column("complete", numeric=True),
    Column("transfer", numeric=True),
    Column("skew", numeric=True),
    Column("wait", numeric=True),
    Column("bus bandwidth", numeric=True),
]


def _row(row: Row) -> list[str]:
    bandwidth = row["bandwidth_bytes_per_s"]
    groups = row["communicators"]
    name = clean(row["group_name"], 60)
    return [
        f"{name} ({count(groups)} groups)" if groups > 1 else name,
        "—" if row["ranks"] is None else count(row["ranks"]),
        clean(row["op"] or "unknown", 40),
        size(row["size_bytes"]),
        clean(row["dtype"] or "—", 24),
        count(row["calls"]),
        count(row["complete"]),
        duration(row["transfer_ns"]),
        duration(row["skew_ns"]),
        duration(row["wait_ns"]),
        "—" if bandwidth is None else f"{size(bandwidth)}/s",
    ]


def _caption(rows: list[Row]) -> str:
    first = rows[0]
    amount = "" if first["size_bytes"] is None else f" of {size(first['size_bytes'])}"
    name = f"{clean(first['op'] or 'collective', 40)}{amount} in {clean(first['group_name'], 60)}"
    text = f"Most time goes into {name}: {duration(first['transfer_ns'])} of transfer"
    text += f" after {duration(first['skew_ns'])} between first and last arrival."
    transfer, skew = (sum(row[key] or 0 for row in rows) for key in ("total_transfer_ns", "total_skew_ns"))
    if skew > _MUCH_MORE * transfer:
        return f"{text} Over all calls the ranks' uneven arrival outweighs the transfer."
    return text


SECTION = Plugin("Collectives", "Collectives", _build)
