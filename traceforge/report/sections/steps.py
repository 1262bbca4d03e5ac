"""What each rank does in a mean iteration: phases that sum to the wall clock, hidden communication beside them.

Reads timeline.phase and rank_iteration. With more ranks than rows, neighbours share a row and the row shows the one
of them that waits least: a mean would hide the rank that the others wait for.
"""

from dataclasses import dataclass

from traceforge.report.blocks import Figure, LegendEntry, Missing, Panel, Section, Table, TableColumn, number
from traceforge.report.charts.phases import STACK, hidden_spec, phases_spec, phases_table
from traceforge.report.context import Context
from traceforge.report.embedded_data import Dataset
from traceforge.report.formatting import duration, listed, percent, span
from traceforge.report.machine_readable import share
from traceforge.report.missing_data import missing
from traceforge.report.palette import COMMUNICATING, PHASES
from traceforge.report.plugin import Plugin
from traceforge.thresholds import report as thresholds


@dataclass(frozen=True, slots=True)
class _Step:
    """A rank's mean iteration; durations in ns."""

    rank: int
    duration_ns: float
    hidden_ns: float
    phases_ns: dict[str, float]

    @property
    def wait_ns(self) -> float:
        return self.phases_ns.get("wait", 0.0)


def _build(context: Context) -> Section | Missing:
    steps = _steps(context)
    if not steps:
        return missing("No iteration could be broken down into phases", context)
    per_row = context.job.ranks_per_row(context.limits.bars)
    shown, labels = _thinned(steps, per_row)
    figure = Figure(
        name="steps",
        caption=_caption(steps),
        panels=_panels(shown, labels),
        table=_table(steps, context),
        queries=["sections/steps"],
        legend=[LegendEntry(phase, phase) for phase in STACK if any(step.phases_ns.get(phase) for step in steps)],
        notes=_notes(steps, per_row),
    )
    return Section([figure])


def _steps(context: Context) -> list[_Step]:
    return [
        _Step(row["rank"], row["duration_ns"], row["hidden_ns"], {phase: row[f"{phase}_ns"] for phase in PHASES})
        for row in context.rows("sections/steps")
    ]


def _thinned(steps: list[_Step], per_row: int) -> tuple[list[_Step], list[str]]:
    """Of the ranks that share a row the one that waits least, and the names of the rows."""
    groups = [steps[first : first + per_row] for first in range(0, len(steps), per_row)]
    labels = [span(group[0].rank, group[-1].rank) for group in groups]
    return [min(group, key=lambda step: (step.wait_ns, step.rank)) for group in groups], labels


def _panels(steps: list[_Step], labels: list[str]) -> list[Panel]:
    in_ms = [{phase: value / 1e6 for phase, value in step.phases_ns.items()} for step in steps]
    panels = [
        Panel(
            phases_spec(len(steps)),
            {"phases": phases_table(labels, in_ms)},
            "Phases of a mean iteration, stacked, one row a rank.",
            title="Phases, summing to the wall clock",
        )
    ]
    if any(step.hidden_ns for step in steps):
        hidden: Dataset = {"rank": labels, "hidden_ms": [round(step.hidden_ns / 1e6, 5) for step in steps]}
        panels.append(
            Panel(
                hidden_spec(len(steps)),
                {"hidden": hidden},
                "Communication hidden behind compute, one row a rank.",
                title="Hidden communication",
                weight="narrow",
            )
        )
    return panels


def _caption(steps: list[_Step]) -> str:
    whole_ns = sum(step.duration_ns for step in steps)
    shares = {phase: sum(step.phases_ns.get(phase, 0.0) for step in steps) / whole_ns for phase in PHASES}
    named = sorted(
        (phase for phase in PHASES if shares[phase] >= thresholds.LEAST_PHASE_SHARE), key=lambda phase: -shares[phase]
    )
    whose = "a rank's own step" if len(steps) > 1 else "the step"
    text = f"Of {whose}, {duration(whole_ns / len(steps))} on average, "
    parts = [f"{phase} {'takes ' if phase == named[0] else ''}{percent(shares[phase])}" for phase in named]
    text += f"{listed(parts, 7)}."
    least, most = (pick(steps, key=lambda step: step.wait_ns) for pick in (min, max))
    if (
        len(steps) > 1
        and most.wait_ns
        > thresholds.UNEVEN_WAIT_RATIO * least.wait_ns + thresholds.LEAST_PHASE_SHARE * most.duration_ns
    ):
        little = f"waits least ({duration(least.wait_ns)})" if least.wait_ns else "never waits"
        text += f" Rank {least.rank} {little}, "
        text += f"rank {most.rank} waits most ({duration(most.wait_ns)})."
    return text


def _notes(steps: list[_Step], per_row: int) -> list[str]:
    notes = []
    if any(step.hidden_ns for step in steps):
        notes.append("Hidden communication runs under compute and costs no time of its own.")
    if any(step.phases_ns.get("communication") for step in steps):
        notes.append(
            "Communication is waiting or transfer: members of these collectives have no trace at that time, so that "
            "nobody knows when the last one arrived. Wait and transfer are lower bounds."
        )
    if per_row > 1:
        notes.append(f"{per_row} neighbouring ranks share a row; the row shows the one that waits least.")
    return notes


def _table(steps: list[_Step], context: Context) -> Table:
    seen = [phase for phase in PHASES if any(step.phases_ns.get(phase) for step in steps)]
    columns = (
        number("rank", lambda step: str(step.rank)),
        number("iteration", lambda step: duration(step.duration_ns)),
        *(_phase_column(phase) for phase in seen),
        number("hidden communication", lambda step: duration(step.hidden_ns)),
    )
    return Table.of(steps, columns, context.limits.table_rows)


def _phase_column(phase: str) -> TableColumn:
    return number(phase, lambda step: duration(step.phases_ns.get(phase, 0.0)))


def _summarise(context: Context) -> dict[str, object]:
    rows = context.rows("sections/steps")
    totals = {phase: sum(row["iterations"] * row[f"{phase}_ns"] for row in rows) for phase in PHASES}
    whole_ns = sum(totals.values())
    if not whole_ns:
        return {"phase_shares": {}}
    shares = {phase: share(total / whole_ns) for phase, total in totals.items()}
    if context.trust.coverage.is_split is False:
        # Waiting and transfer are known together only.
        shares |= {"communication": share(sum(totals[phase] for phase in COMMUNICATING) / whole_ns)}
        shares |= {"wait": None, "transfer": None}
    return {"phase_shares": shares}


SECTION = Plugin(51, "What each rank does in an iteration", "", _build, _summarise)
