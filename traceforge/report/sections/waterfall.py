"""Where the time is lost: the delay ledger as a waterfall from zero, with an explicit bar for the unexplained.

Reads attribute.excess and delay. Culprits that own a twentieth of all delay stand alone; the others are summed by
cause, and where those are too many by failure mode.
"""

from dataclasses import dataclass

from traceforge.report.blocks import Figure, LegendEntry, Missing, Panel, Section, Table, TableColumn, number
from traceforge.report.charts.waterfall import Bar, waterfall_spec, waterfall_table
from traceforge.report.context import Context, Row
from traceforge.report.formatting import capital, clean, duration, lowered, mode_name, percent, plural, spaced
from traceforge.report.missing_data import missing
from traceforge.report.palette import MODES
from traceforge.report.plugin import Plugin
from traceforge.thresholds import report as thresholds

_MOST_BARS = 12
_LEAST_AXIS = 0.02  # of a mean iteration
_UNEXPLAINED = "unexplained"
_LONGEST_SUBJECT = 40


@dataclass(frozen=True, slots=True)
class _Part:
    """A bar before drawing: mean delay in ns per iteration, and its shares of the iteration and of all delay."""

    mode: str
    label: str
    delay_ns: float
    share: float | None
    share_of_delay: float | None
    cause: str = ""


def _build(context: Context) -> Section | Missing:
    excess = context.rows("sections/waterfall_excess")[0]
    rows = context.rows("sections/waterfall")
    if not excess["iterations"] or not rows:
        return missing("No delay could be attributed", context)
    parts = parts_of(rows)
    total_ns, mean_ns = excess["excess_ns"], excess["duration_ns"]
    bars = [*(_bar(part) for part in parts), _total_bar(excess)]
    spec = waterfall_spec(bars, _LEAST_AXIS * mean_ns / 1e6)
    panel = Panel(spec, {"bars": waterfall_table(bars)}, "Waterfall of the delay in each iteration by cause.")
    seen = [mode for mode in MODES if any(part.mode == mode for part in parts)]
    figure = Figure(
        name="waterfall",
        caption=_caption(parts, total_ns, mean_ns, by_cause=context.diagnosis.leading is None),
        panels=[panel],
        table=Table.of(parts, _COLUMNS),
        queries=["sections/waterfall", "sections/waterfall_excess"],
        legend=[LegendEntry(mode, mode_name(mode)) for mode in seen],
        notes=_notes(excess["iterations"], bars),
    )
    return Section([figure])


def parts_of(rows: list[Row]) -> list[_Part]:
    """The rows as they are; where they do not fit, those that do not stand alone summed by failure mode."""
    known = [row for row in rows if not row["is_unexplained"]]
    if len(known) > _MOST_BARS:
        rest = [row for row in known if not row["is_alone"]]
        known = [row for row in known if row["is_alone"]]
        known += [*(_sum([row for row in rest if row["mode"] == mode]) for mode in _modes(rest))]
        known.sort(key=lambda row: (-row["delay_ns"], row["mode"], row["shown_cause"]))
    alone = {(row["mode"], row["shown_cause"]) for row in known if row["is_alone"]}
    unexplained = [row for row in rows if row["is_unexplained"]]
    none = _Part(_UNEXPLAINED, mode_name(_UNEXPLAINED), 0.0, 0.0, 0.0)
    return [*(_part(row, alone) for row in known), _part(_sum(unexplained), alone) if unexplained else none]


def _modes(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["mode"] for row in rows))


def _sum(rows: list[Row]) -> Row:
    """Rows of one failure mode as one, under the name of the mode where there are several."""
    if len(rows) == 1:
        return rows[0]
    shares = [row["share_of_delay"] for row in rows]
    return {
        **rows[0],
        "shown_cause": rows[0]["mode"],
        # Ranks that lose by two causes would count twice.
        "subject": "smaller parts",
        "delay_ns": sum(row["delay_ns"] for row in rows),
        "share": sum(row["share"] for row in rows),
        "share_of_delay": None if None in shares else sum(shares),
    }


