"""Figures of the section on scaling: the curve, its models, changes that would help, outlook. In: rows. Out: blocks.

The queries lie beside the section. Every table marks what lies beyond the measured scales.
"""

from collections.abc import Sequence

from traceforge.report.blocks import Block, Figure, Panel, Paragraph, Table, TableColumn, TableFigure, number
from traceforge.report.charts.scaling import CurvePoint, Mark, scaling_spec, scaling_tables
from traceforge.report.context import Context, Row
from traceforge.report.cost import Price
from traceforge.report.formatting import (
    capital,
    change,
    clean,
    count,
    duration,
    listed,
    lowered,
    minus_signs,
    money,
    percent,
    plural,
    significant,
    spaced,
)
from traceforge.report.representatives import LastingChange, lasting_change
from traceforge.thresholds import report as thresholds

_ENSEMBLE, _MEASURED = "ensemble", "measured"
_KNEES = {"knee_70": "70 %", "knee_50": "50 %", "peak": "peak"}
_DOTTED = "Dotted: from here on, an added rank contributes less than this share of what the first ones did."
_VERDICTS = {"helps": "helps", "harms": "harms", "cannot_be_told": "unclear: models differ"}
_MODELS = {"amdahl": "Amdahl's law", "usl": "Universal Scalability Law", "power_law": "Power law"}
_MEASURES = {
    "cv": "Variation of iteration times",
    "p95_over_median": "p95 / median",
    "p99_over_median": "p99 / median",
}
_RESTART = "repeated_iterations"
_FOUR_DIGITS = 0.001
_TRENDS = ("duration_trend", "variation_trend", "slowest_drift")
_METHODS = {"measured": "measured", "rank_blocks": "resampled measured ranks", "tail": "fitted tail"}
_PARTS = {"useful": "useful", "work": "local work", "growing": "growing cost"}


def curve_blocks(context: Context, curve: Sequence[Row]) -> list[Block]:
    """The curve with its band, and what each number of ranks brings and costs."""
    plan = context.rows("sections/scaling_plan", price_per_1000_gpu_hours=_per_1000_gpu_hours(context))
    knees = context.rows("sections/scaling_knees")
    members = context.rows("sections/scaling_members")
    ensemble = [row for row in curve if row["model"] == _ENSEMBLE]
    if not ensemble or not members or not plan:
        return []
    base = min(members, key=lambda row: (row["ranks"], row["name"]))
    per_rank = base["throughput"] / base["ranks"]
    reached = [Mark(row["ranks"], None, _KNEES[row["knee"]]) for row in knees if row["ranks"] and row["knee"] in _KNEES]
    labels = [row["ranks"] for row in plan]
    efficiency = scaling_tables(
        [_point(row, 100 * row["ranks"] / per_rank) for row in ensemble],
        [
            Mark(row["ranks"], 100 * row["throughput"] / row["ranks"] / per_rank, clean(row["name"], 60))
            for row in members
        ],
        reached,
    )
    throughput = scaling_tables(
        [_point(row, row["ranks"] * row["ranks"]) for row in ensemble],
        [Mark(row["ranks"], row["throughput"], clean(row["name"], 60)) for row in members],
        [],
    )
    panels = [
        Panel(
            scaling_spec("efficiency, %", labels, efficiency),
            efficiency,
            "Scaling efficiency by number of ranks, measured and forecast with its band.",
            "Throughput per rank, over that at the smallest scale",
        ),
        Panel(
            scaling_spec("iterations/s times ranks", labels, throughput),
            throughput,
            "Throughput by number of ranks, measured and forecast with its band.",
            "Throughput",
            weight="narrow",
        ),
    ]
    queries = ["sections/scaling", "sections/scaling_plan", "sections/scaling_knees", "sections/scaling_members"]
    notes = [
        "Dots are measured. Beyond the largest measured scale the line is dashed and the band lighter: extrapolated.",
        "The band spans all models that predicted the largest scale about as well as the best did, with their noise.",
        *([_DOTTED] if reached else []),
        *([_assumptions(context.price)] if context.price else []),
        "A sample is what one rank handles in one iteration.",
    ]
    caption = _caption(plan, knees)
    return [Figure("scaling", caption, panels, _plan_table(plan, context.price), queries, notes=notes)]


