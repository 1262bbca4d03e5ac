"""What changed since a baseline run: the whole, then by phase, cause, collective and rank, each with its interval.

Reads the `Comparison` of the context, whose queries were asked of both databases. Absent where no baseline was given.
"""

from traceforge.compare import Change, Comparison
from traceforge.report.blocks import (
    Block,
    Figure,
    Note,
    Panel,
    Paragraph,
    Section,
    Table,
    TableColumn,
    TableFigure,
    number,
)
from traceforge.report.charts.forest import Axis, ForestRow, forest_spec, forest_table
from traceforge.report.comparison_text import (
    FAMILY_TITLES,
    NO_MORE_THAN_OTHERS,
    ONE_RUN_EACH,
    comparison_document,
    headline,
    judged,
    judged_operation,
    moved,
    subject,
    summary,
    tail,
    warnings,
)
from traceforge.report.context import Context
from traceforge.report.formatting import capital, clean, duration, duration_range, plural, signed, tflops
from traceforge.report.plugin import Plugin
from traceforge.report.replaced_work import is_replaced, replaced
from traceforge.thresholds import compare

_WORK_COLUMNS = (
    TableColumn("ranks", lambda one: "all" if one.rank is None else str(one.rank)),
    number("calls before", lambda one: f"{one.before_calls:.4g}"),
    number("calls now", lambda one: f"{one.after_calls:.4g}"),
    number("TFLOP/s before", lambda one: tflops(one.before_flops_per_s)),
    number("TFLOP/s now", lambda one: tflops(one.after_flops_per_s)),
    number("baseline", lambda one: duration(one.before_ns)),
    number("this run", lambda one: duration(one.after_ns)),
    number("change", lambda one: signed(one.difference_ns)),
    TableColumn("judgement", judged_operation),
)
_MOST_DRAWN = 10
_MOST_ROWS = 12
_SAME_UNIT = (
    "In these tables times are means over the judged iterations; intervals are of 95 %. Significant is what exceeds "
    "scatter with as many rows tried (Holm), 0.5 % of an iteration, and what the clocks leave unsure."
)


def _build(context: Context) -> Section | None:
    comparison = context.comparison
    if comparison is None:
        return None
    for name, sql in comparison.queries:
        context.record(f"comparison/{name}", sql)
    before = f"Against the baseline “{clean(comparison.before.run_name, 80)}”"
    blocks: list[Block] = [Paragraph(f"{before}. {headline(comparison)}."), Paragraph(f"{capital(tail(comparison))}.")]
    blocks += [Note(f"Not fully comparable: {warning}.") for warning in warnings(comparison)]
    if comparison.findings:
        blocks.append(_findings(comparison))
    if drawn := _drawn(comparison):
        blocks.append(_figure(comparison, drawn))
    else:
        blocks.append(Paragraph(summary(comparison)))
    tables = [_table(family, comparison) for family in FAMILY_TITLES if comparison.of(family)]
    blocks += [*tables, Note(_SAME_UNIT)] if tables else []
    blocks += [_operations(comparison)] if comparison.operations else []
    blocks += [_details(comparison)] if comparison.details else []
    blocks.append(Note(ONE_RUN_EACH))
    return Section(blocks)


def _findings(comparison: Comparison) -> TableFigure:
    changed = sum(one.turn != "same" for one in comparison.findings)
    caption = (
        f"Findings: {changed or 'none'} of {len(comparison.findings)} changed." if changed else "No finding changed."
    )
    columns = [
        TableColumn("change", lambda one: one.turn),
        TableColumn("finding", lambda one: clean(one.summary, 300), wide=True),
        number("baseline", lambda one: "—" if one.before_ns is None else duration(one.before_ns)),
        number("this run", lambda one: "—" if one.after_ns is None else duration(one.after_ns)),
    ]
    note = "High and medium confidence; times are what a finding costs an iteration of its run."
    table = Table.of(comparison.findings, columns, _MOST_ROWS)
    return TableFigure("comparison-findings", caption, table, ["comparison/finding"], [note])


def _operations(comparison: Comparison) -> TableFigure:
    rows = comparison.operations
    changed = sum(one.is_significant for one in rows)
    caption = f"By operation: {_of(changed, len(rows))}."
    columns = [TableColumn("operation", lambda one: clean(one.name, 80)), *_WORK_COLUMNS]
    note = (
        "Means of the ranks' iterations; numbers of calls are counted, times are tested over ranks (Student's t, Holm)."
    )
    table = Table.of(rows, columns, _MOST_ROWS)
    notes = [note, *([f"Work in the place of other work: {replaced(rows)}."] if is_replaced(rows) else [])]
    return TableFigure("comparison-operations", caption, table, ["comparison/operation"], notes)