def _part(row: Row, alone: set[tuple[str, str]]) -> _Part:
    mode, cause = row["mode"], row["shown_cause"]
    name = mode_name(mode) if cause == mode else capital(spaced(cause))
    label = name
    if row["is_unexplained"]:
        label = name
    elif row["subject"] is not None:
        label = f"{name}, {clean(row['subject'], _LONGEST_SUBJECT)}"
    elif row["ranks"] == 1:
        label = f"{name}, rank {row['rank']}"
    elif row["ranks"]:
        label = f"{name}, {plural(row['ranks'], 'other rank' if (mode, cause) in alone else 'rank')}"
    return _Part(mode, label, row["delay_ns"], row["share"], row["share_of_delay"], cause)


def _bar(part: _Part) -> Bar:
    return Bar(
        label=part.label,
        value=f"{duration(part.delay_ns)} · {percent(part.share)}",
        mode=_colour_mode(part),
        delay_ms=part.delay_ns / 1e6,
    )


def _colour_mode(part: _Part) -> str:
    if part.mode == _UNEXPLAINED and part.cause not in ("", _UNEXPLAINED):
        return "credit"
    return part.mode if part.mode in MODES else _UNEXPLAINED


def _total_bar(excess: Row) -> Bar:
    value = f"{duration(excess['excess_ns'])} · {percent(excess['share'])}"
    return Bar("All delay in a mean iteration", value, "total", excess["excess_ns"] / 1e6)


def _caption(parts: list[_Part], total_ns: float, mean_ns: float, *, by_cause: bool) -> str:
    """What is lost, and by what most: by one culprit, or over all of them where the verdict names none."""
    known, unexplained = parts[:-1], parts[-1]
    lost = f"{duration(total_ns)} of it is delay" if total_ns > 0 else "delays and gains cancel out"
    if total_ns < 0:
        lost = f"{duration(-total_ns)} less than at reference durations"
    gross_ns = sum(max(0.0, part.delay_ns) for part in parts)
    if gross_ns - total_ns >= thresholds.LEAST_WON_BACK_SHARE * gross_ns > 0:
        lost += (
            f": {duration(gross_ns)} lost, {duration(gross_ns - total_ns)} won back where ranks are faster than usual"
        )
    text = f"An iteration takes {duration(mean_ns)}; {lost}."
    largest = _largest(known) if by_cause else known[:1]
    if largest and sum(part.delay_ns for part in largest) > 0:
        name = lowered(largest[0].label if len(largest) == 1 else capital(spaced(largest[0].cause)))
        sum_ns = sum(part.delay_ns for part in largest)
        known_part = "known part" if unexplained.delay_ns > sum_ns else "part"
        over = "" if len(largest) == 1 else f", {duration(sum_ns)} over several ranks"
        text += f" The largest {known_part} is {name}{over}."
    share = f" ({percent(abs(unexplained.delay_ns) / total_ns)} of it)" if total_ns > 0 else ""
    rest = f"{duration(unexplained.delay_ns)}{share} remains" if unexplained.delay_ns else "Nothing remains"
    return f"{text} {rest} unexplained."


def _largest(known: list[_Part]) -> list[_Part]:
    """The parts of the cause that owns most in sum."""
    causes = {part.cause: [other for other in known if other.cause == part.cause] for part in known}
    return max(causes.values(), key=lambda own: sum(part.delay_ns for part in own), default=[])


def _notes(iterations: int, bars: list[Bar]) -> list[str]:
    notes = [f"Mean of {plural(iterations, 'iteration')}. Percentages are of a mean iteration."]
    notes.append(
        "Bars divide all delay by who owns it. What a fix would recover comes from a replay without it: less where "
        "other lateness takes its place, more where other delay goes with it."
    )
    if any(bar.delay_ms < 0 for bar in bars):
        notes.append("Negative bars are credits: faster than the reference.")
    return notes


_COLUMNS = (
    TableColumn("failure mode", lambda part: mode_name(part.mode)),
    TableColumn("cause and culprit", lambda part: part.label),
    number("lost per iteration", lambda part: duration(part.delay_ns)),
    number("of the iteration", lambda part: percent(part.share)),
    number("of the delay", lambda part: percent(part.share_of_delay)),
)

SECTION = Plugin(31, "Where time is lost", "", _build)
