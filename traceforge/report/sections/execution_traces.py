"""Execution traces: how they fit the timelines, what their graphs are good for, whether ranks issue the same calls.

Reads graph.quality, graph.link, graph.divergence and graph.baseline. A graph without times is named as such.
"""

from traceforge.report.blocks import Block, Missing, Note, Paragraph, Section, Table, TableColumn, TableFigure, number
from traceforge.report.context import Context, Row
from traceforge.report.formatting import clean, count, duration, percent, plural
from traceforge.report.plugin import Plugin

_METHODS = {
    "rf_id": "operation handles",
    "external_id": "external ids, a constant apart",
    "sequence": "order of names",
    None: "—",
}
_LABELS = {"timed": "timed", "modelled": "modelled by a generator", "structure_only": "structure only"}
_SCENARIOS = {"instant_transfer": "transfers took no time", "no_communication": "communication cost nothing at all"}
_MOST_SEQUENCES = 8


def _build(context: Context) -> Section | Missing:
    traces = context.rows("sections/execution_traces")
    if not traces:
        return Missing(
            "No execution traces were recorded beside the timelines: shapes, data flow and groups stay unknown.",
            "`profile(…, execution_trace_observer=ExecutionTraceObserver().register_callback('rank0.et.json'))` writes"
            " one; use it on every rank.",
        )
    table = Table.of(traces, _COLUMNS, context.limits.table_rows)
    blocks: list[Block] = [TableFigure("execution-traces", _summary(traces), table, ["sections/execution_traces"])]
    blocks += [Note(_sequence(row)) for row in context.rows("sections/execution_traces_sequences")[:_MOST_SEQUENCES]]
    return Section([*blocks, *_replay(context.rows("sections/execution_traces_replay"))])


def _summary(traces: list[Row]) -> str:
    timed = [trace for trace in traces if trace["label"] == "timed"]
    bare = sum(trace["label"] == "structure_only" for trace in traces)
    text = f"{plural(len(timed), 'execution trace')} of {len(traces)} have times."
    if bare:
        text += f" {count(bare)} without times show structure only; nothing is computed from them."
    return text


def _sequence(row: Row) -> str:
    group = "calls whose process group is not recorded"
    if row["process_group"] is not None:
        group = f"process group {clean(row['process_group'], 60)}"
    ranks = plural(row["ranks"], "rank")
    if row["status"] == "agrees":
        return (
            f"In {group}, {ranks} issue the same {plural(row['compared_count'], 'collective')}, by kind, size and type."
        )
    if row["status"] == "not_comparable":
        return f"The {ranks} in {group} cannot be compared." if row["process_group"] else f"{ranks}: {group}."
    where = f"rank {row['rank']}, node {'—' if row['node_id'] is None else row['node_id']}"
    said = f"{clean(row['found'], 80)} where others have {clean(row['expected'], 80)}"
    if row["status"] == "shorter":
        return f"In {group}, {ranks} agree until the recording of {where} ends."
    return f"In {group}, {ranks} do not issue the same collectives: {where} has {said}."


def _replay(rows: list[Row]) -> list[Block]:
    """What the replay gives back, and how it reacts; nothing where no trace can be replayed."""
    whole = {row["scenario"]: row for row in rows if row["rank"] is None}
    if "as_recorded" not in whole:
        return []
    base = whole["as_recorded"]
    if base["measured_ns"] is None:
        return [Paragraph(f"By the durations its generator wrote, the job takes {duration(base['replayed_ns'])}.")]
    text = f"Replayed by its dependencies, the job takes {duration(base['replayed_ns'])}; measured were"
    text += f" {duration(base['measured_ns'])}."
    for scenario, words in _SCENARIOS.items():
        ranks = [row["difference"] or 0 for row in rows if row["scenario"] == scenario and row["rank"] is not None]
        if scenario in whole and ranks:
            text += f" If {words}: {duration(whole[scenario]['replayed_ns'])},"
            text += f" single ranks {percent(-max(ranks))} to {percent(-min(ranks))} shorter."
    return [Paragraph(text)]


_COLUMNS = (
    number("rank", lambda trace: "—" if trace["rank"] is None else str(trace["rank"])),
    TableColumn("file", lambda trace: clean(trace["path"], 200), code=True, wide=True),
    TableColumn("tied to the timeline by", lambda trace: _METHODS.get(trace["method"], clean(trace["method"], 40))),
    number("operations paired", lambda trace: percent(trace["matched_share"])),
    number("names equal", lambda trace: percent(trace["name_agreement"])),
    number("nodes", lambda trace: count(trace["node_count"])),
    number("device nodes with successors", lambda trace: percent(trace["device_successor_share"])),
    number("dangling edges", lambda trace: count(trace["dangling_edge_count"])),
    TableColumn("graph", lambda trace: _LABELS.get(trace["label"], clean(trace["label"], 40))),
)

SECTION = Plugin(110, "Execution traces", "Execution traces", _build)
