"""Where the time is lost: the delay ledger as a waterfall from zero, with an explicit bar for the unexplained.

Reads attribute.excess and delay. Culprits that own a twentieth of all delay stand alone; the others are summed by
cause, and small causes by failure mode. Intervals come from the finding that speaks of the same culprit.
"""

from dataclasses import dataclass

from traceforge.report.absence import missing
from traceforge.report.blocks import Column, Figure, LegendEntry, Missing, Panel, Plugin, Section, Table
from traceforge.report.charts.waterfall import Bar, waterfall_spec, waterfall_table
from traceforge.report.context import Context, Row
from traceforge.report.palette import MODES
from traceforge.report.words import capital, duration, lowered, mode_name, percent, plural, spaced

_MOST_CULPRITS = 7
_MOST_BARS = 12
_STANDS_ALONE = 0.05
_LEAST_AXIS = 0.02  # of a mean iteration
_UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class _Part:
    """A bar before drawing: mean delay in ns per iteration."""

    mode: str
    label: str
    delay_ns: float
    rank: int | None = None
    cause: str = ""


def _build(context: Context) -> Section | Missing:
    excess = context.rows("sections/waterfall_excess")[0]
    rows = context.rows("sections/waterfall")
    if not excess["iterations"] or not rows:
        return missing("No delay could be accounted for", context)
    parts = _parts(rows)
    total_ns = excess["excess_ns"] / excess["iterations"]
    mean_ns = (excess["reference_ns"] + excess["excess_ns"]) / excess["iterations"]
    bars = [*(_bar(part, mean_ns, context) for part in parts), _total_bar(total_ns, mean_ns)]
    spec = waterfall_spec(bars, _LEAST_AXIS * mean_ns / 1e6)
    panel = Panel(spec, {"bars": waterfall_table(bars)}, "Waterfall of the delay in each iteration by cause.")
    seen = [mode for mode in MODES if any(part.mode == mode for part in parts)]
    figure = Figure(
        name="waterfall",
        caption=_caption(parts, total_ns, mean_ns),
        panels=[panel],
        table=_table(parts, total_ns, mean_ns),
        queries=["sections/waterfall", "sections/waterfall_excess", "findings"],
        legend=[LegendEntry(mode, mode_name(mode)) for mode in seen],
        notes=_notes(excess["iterations"], bars),
    )
    return Section([figure])


def _parts(rows: list[Row]) -> list[_Part]:
    known = [row for row in rows if not _is_unexplained(row)]
    size = sum(abs(row["delay_ns"]) for row in rows) or 1
    ordered = sorted(known, key=lambda row: -abs(row["delay_ns"]))
    alone = [row for row in ordered if abs(row["delay_ns"]) >= _STANDS_ALONE * size][:_MOST_CULPRITS]
    parts = [_culprit(row) for row in alone]
    parts += _summed([row for row in known if row not in alone], alone, _MOST_BARS - len(parts))
    parts.sort(key=lambda part: (-part.delay_ns, part.mode, part.label))
    unexplained = sum(row["delay_ns"] / row["iterations"] for row in rows if _is_unexplained(row))
    return [*parts, _Part(_UNEXPLAINED, mode_name(_UNEXPLAINED), unexplained)]


def _is_unexplained(row: Row) -> bool:
    """Whether no cause owns it; a credit of its own name is told apart."""
    return bool(row["mode"] == _UNEXPLAINED and (row["cause"] == _UNEXPLAINED or row["delay_ns"] >= 0))


def _culprit(row: Row) -> _Part:
    cause = capital(spaced(row["cause"]))
    label = cause if row["rank"] is None else f"{cause}, rank {row['rank']}"
    return _Part(row["mode"], label, row["delay_ns"] / row["iterations"], row["rank"], row["cause"])


