"""Would holding early ranks back help? Every replayed policy with its verdict, reason and the ceiling of any gain.

Reads replay.outcome. A gain is never shown without its interval and its verdict.
"""

from collections import Counter

from traceforge.report.absence import missing
from traceforge.report.blocks import Block, Column, Figure, Missing, Panel, Plugin, Section, Table
from traceforge.report.charts.forest import Prediction, forest_spec, forest_table
from traceforge.report.context import Context, Row
from traceforge.report.words import capital, change, clean, duration, listed, percent, plural, spaced

_MOST_ROWS = 12
_VERDICT_WORDS = {
    "supported": "supported",
    "no_effect": "no effect",
    "harm": "would harm",
    "not_identifiable": "cannot be told",
}


def _build(context: Context) -> Section | Missing:
    rows = context.rows("sections/pacing")
    if not rows:
        return missing("No pacing policy was replayed", context)
    blocks: list[Block] = []
    drawn = [row for row in rows if row["throughput_ratio"] is not None][:_MOST_ROWS]
    table = Table(_COLUMNS, [_row(row) for row in rows], summary=None)
    if drawn:
        predictions = [_prediction(row) for row in drawn]
        data = {"policies": forest_table(predictions), "zero": {"at": [0]}}
        panel = Panel(forest_spec(predictions), data, "Predicted change of throughput by pacing policy.")
        notes = _notes(len(rows) - len(drawn))
        blocks.append(Figure("pacing", _caption(rows), [panel], table, ["sections/pacing"], notes=notes))
    return Section(blocks)


_COLUMNS = [
    Column("policy"),
    Column("parameters", code=True),
    Column("verdict"),
    Column("throughput", numeric=True),
    Column("from", numeric=True),
    Column("to", numeric=True),
    Column("ceiling", numeric=True),
    Column("variation", numeric=True),
    Column("p50", numeric=True),
    Column("p95", numeric=True),
    Column("p99", numeric=True),
    Column("reason", wide=True),
]


def _prediction(row: Row) -> Prediction:
    low, high, ceiling = row["throughput_ratio_low"], row["throughput_ratio_high"], row["gain_ceiling"]
    name = spaced(row["policy"])
    parameters = clean(row["parameters"] or "", 60)
    return Prediction(
        label=f"{name} ({parameters})" if parameters else name,
        value=f"{change(row['throughput_ratio'])} · {_verdict(row)}",
        change=100 * (row["throughput_ratio"] - 1),
        low=None if low is None or high is None else 100 * (low - 1),
        high=None if low is None or high is None else 100 * (high - 1),
        ceiling=None if ceiling is None or row["policy"] == "none" else 100 * ceiling,
    )


def _verdict(row: Row) -> str:
    return _VERDICT_WORDS.get(row["verdict"], spaced(row["verdict"] or "—"))


def _row(row: Row) -> list[str]:
    return [
        spaced(row["policy"]),
        clean(row["parameters"] or "—", 120),
        _verdict(row),
        change(row["throughput_ratio"]),
        change(row["throughput_ratio_low"]),
        change(row["throughput_ratio_high"]),
        "—" if row["gain_ceiling"] is None else change(1 + row["gain_ceiling"]),
        percent(row["cv"]),
        duration(row["p50_ns"]),
        duration(row["p95_ns"]),
        duration(row["p99_ns"]),
        clean(row["reason"] or "—", 600),
    ]


def _caption(rows: list[Row]) -> str:
    policies = [row for row in rows if row["policy"] != "none"]
    supported = [row for row in policies if row["verdict"] == "supported"]
    ceilings = [row["gain_ceiling"] for row in policies if row["gain_ceiling"] is not None]
    if supported:
        best = max(supported, key=lambda row: row["throughput_ratio"] or 0)
        low, high = change(best["throughput_ratio_low"]), change(best["throughput_ratio_high"])
        return f"Pacing by {spaced(best['policy'])} would give {change(best['throughput_ratio'])} ({low} to {high})."
    if len(policies) == 1:
        name = capital(spaced(policies[0]["policy"]))
        text = f"{name} is the one policy replayed, and its verdict is: {_verdict(policies[0])}"
        return f"{text}. No pacing could gain more than {percent(max(ceilings))}." if ceilings else f"{text}."
    tally = Counter(_verdict(row) for row in policies)
    told = listed([f"{word} for {times}" for word, times in sorted(tally.items())])
    text = f"None of {plural(len(policies), 'policy', 'policies')} is predicted to help this run ({told})"
    if not policies:
        text = "No policy but the run as it was has been replayed"
    return f"{text}. No pacing could gain more than {percent(max(ceilings))}." if ceilings else f"{text}."


def _notes(not_drawn: int) -> list[str]:
    notes = ["Point: prediction; line: its interval; tick: ceiling of any pacing. Zero is the run as it was."]
    if not_drawn:
        notes.append(f"{plural(not_drawn, 'further policy', 'further policies')} in the table only.")
    return notes


SECTION = Plugin("Would pacing help?", "Pacing", _build)
