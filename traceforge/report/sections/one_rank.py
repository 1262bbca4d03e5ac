"""The step of a single rank at one glance: what it is made of, its largest operations, why its device idles.

Reads attribute.bottleneck, operation.kernel and timeline.gap. Where several ranks were recorded, who loses what comes
first, and this stands on tabs of its own.
"""

from collections.abc import Callable

from traceforge.report.answer_blocks import BarList, BarLists, ListedBar
from traceforge.report.blocks import Section
from traceforge.report.context import Context, Row
from traceforge.report.formatting import capital, clean, duration, percent, spaced
from traceforge.report.operation_sums import summed
from traceforge.report.part_names import part_name
from traceforge.report.plugin import Plugin
from traceforge.thresholds import attribute as thresholds

_MOST_ROWS = 6
_NAME_COLUMNS = 44


def _build(context: Context) -> Section | None:
    parts = [row for row in context.rows("sections/bottleneck") if row["duration_ns"]]
    if len(context.job.ranks) != 1 or not parts:
        return None
    operations, idle = context.rows("sections/operations"), context.rows("sections/one_rank_idle")

    def of_step(bar: Callable[[Row, str, float], ListedBar]) -> Callable[[Row, float], ListedBar]:
        step_ns = sum(map(_size, parts))
        return lambda row, length: bar(row, percent(_size(row) / step_ns), length)

    lists = [
        BarList(
            "Where the time recorded goes" if context.job.is_one_stretch else "Where a mean step goes",
            _bars(sorted(parts, key=_size, reverse=True), _part),
            ["sections/bottleneck"],
        ),
        BarList("Largest operations", _bars(summed(operations, _name), of_step(_operation)), ["sections/operations"]),
        BarList("Why the device is idle", _bars(idle, of_step(_gap)), ["sections/one_rank_idle"]),
    ]
    return Section([BarLists([one for one in lists if one.bars])])


def _size(row: Row) -> float:
    return float(row["duration_ns"])


def _bars(rows: list[Row], bar: Callable[[Row, float], ListedBar]) -> list[ListedBar]:
    shown = rows[:_MOST_ROWS]
    largest = max((_size(row) for row in shown), default=0.0)
    return [bar(row, 100 * _size(row) / largest) for row in shown if largest]


def _part(row: Row, length: float) -> ListedBar:
    swatch = "accent" if row["is_avoidable"] else "others"
    return ListedBar(part_name(row), duration(row["duration_ns"]), percent(row["share"]), length, swatch)


def _name(row: Row) -> str:
    return str(row["operation"] or row["kernel"] or "without a name")


def _operation(row: Row, share: str, length: float) -> ListedBar:
    return ListedBar(clean(row["name"], _NAME_COLUMNS), duration(row["duration_ns"]), share, length, "compute")


def _gap(row: Row, share: str, length: float) -> ListedBar:
    # A call that fills a part of it only is not what the host does meanwhile.
    is_held = (row["call_share"] or 0.0) >= thresholds.LONG_CALL_SHARE
    call = f", in {clean(row['largest_call'], _NAME_COLUMNS)}" if is_held else ""
    return ListedBar(f"{capital(spaced(row['cause']))}{call}", duration(row["duration_ns"]), share, length, "runtime")


SECTION = Plugin(13, "The step of this rank", "", _build)
