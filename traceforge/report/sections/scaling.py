"""What can be said about other numbers of ranks, and what they would cost.

Reads forecast.*. Several comparable sizes make a curve with its band, knees, costs and models. One size of job gives no
curve; what it gives is where the time of an iteration goes, term by term, how late the slowest of more ranks will be,
and the list of measurements that would make a forecast possible.
"""

from traceforge.report.blocks import (
    Block,
    Definitions,
    Figure,
    Missing,
    Panel,
    Paragraph,
    Section,
    Subheading,
    Table,
    TableColumn,
    number,
)
from traceforge.report.charts.parts import bars_spec, bars_table, time_axis
from traceforge.report.context import Context, Row
from traceforge.report.formatting import capital, clean, duration, listed, percent, plural, significant, spaced
from traceforge.report.machine_readable import MOST_ENTRIES
from traceforge.report.missing_data import missing
from traceforge.report.plugin import Plugin
from traceforge.report.scaling_figures import (
    change_blocks,
    curve_blocks,
    model_blocks,
    outlook_blocks,
)
from traceforge.stats import LEAST_COUNT

_MOST_TERMS = 12
_NO_CURVE = "No scaling curve: one job size does not show how its terms grow with the number of ranks."


def _build(context: Context) -> Section | Missing:
    curve, needs, terms = (context.rows(f"sections/scaling{part}") for part in ("", "_needs", "_terms"))
    if not curve and (not terms or not context.job.used):
        return missing("Nothing can be said about other numbers of ranks", context)
    blocks: list[Block] = curve_blocks(context, curve)
    if not blocks:
        # One step from end to end is no pace.
        measured = _measured(curve) if len(context.job.used) >= LEAST_COUNT else ""
        blocks.append(Paragraph(f"{_NO_CURVE} {measured}".strip()))
    else:
        blocks += model_blocks(context)
    if needs:
        blocks.append(Paragraph("To forecast other sizes, or to narrow the forecast, measure:"))
        blocks.append(Definitions([(capital(spaced(need["item"])), clean(need["why"], 600)) for need in needs]))
    if terms:
        blocks.append(_budget(terms, context.job.mean_ns))
    changes = change_blocks(context)
    blocks += [Subheading("Effect of possible changes"), *changes] if changes else []
    outlook = outlook_blocks(context)
    blocks += [Subheading("Stability and the slowest rank"), *outlook] if outlook else []
    return Section(blocks)


def _measured(curve: list[Row]) -> str:
    paces: dict[int, list[str]] = {}
    for row in curve:
        if row["value"] is not None:
            paces.setdefault(row["ranks"], []).append(significant(row["value"]))
    points = [f"{listed(found)} iterations a second on {plural(ranks, 'rank')}" for ranks, found in paces.items()]
    return f"Measured: {'; '.join(points)}." if points else ""


def _budget(terms: list[Row], mean_ns: float | None) -> Figure:
    shown = terms[:_MOST_TERMS]
    labels = [capital(spaced(term["term"])) for term in shown]
    values = [f"{duration(term['duration_ns_per_iteration'])} · {percent(term['share'])}" for term in shown]
    lengths = [term["duration_ns_per_iteration"] / 1e6 for term in shown]
    data = bars_table(labels, values, "duration_ms", lengths)
    spec = bars_spec("terms", time_axis("duration_ms", "ms per iteration"), ("term", "time"), values)
    columns = (
        TableColumn("term", lambda term: capital(spaced(term["term"]))),
        number("per iteration", lambda term: duration(term["duration_ns_per_iteration"])),
        number("share", lambda term: percent(term["share"])),
    )
    caption = f"The largest term of a rank's own step is {spaced(shown[0]['term'])}: {values[0].replace(' · ', ', ')}."
    panel = Panel(spec, {"terms": data}, "Duration of each term of an iteration.")
    table, notes = Table.of(terms, columns), _own_step(terms, mean_ns)
    return Figure("budget", caption, [panel], table, ["sections/scaling_terms"], notes=notes)


def _own_step(terms: list[Row], mean_ns: float | None) -> list[str]:
    """How long a rank's own step is, beside the iteration of all ranks, which the shares are not of."""
    own_ns = sum(term["duration_ns_per_iteration"] for term in terms)
    text = f"Shares are of a rank's own step, {duration(own_ns)} on average"
    whole = duration(mean_ns)
    if mean_ns is None or whole == duration(own_ns):
        return [f"{text}."]
    return [f"{text}; from the first rank's start to the last rank's end an iteration takes {whole}."]


def _summarise(context: Context) -> dict[str, object]:
    needs = context.rows("sections/scaling_needs")[:MOST_ENTRIES]
    is_extrapolated = any(row["extrapolated"] for row in context.rows("sections/scaling"))
    return {"forecast": {"refused": not is_extrapolated, "needs": [clean(need["item"], 160) for need in needs]}}


SECTION = Plugin(90, "Scaling and cost", "Scaling", _build, _summarise)
