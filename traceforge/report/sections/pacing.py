"""Would holding early ranks back help, or another change? Verdicts with reasons and the ceiling of any gain.

Reads replay.outcome, sweep, calibration and what_if. A gain is never shown without its interval and its verdict. Where
the run shows no coupling that pacing could use, a table is all there is to say of pacing.
"""

from collections import Counter

from traceforge.report.blocks import Block, Figure, Missing, Panel, Section, Table, TableColumn, TableFigure, number
from traceforge.report.charts.forest import ForestRow, forest_spec, forest_table
from traceforge.report.charts.pareto import Trial, pareto_spec, trials_table
from traceforge.report.context import Context, Row
from traceforge.report.formatting import capital, change, clean, count, duration, minus_signs, percent, plural, spaced
from traceforge.report.machine_readable import MOST_ENTRIES, share
from traceforge.report.missing_data import missing
from traceforge.report.plugin import Plugin
from traceforge.thresholds import report as thresholds

_MOST_ROWS = 12
_INTERVALS = "Changes are against the unpaced run; intervals are those of 95 %."
_MOST_TRIALS = 40
_MOST_CHANGES = 20
# Policies that are there to compare others with.
_CONTROLS = {"none": "as recorded", "constant": "control", "random": "control", "oracle": "bound"}
_VERDICT_WORDS = {
    "supported": "supported",
    "no_effect": "no effect",
    "harm": "would harm",
    "not_identifiable": "cannot be determined",
}
_TALLY_WORDS = {"no_effect": "without effect", "harm": "harmful", "not_identifiable": "undetermined"}


def _build(context: Context) -> Section | Missing:
    rows = context.rows("sections/pacing")
    if not rows or len(context.job.ranks) == 1:  # one rank waits for nobody, so that nothing can be paced
        return missing("No pacing policy was replayed", context)
    trials = context.rows("sections/pacing_sweep")
    blocks: list[Block] = []
    if trials or any(row["verdict"] == "supported" for row in rows):
        blocks.append(_forest(rows))
    else:
        notes = [*filter(None, [_coupling(context)]), _INTERVALS]
        blocks.append(TableFigure("pacing", _caption(rows), Table.of(rows, _COLUMNS), ["sections/pacing"], notes))
    blocks.append(Table.of(rows, _REASON_COLUMNS, None, "What each verdict rests on", ["sections/pacing"]))
    if trials:
        blocks.append(_pareto(rows, trials))
    if context.store.rows("SELECT 1 FROM replay.paced WHERE run_id = ?", [context.run_id]):
        blocks.append(_measured(context.rows("sections/pacing_measured")))
    changes = context.rows("sections/pacing_what_if")
    if changes:
        blocks.append(_what_if(changes))
    return Section(blocks)


def _coupling(context: Context) -> str:
    """What the run says of the coupling, where it says that there is none to use."""
    found = context.rows("sections/pacing_coupling")
    reason = minus_signs(clean(found[0]["reason"] or "", 600)) if found else ""
    return f"The measured coupling is {reason}" if reason[:1] == "\N{MINUS SIGN}" or reason[:1].isdigit() else reason


def _forest(rows: list[Row]) -> Figure:
    drawn = [row for row in rows if row["throughput_ratio"] is not None][:_MOST_ROWS]
    table = Table.of(rows, _COLUMNS)
    predictions = [_prediction(row) for row in drawn]
    data = {"policies": forest_table(predictions), "zero": {"at": [0]}}
    panel = Panel(forest_spec(predictions), data, "Predicted change of throughput by pacing policy.")
    notes = _notes(len(rows) - len(drawn))
    return Figure("pacing", _caption(rows), [panel], table, ["sections/pacing"], notes=notes)


