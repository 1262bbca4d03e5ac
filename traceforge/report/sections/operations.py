"""What takes longest: operations with their kernels, their calls, and how near the device's peak they come.

Reads operation.kernel and coverage. One rank is enough.
"""

from traceforge.report.blocks import Block, Missing, Note, Section, Table, TableColumn, TableFigure, number
from traceforge.report.context import Context, Row
from traceforge.report.formatting import clean, count, duration, listed, percent, spaced, tflops
from traceforge.report.missing_data import missing
from traceforge.report.operation_sums import summed
from traceforge.report.plugin import Plugin
from traceforge.thresholds import report as thresholds

_MOST_OPERATIONS = 20
_NAME_COLUMNS = 36
_COMMUNICATION = "communication"
_REASONS = {
    "graph_launch": "launched by captured graphs",
    "no_operation": "launched outside of operations",
    "no_launch": "their launch is not in the trace",
    "no_correlation": "the trace does not tell their launch",
}


def _build(context: Context) -> Section | Missing:
    rows = context.rows("sections/operations")
    if not rows:
        return missing("No operation can be listed", context)
    table = Table.of(rows, columns_of(rows), _MOST_OPERATIONS)
    queries = ["sections/operations", "sections/operations_coverage"]
    notes = ["Of a mean iteration of a mean rank." if context.job.used else "Of a mean rank."]
    if any(row["flops_per_s"] is not None for row in rows):
        notes.append("TFLOP/s and peak where shapes and the device's peak are known.")
    figure = TableFigure("operations", _operations_caption(rows, context), table, queries, notes)
    coverage = context.rows("sections/operations_coverage")
    unknown = [row for row in coverage if row["reason"] in _REASONS and row["share"] >= thresholds.LEAST_UNNAMED_SHARE]
    blocks: list[Block] = [figure]
    if unknown:
        why = listed([f"{percent(row['share'])} ({_REASONS[row['reason']]})" for row in unknown])
        blocks.append(Note(f"No operation is known for {why} of the device's time."))
    return Section(blocks)


def columns_of(rows: list[Row]) -> tuple[TableColumn, ...]:
    """Where the operation of most time is not known, kernels stand first in place of an empty column."""
    known = [row for row in rows if row["operation"]]
    if 2 * sum(row["duration_ns"] for row in known) >= sum(row["duration_ns"] for row in rows):
        return (_OPERATION, *_SIZES, _KERNEL, *_KIND)
    return (_KERNEL, *_SIZES, *([_OPERATION] if known else []), *_KIND)


def _operations_caption(rows: list[Row], context: Context) -> str:
    whole = "an iteration" if context.job.used else "the time recorded"
    largest = summed(rows, _named)
    work = summed([row for row in rows if row["kind"] != _COMMUNICATION], _named)
    first = largest[0]
    if not work or work[0]["name"] == first["name"]:
        return f"Most time goes to {told(first, whole)}."
    return f"Most time goes to {told(first, whole)}, waiting included; of the work, to {told(work[0])}."


def told(row: Row, whole: str = "") -> str:
    """Name and time of what was summed; `whole` is what the time is of. Several rows of the table are counted."""
    of, rows = f" of {whole}" if whole else "", f" ({count(row['rows'])} rows)" if row["rows"] > 1 else ""
    return f"{clean(row['name'], _NAME_COLUMNS)}, {duration(row['duration_ns'])}{of}{rows}"


def _named(row: Row) -> str:
    # What ran on the device tells communication better than the call that records its arguments.
    names = ("kernel", "operation") if row["kind"] == _COMMUNICATION else ("operation", "kernel")
    return next((str(row[one]) for one in names if row[one]), "work without a name")


def _name(value: object) -> str:
    return clean(value, _NAME_COLUMNS) if value else "—"


def _calls(row: Row) -> str:
    return f"{row['calls']:.1f}" if row["calls"] % 1 else count(int(row["calls"]))


_OPERATION = TableColumn("operation", lambda row: _name(row["operation"]), code=True)
_SIZES = (
    number("time", lambda row: duration(row["duration_ns"])),
    number("of all operations", lambda row: percent(row["share"])),
    number("calls", _calls),
    number("a call", lambda row: duration(row["call_ns"])),
)
_KERNEL = TableColumn("kernel", lambda row: _name(row["kernel"]), code=True, optional=True)
_KIND = (
    TableColumn("kind", lambda row: spaced(row["kind"])),
    number("TFLOP/s", lambda row: tflops(row["flops_per_s"]), optional=True),
    number("of peak", lambda row: percent(row["peak_share"]) if row["flops_per_s"] else "—", optional=True),
)

SECTION = Plugin(50, "Largest operations", "Operations", _build)