def _point(row: Row, factor: float) -> CurvePoint:
    """A row of forecast.scale, in iterations a second, times a factor over its ranks."""
    value, low, high = (
        None if row[key] is None else row[key] * factor / row["ranks"] for key in ("value", "low", "high")
    )
    return CurvePoint(row["ranks"], value, low, high, row["extrapolated"])


def _caption(plan: Sequence[Row], knees: Sequence[Row]) -> str:
    inside = [row for row in plan if not row["extrapolated"]]
    outside = [row for row in plan if row["extrapolated"] and row["efficiency"] is not None]
    first, last = inside[0], inside[-1]
    text = f"From {first['ranks']} to {plural(last['ranks'], 'rank')} efficiency falls to {percent(last['efficiency'])}"
    if outside:
        far = outside[0]
        band = _range(far, "efficiency")
        text += f"; at {count(far['ranks'])} it would be {percent(far['efficiency'])}{band}, by extrapolation"
    knee = next((row for row in knees if row["knee"] == "knee_50" and row["ranks"]), None)
    if knee:
        text += f". From {plural(knee['ranks'], 'rank')} on, an added rank brings less than half of what the first did"
    return f"{text}."


def _range(row: Row, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "" if low is None or high is None else f" ({percent(low)} to {percent(high)})"


def _per_1000_gpu_hours(context: Context) -> list[int]:
    """The price as queries take it; they give no costs without one."""
    return [context.price.per_1000_gpu_hours] if context.price else []


def _assumptions(price: Price) -> str:
    return (
        f"Costs: {price.per_gpu_hour:g}\N{NO-BREAK SPACE}{price.currency} a GPU-hour, one GPU a rank; a failure every "
        "45,600 GPU-hours, 60 s a checkpoint, 600 s a restart (`traceforge forecast` takes others)."
    )


def _plan_table(plan: Sequence[Row], price: Price | None) -> Table:
    costs = (
        number("cost of 1M samples", lambda row: _price(row["cost"], price)),
        number("band", lambda row: _band(row["cost_low"], row["cost_high"])),
    )
    columns = (
        number("ranks", lambda row: count(row["ranks"])),
        TableColumn("range", lambda row: "extrapolated" if row["extrapolated"] else "measured range"),
        number("iterations/s times ranks", lambda row: _number(row["throughput"])),
        number("band", lambda row: _band(row["throughput_low"], row["throughput_high"])),
        number("efficiency", lambda row: percent(row["efficiency"])),
        number("one more rank adds", lambda row: percent(row["marginal_efficiency"])),
        number("time that is work", lambda row: percent(row["work_share"])),
        *(costs if price else ()),
    )
    return Table.of(plan, columns)


def model_blocks(context: Context) -> list[Block]:
    """The models behind the band, and where the time of one more rank goes."""
    fits, margin = context.rows("sections/scaling_fits"), context.rows("sections/scaling_margin")
    blocks: list[Block] = []
    if fits:
        used = [_model(row) for row in fits if row["is_used"]]
        caption = f"In the band: {listed(used)}. Errors are those of fits to all other scales."
        blocks.append(TableFigure("scaling-models", caption, Table.of(fits, _MODEL_COLUMNS), ["sections/scaling_fits"]))
    if margin:
        blocks.append(_margin(margin))
    return blocks


def _margin(margin: Sequence[Row]) -> TableFigure:
    parts = list(dict.fromkeys(row["part"] for row in margin if row["part"] == "useful"))
    parts += sorted(
        {
            row["part"]
            for row in margin
            if row["part"] != "useful" and abs(row["share"]) >= thresholds.LEAST_MARGIN_SHARE
        }
    )
    by_ranks: dict[int, dict[str, Row]] = {}
    for row in margin:
        by_ranks.setdefault(row["ranks"], {})[row["part"]] = row
    columns = (
        number("added to ranks", lambda found: count(next(iter(found.values()))["ranks"])),
        *(_share_column(part) for part in parts),
        TableColumn("one more rank", lambda found: _VERDICTS.get(next(iter(found.values()))["one_more_rank"], "—")),
    )
    first = by_ranks[min(by_ranks)]
    lost = sorted(((row["share"], _part(part)) for part, row in by_ranks[max(by_ranks)].items() if part != "useful"))
    caption = (
        f"Added to {plural(min(by_ranks), 'rank')}, {percent(first['useful']['share'])} of a rank's time is useful"
    )
    if lost and lost[-1][0] > 0:
        caption += f"; added to {count(max(by_ranks))}, {lost[-1][1]} takes most of the rest, {percent(lost[-1][0])}"
    return TableFigure(
        "scaling-margin", f"{caption}.", Table.of(list(by_ranks.values()), columns), ["sections/scaling_margin"]
    )


def _share_column(part: str) -> TableColumn:
    return number(_part(part), lambda found: percent(found[part]["share"]) if part in found else "—")


def _model(row: Row) -> str:
    return _MODELS.get(row["model"]) or capital(spaced(row["model"]))


def _part(part: str) -> str:
    return _PARTS.get(part) or spaced(part)


def change_blocks(context: Context) -> list[Block]:
    """What fixes and other networks would bring at this run's scale."""
    price = context.price
    rows = context.rows("sections/scaling_what_if", price_per_1000_gpu_hours=_per_1000_gpu_hours(context))
    if not rows:
        return []
    worth = (
        number("worth an hour", lambda row: _price(row["worth_per_hour"], price)),
        number(
            "break-even price per GPU-hour",
            lambda row: "—" if row["break_even_price"] <= 0 else _price(row["break_even_price"], price),
        ),
    )
    columns = (
        TableColumn("change", lambda row: clean(row["change"]), wide=True),
        number("throughput", lambda row: change(row["throughput_ratio"])),
        number("interval", lambda row: "—" if row["low"] is None else f"{change(row['low'])} to {change(row['high'])}"),
        number("worth in ranks", lambda row: "—" if row["gpus"] is None else significant(row["gpus"])),
        *(worth if price else ()),
    )
    worth_is = "Worth: the ranks that would have to be added for the same throughput"
    notes = [f"{worth_is}, and what their GPUs cost an hour." if price else f"{worth_is}."]
    for basis in dict.fromkeys(row["basis"] for row in rows):
        kinds = [spaced(row["kind"]).replace("sgd", "SGD") for row in rows if row["basis"] == basis]
        notes.append(f"{capital(listed(list(dict.fromkeys(kinds))))}: {clean(basis, 300)}.")
    return [TableFigure("scaling-changes", _best(rows), Table.of(rows, columns), ["sections/scaling_what_if"], notes)]


def _best(rows: Sequence[Row]) -> str:
    """The change that brings most, or that none is sure to bring anything."""
    best = max(rows, key=lambda row: row["throughput_ratio"])
    at, what = f"At {plural(best['ranks'], 'rank')}", lowered(clean(best["change"]))
    gain = f"{change(best['throughput_ratio'])} throughput"
    if best["low"] is not None:
        gain += f" ({change(best['low'])} to {change(best['high'])})"
    least = change(best["throughput_ratio"] if best["low"] is None else best["low"])
    if least.startswith("+"):
        return f"{at} one change would bring the most: {what}, {gain}."
    if len(rows) == 1:
        return f"{at} it is not sure that one change would bring anything: {what}, {gain}."
    return f"{at} none of these changes is sure to bring anything; the best is {what}, {gain}."


def _price(amount: float | None, price: Price | None) -> str:
    return "—" if amount is None or price is None else money(amount, price.currency)


def outlook_blocks(context: Context) -> list[Block]:
    """How late the slowest rank will be, how steady the run is, and how variation grows over the runs of a curve."""
    blocks: list[Block] = []
    stability = context.rows("sections/scaling_stability")
    restarts = [clean(row["meaning"], 400) for row in stability if row["measure"] == _RESTART]
    blocks += [Paragraph(text) for text in (_variation(context), *restarts) if text]
    outlook = context.rows("sections/scaling_outlook")
    if any(row["slowest_ns"] is not None for row in outlook):
        blocks.append(_outlook(outlook))
    measures = [row for row in stability if row["measure"] != _RESTART]
    if measures:
        blocks.append(_stability(measures, lasting_change(context.job.used)))
    return blocks


def fitted(parameters: str) -> str:
    """Parameters as people write them: `latency_s=1.39e-05,overlap_s=0` is `latency 13.9 µs, overlap 0 ns`."""
    said = []
    for one in filter(None, parameters.split(",")):
        name, _, value = one.partition("=")
        try:
            size = float(value)
        except ValueError:  # a table may come from anywhere
            said.append(clean(one))
            continue
        if name.endswith("_s"):
            said.append(f"{clean(spaced(name.removesuffix('_s')))} {duration(1e9 * size)}")
        else:
            digits = f"{size:.4f}" if size >= _FOUR_DIGITS else f"{size:.8f}"
            said.append(f"{clean(spaced(name))} {digits.rstrip('0').rstrip('.')}")
    return ", ".join(said)


def _variation(context: Context) -> str:
    known = [row for row in context.rows("sections/scaling_members") if row["cv"] is not None]
    if len({row["ranks"] for row in known}) < 2:
        return ""
    by_scale = listed([f"{percent(row['cv'])} at {plural(row['ranks'], 'rank')}" for row in known], 8)
    return f"Variation of iteration times (standard deviation over mean) by scale: {by_scale}."


def _outlook(outlook: Sequence[Row]) -> TableFigure:
    known = [row for row in outlook if row["slowest_ns"] is not None]
    columns = (
        number("ranks", lambda row: count(row["ranks"])),
        number("slowest after the mean rank", lambda row: duration(row["slowest_ns"])),
        number(
            "interval",
            lambda row: "—" if row["low_ns"] is None else f"{duration(row['low_ns'])} to {duration(row['high_ns'])}",
        ),
        TableColumn("method", lambda row: _METHODS.get(row["method"], spaced(row["method"]))),
    )
    first, last = known[0], known[-1]
    caption = f"The slowest of {plural(first['ranks'], 'rank')} finishes its own work "
    caption += f"{duration(first['slowest_ns'])} after the mean one"
    if last is not first:
        caption += f"; of {count(last['ranks'])} it would be {duration(last['slowest_ns'])}"
    caption += f". {percent(first['persistent_share'])} of the spread stays with the same ranks."
    refused = [row["refusal"] for row in outlook if row["refusal"]]
    notes = [f"No number for more ranks: {lowered(minus_signs(clean(refused[0], 300)))}"] if refused else []
    return TableFigure("scaling-outlook", caption, Table.of(known, columns), ["sections/scaling_outlook"], notes)


def _stability(stability: Sequence[Row], step: LastingChange | None) -> TableFigure:
    verdict = next((row["meaning"] for row in stability if row["measure"] == "verdict"), None)
    columns = (
        TableColumn("measure", lambda row: _MEASURES.get(row["measure"]) or capital(spaced(row["measure"]))),
        number("value", lambda row: _measure(row["measure"], row["value"])),
        number(
            "interval",
            lambda row: "—" if row["low"] is None else f"{_measure('', row['low'])} to {_measure('', row['high'])}",
        ),
        TableColumn("meaning", lambda row: clean(row["meaning"], 400), wide=True),
    )
    # A straight line through a step is no trend, and what it would reach is never measured.
    hidden = {"verdict", *(_TRENDS if step else ())}
    rows = [row for row in stability if row["measure"] not in hidden]
    notes = [f"No trend is told: the run changes at once, at iteration {step.first.number}."] if step else []
    caption = clean(verdict, 500) if verdict else "How steady the run is; too little was recorded for a verdict."
    return TableFigure("stability", caption, Table.of(rows, columns), ["sections/scaling_stability"], notes)


def _measure(name: str, value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:.3f}" if name.endswith("_over_median") else percent(value)


def _number(value: float | None) -> str:
    if value is None:
        return "—"
    return count(round(value)) if abs(value) >= 1000 else f"{value:.3g}"


def _band(low: float | None, high: float | None) -> str:
    return "—" if low is None or high is None else f"{_number(low)} to {_number(high)}"


_MODEL_COLUMNS = (
    TableColumn("model", _model),
    number(
        "error at the largest scale",
        lambda row: "not tested: too few scales" if row["backtest"] is None else change(1 + row["backtest"]),
    ),
    number("weight", lambda row: percent(row["weight"]) if row["is_used"] else "left out"),
    TableColumn("parameters", lambda row: fitted(row["parameters"]), wide=True),
)