def _pareto(rows: list[Row], trials: list[Row]) -> Figure:
    shown = [_trial(row) for row in trials]
    front = [one for one in shown if one.is_on_front]
    zero = [100 * row["cv"] for row in rows if row["policy"] == "none" and row["cv"] is not None]
    data = {
        "trials": trials_table(shown),
        "front": trials_table(front),
        "zero": {"change": [0.0] * len(zero), "variation": zero, "label": ["the unpaced run"] * len(zero)},
    }
    table = Table.of(trials, _TRIAL_COLUMNS, _MOST_TRIALS)
    panel = Panel(pareto_spec(), data, "Throughput against variation of the iteration time, by parameters of policies.")
    caption = (
        f"Of {plural(len(trials), 'combination')} of parameters, none beats {count(len(front))}: "
        "none of the others has more throughput and less variation."
    )
    notes = [
        "Lines at the joined points: 95 % intervals. Dashed: the unpaced run.",
        "The best of many is partly luck: trust intervals, not the order of this list.",
    ]
    return Figure("pacing-front", caption, [panel], table, ["sections/pacing_sweep"], notes=notes)


def _trial(row: Row) -> Trial:
    parameters = clean(row["parameters"] or "", 60)
    return Trial(
        label=f"{spaced(row['policy'])} ({parameters})" if parameters else spaced(row["policy"]),
        change=100 * (row["throughput_ratio"] - 1),
        low=100 * (row["throughput_ratio_low"] - 1),
        high=100 * (row["throughput_ratio_high"] - 1),
        variation=100 * row["cv"],
        variation_low=100 * (row["cv"] if row["cv_low"] is None else row["cv_low"]),
        variation_high=100 * (row["cv"] if row["cv_high"] is None else row["cv_high"]),
        is_on_front=bool(row["is_on_front"]),
    )


def _what_if(rows: list[Row]) -> Table:
    summary = "Other changes to the job, replayed one at a time; their settings are examples, not advice"
    return Table.of(rows, _WHAT_IF_COLUMNS, _MOST_CHANGES, summary, ["sections/pacing_what_if"])


def _measured(rows: list[Row]) -> Table:
    """What live pacing brought, beside what was predicted."""
    summary = "Measured while the job ran: blocks of steps with and without pacing took turns"
    return Table.of(rows, _MEASURED_COLUMNS, None, summary, ["sections/pacing_measured"])


def _hook(row: Row) -> str:
    if row["is_dry_run"]:
        return "dry run: nobody was held back"
    off = row["off_from_iteration"]
    return "on throughout" if off is None else f"gave pacing up at iteration {count(off)}"


def _changes(title: str, of: str = "throughput_ratio") -> tuple[TableColumn, TableColumn]:
    """The predicted change of throughput and its interval."""
    return number(title, lambda row: change(row[of])), _interval("interval", of)


def _interval(title: str, of: str) -> TableColumn:
    return number(title, lambda row: _ends(row[f"{of}_low"], row[f"{of}_high"]), optional=True)


def _ends(low: float | None, high: float | None) -> str:
    """Both ends of an interval; a lower one near no throughput at all bounds nothing."""
    if low is None or high is None:
        return "—"
    return f"at most {change(high)}" if low < thresholds.LEAST_BOUND_RATIO else f"{change(low)} to {change(high)}"


def _prediction(row: Row) -> ForestRow:
    low, high, ceiling = row["throughput_ratio_low"], row["throughput_ratio_high"], row["gain_ceiling"]
    name = spaced(row["policy"])
    parameters = clean(row["parameters"] or "", 60)
    return ForestRow(
        label=f"{name} ({parameters})" if parameters else name,
        value=f"{change(row['throughput_ratio'])} · {_verdict(row)}",
        change=100 * (row["throughput_ratio"] - 1),
        low=None if low is None or high is None else 100 * (low - 1),
        high=None if low is None or high is None else 100 * (high - 1),
        ceiling=None if ceiling is None or row["policy"] == "none" else 100 * ceiling,
    )


def _policy(row: Row) -> str:
    role = _CONTROLS.get(row["policy"])
    return spaced(row["policy"]) + (f" ({role})" if role else "")


def _verdict(row: Row) -> str:
    return _VERDICT_WORDS.get(row["verdict"], spaced(row["verdict"] or "—"))


