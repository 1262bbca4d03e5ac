"""What can be said about other numbers of ranks: usually a refusal, what to measure, and the term budget.

Reads forecast.scale, need and term. One size of job gives no curve; what it gives is where the time of an iteration
goes, term by term, and the list of measurements that would make a forecast possible.
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
    Table,
    TableFigure,
    Terms,
)
from traceforge.report.charts.budget import budget_spec, budget_table
from traceforge.report.context import Context, Row
from traceforge.report.words import capital, clean, count, duration, listed, percent, plural, spaced

_MOST_TERMS = 12


def _build(context: Context) -> Section | Missing:
    curve, needs, terms = (context.rows(f"sections/scaling{part}") for part in ("", "_needs", "_terms"))
    if not curve and not needs and not terms:
        return missing("Nothing can be said about other numbers of ranks", context)
    blocks: list[Block] = []
    if any(row["extrapolated"] for row in curve):
        blocks.append(_curve(curve))
    else:
        blocks.append(Paragraph(f"{_refusal(curve)} {_measured(curve)}".strip()))
    if needs:
        blocks.append(Paragraph("To forecast other sizes, measure:"))
        blocks.append(Terms([(capital(spaced(need["item"])), clean(need["why"], 600)) for need in needs]))
    if terms:
        blocks.append(_budget(terms))
    return Section(blocks)


def _refusal(curve: list[Row]) -> str:
    sizes = len({row["ranks"] for row in curve})
    if sizes > 1:
        return "No forecast beyond the measured sizes is made."
    return "No scaling curve is drawn: one size of job cannot tell how its terms grow with the number of ranks."


def _measured(curve: list[Row]) -> str:
    points = [f"{row['value']:.3g} iterations a second on {plural(row['ranks'], 'rank')}" for row in curve]
    return f"Measured: {listed(points)}." if points else ""


def _curve(rows: list[Row]) -> TableFigure:
    names = ("model", "ranks", "iterations a second", "from", "to")
    columns = [*(Column(name, numeric=name != "model") for name in names), Column("")]
    cells = [
        [
            spaced(row["model"]),
            count(row["ranks"]),
            *("—" if row[key] is None else f"{row[key]:.4g}" for key in ("value", "low", "high")),
            "extrapolated" if row["extrapolated"] else "within the measured range",
        ]
        for row in rows
    ]
    models = list(dict.fromkeys(spaced(row["model"]) for row in rows if row["extrapolated"]))
    caption = f"Forecast by {listed(models)}; the spread between models is part of the uncertainty."
    return TableFigure("forecast", caption, Table(columns, cells), ["sections/scaling"])


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


SECTION = Plugin("Other numbers of ranks", "Scaling", _build)