def _details(comparison: Comparison) -> TableFigure:
    rows = sorted(comparison.details, key=lambda one: (not one.is_significant, -abs(one.difference_ns), one.name))
    changed = sum(one.is_significant for one in rows)
    caption = (
        f"By kernel, module and shapes: {plural(changed, 'significant change') if changed else 'no certain change'}."
    )
    columns = [
        TableColumn("by", lambda one: one.level),
        TableColumn("name", lambda one: clean(one.name, 120), wide=True),
        *_WORK_COLUMNS,
    ]
    note = "The same work grouped in other ways, as far as it changed: rows of different groupings overlap."
    table = Table.of(rows, columns, _MOST_ROWS)
    return TableFigure("comparison-work", caption, table, ["comparison/operation"], [note])


def _of(changed: int, count: int) -> str:
    if count == 1:
        return "it changed significantly" if changed else "it did not change significantly"
    return f"{changed} of {count} changed significantly" if changed else f"none of {count} changed significantly"


def _drawn(comparison: Comparison) -> list[Change]:
    """The significant changes of one family, so that one axis fits all: of causes, which add up, if any changed."""
    families = (comparison.of(family, only_significant=True) for family in ("cause", *FAMILY_TITLES))
    return next((rows for rows in families if rows), [])[:_MOST_DRAWN]


def _figure(comparison: Comparison, drawn: list[Change]) -> Figure:
    predictions = [
        ForestRow(
            label=_label(change),
            value=signed(change.difference_ns),
            change=change.difference_ns / 1e6,
            low=None if change.low_ns is None else change.low_ns / 1e6,
            high=None if change.high_ns is None else change.high_ns / 1e6,
            ceiling=None,
        )
        for change in drawn
    ]
    largest = max(drawn, key=lambda change: abs(change.difference_ns))
    family = FAMILY_TITLES[largest.family]
    axis = Axis(
        "change from the baseline, ms an iteration",
        "part",
        "change",
        compare.LEAST_SHARE * comparison.iteration.before_ns / 1e6,
    )
    data = {"policies": forest_table(predictions), "zero": {"at": [0]}}
    panel = Panel(forest_spec(predictions, axis), data, "Significant changes from the baseline with their intervals.")
    columns = [TableColumn("part", _label), TableColumn("change", moved, wide=True)]
    table = Table.of(drawn, columns)
    left = sum(change.is_significant for change in comparison.changes) - len(drawn)
    notes = ["Point: change of the mean; line: its interval. Left of zero is faster than before."]
    notes += [f"{plural(left, 'further significant change')} in the tables below."] if left else []
    queries = [f"comparison/{name}" for name, _ in comparison.queries]
    caption = f"{family}: the largest change is {subject(largest)}, {signed(largest.difference_ns)} an iteration."
    return Figure("comparison", caption, [panel], table, queries, notes=notes)


def _label(change: Change) -> str:
    return capital(subject(change))


def _table(family: str, comparison: Comparison) -> TableFigure:
    rows = comparison.of(family)
    queries = [f"comparison/{'rank_own' if family == 'rank_work' else family}"]
    changed = sum(change.is_significant for change in rows)
    what = _of(changed, len(rows))
    if not changed and any(judged(row) == NO_MORE_THAN_OTHERS for row in rows):
        what = "ranks changed, none by clearly more than the others"
    caption = f"{FAMILY_TITLES[family]}: {what}."
    table = Table.of(rows, _COLUMNS, _MOST_ROWS)
    return TableFigure(f"comparison-{family.replace('_', '-')}", caption, table, queries)


def _summarise(context: Context) -> dict[str, object]:
    return {} if context.comparison is None else {"comparison": comparison_document(context.comparison)}


_COLUMNS = (
    TableColumn("part", lambda change: capital(subject(change)) if change.family == "cause" else subject(change)),
    number("baseline", lambda change: duration(change.before_ns)),
    number("this run", lambda change: duration(change.after_ns)),
    number("change", lambda change: signed(change.difference_ns)),
    number("95 % interval", lambda change: duration_range(change.low_ns, change.high_ns) or "—"),
    TableColumn("judgement", judged),
)

SECTION = Plugin(100, "Compared with the baseline", "Baseline", _build, _summarise)