def _caption(rows: list[Row]) -> str:
    policies = [row for row in rows if row["policy"] not in _CONTROLS]
    supported = [row for row in policies if row["verdict"] == "supported"]
    ceilings = [row["gain_ceiling"] for row in policies if row["gain_ceiling"] is not None]
    if supported:
        best = max(supported, key=lambda row: row["throughput_ratio"] or 0)
        low, high = change(best["throughput_ratio_low"]), change(best["throughput_ratio_high"])
        return f"Pacing with {spaced(best['policy'])} would give {change(best['throughput_ratio'])} ({low} to {high})."
    if len(policies) == 1:
        name = capital(spaced(policies[0]["policy"]))
        return f"{name} is the only policy replayed; verdict: {_verdict(policies[0])}.{_ceiling(ceilings)}"
    which = "Neither" if len(policies) == 2 else "None"
    text = f"{which} of the {len(policies)} replayed policies is known to help this run ({_tally(policies)})"
    if not policies:
        text = "Only the unpaced run was replayed"
    return f"{text}.{_ceiling(ceilings)}"


def _ceiling(ceilings: list[float]) -> str:
    """What the best pacing could gain, as a sentence."""
    if not ceilings:
        return ""
    most = percent(max(ceilings))
    what = "anything" if most == percent(0) else f"more than {most}"
    return f" No pacing is likely to gain {what}."


def _tally(policies: list[Row]) -> str:
    """How many have which verdict, such as `both without effect` or `3 harmful, 1 undetermined`."""
    tally = Counter(_TALLY_WORDS.get(row["verdict"], _verdict(row)) for row in policies)
    if len(tally) == 1:
        return f"{'both' if len(policies) == 2 else f'all {len(policies)}'} {next(iter(tally))}"
    return ", ".join(f"{times} {word}" for word, times in sorted(tally.items()))


def _notes(not_drawn: int) -> list[str]:
    notes = ["Point: prediction; line: its interval; tick: ceiling of any pacing. Zero is the unpaced run."]
    if not_drawn:
        notes.append(f"{plural(not_drawn, 'further policy', 'further policies')} in the table only.")
    return notes


def _summarise(context: Context) -> dict[str, object]:
    rows = context.rows("sections/pacing")[:MOST_ENTRIES]
    return {
        "replay": [
            {
                "policy": clean(row["policy"], 80),
                "parameters": clean(row["parameters"] or "", 160),
                "verdict": row["verdict"],
                "throughput_ratio": share(row["throughput_ratio"]),
                "gain_ceiling": share(row["gain_ceiling"]),
            }
            for row in rows
        ]
    }


_POLICY_COLUMNS = (
    TableColumn("policy", _policy),
    TableColumn("parameters", lambda row: clean(row["parameters"] or "—", 120), code=True),
    TableColumn("verdict", _verdict),
    *_changes("throughput"),
)
_MEASURED_COLUMNS = (
    TableColumn("policy", lambda row: clean(row["policy"], 160), code=True),
    number("pairs of blocks", lambda row: count(row["pairs"])),
    *_changes("measured"),
    *_changes("predicted", "foretold_ratio"),
    TableColumn("intervals", lambda row: {True: "meet", False: "do not meet", None: "—"}[row["agrees"]]),
    number("mean delay", lambda row: duration(row["delay_ns"])),
    TableColumn("hook", _hook),
)
_COLUMNS = (
    *_POLICY_COLUMNS,
    _interval("in steps to come", "throughput_ratio_next"),
    number("variation of steps end to end", lambda row: percent(row["cv"])),
)
_REASON_COLUMNS = (*_POLICY_COLUMNS[:3], TableColumn("reason", lambda row: clean(row["reason"] or "—", 600), wide=True))
_TRIAL_COLUMNS = (
    *_POLICY_COLUMNS,
    number("variation of steps end to end", lambda row: percent(row["cv"])),
    number("from", lambda row: percent(row["cv_low"])),
    number("to", lambda row: percent(row["cv_high"])),
)
_WHAT_IF_COLUMNS = (
    TableColumn("if", lambda row: spaced(row["edit"])),
    TableColumn("with", lambda row: clean(row["parameters"] or "—", 80), code=True),
    *_changes("throughput"),
    number("saved per iteration", lambda row: duration(row["saved_ns_per_iteration"])),
    TableColumn("assumptions, or why it cannot be predicted", lambda row: clean(row["reason"] or "—", 300), wide=True),
)

SECTION = Plugin(80, "Would pacing help?", "Pacing", _build, _summarise)
