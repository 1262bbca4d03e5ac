"""What can be said about other numbers of ranks, and what they would cost.

Reads forecast.*. Several comparable sizes make a curve with its band, knees, costs and models. One size of job gives no
curve; what it gives is where the time of an iteration goes, term by term, how late the slowest of more ranks will be,
and the list of measurements that would make a forecast possible.
"""

from traceforge.report.absence import missing
from traceforge.report.blocks import (
    Block,
    Column,
    Figure,
    Missing,
    Panel,
    Paragraph,
    Plugin,
    Section,
    Subheading,
    Table,
    Terms,
)
from traceforge.report.charts.budget import budget_spec, budget_table
from traceforge.report.context import Context, Row
from traceforge.report.scaling_figures import (
    change_blocks,
    curve_blocks,
    model_blocks,
    outlook_blocks,
)
from traceforge.report.words import capital, clean, duration, listed, percent, plural, spaced

_MOST_TERMS = 12
_NO_CURVE = "No scaling curve is drawn: one size of job does not show how its terms grow with the number of ranks."


def _build(context: Context) -> Section | Missing:
    curve, needs, terms = (context.rows(f"sections/scaling{part}") for part in ("", "_needs", "_terms"))
    if not curve and not needs and not terms:
        return missing("Nothing can be said about other numbers of ranks", context)
    blocks: list[Block] = curve_blocks(context, curve)
    if not blocks:
        blocks.append(Paragraph(f"{_NO_CURVE} {_measured(curve)}".strip()))
    else:
        blocks += model_blocks(context)
    if needs:
        blocks.append(Paragraph("To forecast other sizes, or to be surer of them, measure:"))
        blocks.append(Terms([(capital(spaced(need["item"])), clean(need["why"], 600)) for need in needs]))
    if terms:
        blocks.append(_budget(terms))
    changes = change_blocks(context)
    blocks += [Subheading("What a change would bring"), *changes] if changes else []
    outlook = outlook_blocks(context)
    blocks += [Subheading("Stability and the slowest rank"), *outlook] if outlook else []
    return Section(blocks)


def _measured(curve: list[Row]) -> str:
    points = [
        f"{row['value']:.3g} iterations a second on {plural(row['ranks'], 'rank')}"
        for row in curve
        if row["value"] is not None
    ]
    return f"Measured: {listed(points)}." if points else ""


def _budget(terms: list[Row]) -> Figure:
    shown = terms[:_MOST_TERMS]
    labels = [capital(spaced(term["term"])) for term in shown]
    values = [f"{duration(term['duration_ns_per_iteration'])} · {percent(term['share'])}" for term in shown]
    data = budget_table(labels, values, [term["duration_ns_per_iteration"] / 1e6 for term in shown])
    columns = [Column("term"), Column("per iteration", numeric=True), Column("share", numeric=True)]
    rows = [
        [capital(spaced(term["term"])), duration(term["duration_ns_per_iteration"]), percent(term["share"])]
        for term in terms
    ]
    caption = f"The largest term of an iteration is {spaced(shown[0]['term'])}: {values[0].replace(' · ', ', ')}."
    panel = Panel(budget_spec(values), {"terms": data}, "Duration of each term of an iteration.")
    return Figure("budget", caption, [panel], Table(columns, rows), ["sections/scaling_terms"])


SECTION = Plugin("Scaling and cost", "Scaling", _build)