def _summed(rows: list[Row], alone: list[Row], room: int) -> list[_Part]:
    """The rest by cause, or by failure mode where the causes do not fit."""
    for keys in (("mode", "cause"), ("mode",)):
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
        if len(groups) <= room:
            break
    told = {tuple(row[key] for key in keys) for row in alone}
    return [_group(members, key, "other rank" if key in told else "rank") for key, members in groups.items()]


def _group(rows: list[Row], key: tuple[str, ...], noun: str) -> _Part:
    if len(rows) == 1:
        return _culprit(rows[0])
    name = capital(spaced(rows[0]["cause"])) if len(key) == 2 else mode_name(rows[0]["mode"])
    ranks = {row["rank"] for row in rows if row["rank"] is not None}
    label = f"{name}, {plural(len(ranks), noun)}" if ranks else name
    return _Part(rows[0]["mode"], label, sum(row["delay_ns"] / row["iterations"] for row in rows))


def _bar(part: _Part, mean_ns: float, context: Context) -> Bar:
    interval = _interval(part, context)
    return Bar(
        label=part.label,
        value=f"{duration(part.delay_ns)} · {_share(part.delay_ns, mean_ns)}",
        mode=_colour_mode(part),
        delay_ms=part.delay_ns / 1e6,
        low_ms=interval[0] / 1e6 if interval else None,
        high_ms=interval[1] / 1e6 if interval else None,
    )


def _colour_mode(part: _Part) -> str:
    if part.mode == _UNEXPLAINED and part.cause not in ("", _UNEXPLAINED):
        return "credit"
    return part.mode if part.mode in MODES else _UNEXPLAINED


def _interval(part: _Part, context: Context) -> tuple[float, float] | None:
    for finding in context.diagnosis.findings:
        same = finding.mode == part.mode and finding.cause == part.cause and finding.rank == part.rank
        if same and finding.low_ns is not None and finding.high_ns is not None:
            return finding.low_ns, finding.high_ns
    return None


def _total_bar(total_ns: float, mean_ns: float) -> Bar:
    value = f"{duration(total_ns)} · {_share(total_ns, mean_ns)}"
    return Bar("All delay in a mean iteration", value, "total", total_ns / 1e6)


def _share(delay_ns: float, mean_ns: float) -> str:
    return percent(delay_ns / mean_ns if mean_ns else None)


def _caption(parts: list[_Part], total_ns: float, mean_ns: float) -> str:
    known, unexplained = parts[:-1], parts[-1]
    text = f"An iteration takes {duration(mean_ns)}, {duration(total_ns)} more than at reference speed."
    if known and known[0].delay_ns > 0:
        text += f" The largest part is {lowered(known[0].label)}: {duration(known[0].delay_ns)}."
    share = f" ({percent(abs(unexplained.delay_ns) / total_ns)} of it)" if total_ns > 0 else ""
    return f"{text} {duration(unexplained.delay_ns)}{share} stay unexplained."


def _notes(iterations: int, bars: list[Bar]) -> list[str]:
    notes = [f"Mean of {plural(iterations, 'iteration')}. Percentages are of a mean iteration."]
    if any(bar.low_ms is not None for bar in bars):
        notes.append("Thin lines span the interval of the finding.")
    if any(bar.delay_ms < 0 for bar in bars):
        notes.append("Negative bars are credits: faster than the reference.")
    return notes


def _table(parts: list[_Part], total_ns: float, mean_ns: float) -> Table:
    columns = [
        Column("failure mode"),
        Column("cause and culprit"),
        Column("lost per iteration", numeric=True),
        Column("of the iteration", numeric=True),
        Column("of the delay", numeric=True),
    ]
    rows = [
        [
            mode_name(part.mode),
            part.label,
            duration(part.delay_ns),
            _share(part.delay_ns, mean_ns),
            percent(part.delay_ns / total_ns) if total_ns > 0 else "—",
        ]
        for part in parts
    ]
    return Table(columns, rows)


SECTION = Plugin("Where the time goes", "Time", _build)
