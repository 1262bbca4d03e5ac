"""Execution traces: what moves between ranks, how they fit the timelines, what their graphs are good for.

Reads graph.volume, traffic, split_imbalance, quality, link, divergence and baseline. A graph without times is named
as such.
"""

from itertools import takewhile

from traceforge.graph.call_words import call_mismatch
from traceforge.report.blocks import Block, Missing, Note, Paragraph, Section, Table, TableColumn, TableFigure, number
from traceforge.report.context import Context, Row
from traceforge.report.formatting import clean, count, duration, listed, percent, plural, size
from traceforge.report.message_text import message_notes
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
    shared = _shared_folder([trace["path"] for trace in traces])
    named = [{**trace, "path": trace["path"][len(shared) :]} for trace in traces]
    table = Table.of(named, _COLUMNS, context.limits.table_rows)
    blocks: list[Block] = _moved(context)
    blocks.append(TableFigure("execution-traces", _summary(traces), table, ["sections/execution_traces"]))
    blocks += [Note(text) for text in _sequences(context.rows("sections/execution_traces_sequences"))]
    blocks += [Note(text) for text in message_notes(context.rows("sections/execution_traces_messages"))]
    return Section([*blocks, *_replay(context.rows("sections/execution_traces_replay"))])


def _shared_folder(paths: list[str]) -> str:
    """The folder that all files lie in, with its slash: it says nothing about any of them."""
    if len(paths) < 2:
        return ""
    levels = zip(*(path.split("/")[:-1] for path in paths), strict=False)
    return "".join(f"{names[0]}/" for names in takewhile(lambda names: len(set(names)) == 1, levels))


def _moved(context: Context) -> list[Block]:
    """How much each kind of group moves, who sends to whom, and how even that is; each where traces state it."""
    volume, matrix, splits = (
        context.rows(f"sections/execution_traces_{part}") for part in ("volume", "matrix", "splits")
    )
    return [
        TableFigure(f"et-{name}", caption(rows), Table.of(rows, columns, context.limits.table_rows), [query])
        for name, rows, caption, columns, query in (
            ("volume", volume, _volume, _VOLUME_COLUMNS, "sections/execution_traces_volume"),
            ("matrix", matrix, _matrix, _MATRIX_COLUMNS, "sections/execution_traces_matrix"),
            ("splits", splits, _splits, _SPLIT_COLUMNS, "sections/execution_traces_splits"),
        )
        if rows
    ]


def _name(row: Row) -> str:
    return clean(row["communicator"] or "groups without a name", 60)


def _group(row: Row) -> str:
    return f"process group “{name}”" if (name := _name(row)) and row["communicator"] else "groups without a name"


def _volume(rows: list[Row]) -> str:
    first = rows[0]
    if first["sent_bytes"] is None:
        calls = count(sum(row["call_count"] for row in rows))
        most = f", most in {_group(first)}" if len(rows) > 1 else ""
        return f"Sizes of the {calls} calls are not recorded{most}."
    moved = size(first["bytes_of_a_rank"])
    if len(rows) == 1:
        return f"Each rank moves {moved}, all of it in {_group(first)}."
    return f"Most moves in {_group(first)}: {moved} a rank, {percent(first['share'])} of all."


def _matrix(rows: list[Row]) -> str:
    first = rows[0]
    pair = f"rank {first['source_rank']} to rank {first['destination_rank']}"
    return f"The largest flow between two ranks is {pair}: {size(first['sent_bytes'])}."


def _splits(rows: list[Row]) -> str:
    first, last = rows[0], rows[-1]
    text = f"Rank {first['rank']} receives {percent(first['received_ratio'])} of the mean of its group in all-to-alls"
    return f"{text}, rank {last['rank']} {percent(last['received_ratio'])}." if len(rows) > 1 else f"{text}."


def _summary(traces: list[Row]) -> str:
    timed = [trace for trace in traces if trace["label"] == "timed"]
    bare = sum(trace["label"] == "structure_only" for trace in traces)
    noun = "execution trace"
    every = {1: f"The {noun}", 2: f"Both {noun}s"}.get(len(traces), f"All {count(len(traces))} {noun}s")
    has, shows, it = ("has", "shows", "it") if len(traces) == 1 else ("have", "show", "them")
    text = f"{len(timed)} of {plural(len(traces), noun)} {'has' if len(timed) == 1 else 'have'} times."
    if len(timed) == len(traces):
        text = f"{every} {has} times."
    elif len(traces) > 1 and not timed:
        none = "Neither execution trace has" if len(traces) == 2 else f"None of the {count(len(traces))} {noun}s have"
        text = f"{none} times."
    if bare == len(traces):
        text = f"{every} {shows} structure only: without times nothing is computed from {it}."
    elif bare:
        text += f" {count(bare)} without times show structure only; nothing is computed from them."
    return text


def _sequences(rows: list[Row]) -> list[str]:
    """What each group issues; groups of which the same can be said share a sentence."""
    alike: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        if row["status"] == "agrees" and row["process_group"] is not None:
            alike.setdefault((row["ranks"], row["compared_count"]), []).append(row)
    together = [_agreeing(group) for group in alike.values() if len(group) > 1]
    single = [row for row in rows if all(row not in group for group in alike.values() if len(group) > 1)]
    return [*together, *(_sequence(row) for row in single)][:_MOST_SEQUENCES]


def _agreeing(rows: list[Row]) -> str:
    groups = listed([clean(row["process_group"], 60) for row in rows])
    each, calls = count(rows[0]["ranks"]), plural(rows[0]["compared_count"], "collective")
    return f"In each of the process groups {groups}, {each} ranks issue the same {calls}, by kind, size and type."


def _sequence(row: Row) -> str:
    group = "calls whose process group is not recorded"
    if row["process_group"] is not None:
        group = f"process group “{clean(row['process_group'], 60)}”"
    ranks = plural(row["ranks"], "rank")
    if row["status"] == "agrees":
        return (
            f"In {group}, {ranks} issue the same {plural(row['compared_count'], 'collective')}, by kind, size and type."
        )
    if row["status"] == "not_comparable":
        return f"The {ranks} in {group} cannot be compared." if row["process_group"] else f"{ranks} make {group}."
    return f"In {group}, {ranks} {_parting(row)}."


def _parting(row: Row) -> str:
    """Where one rank and its peers part."""
    rank, found, expected = row["rank"], clean(row["found"], 80), clean(row["expected"], 80)
    others = "others" if row["peer_count"] > 1 else f"rank {row['peer_rank']}"
    if row["status"] == "shorter":
        calls = plural(row["call_count"], "call")
        one, other = (f"rank {rank}", others) if row["node_id"] is None else (others, f"rank {rank}")
        ends = f"the recording of {one} begins later or ends earlier, by {calls} of {other}"
        return f"agree as far as all are recorded: {ends}"
    if row["status"] == "unrecorded":
        lost = f"call {row['first_place']} ({expected})"
        return f"agree, but the recording of rank {rank} lacks {lost}, which its numbers count as made"
    said = call_mismatch(row | {"found": found, "expected": expected})
    return f"do not issue the same collectives: {said}"


def _replay(rows: list[Row]) -> list[Block]:
    """What the replay gives back, and how it reacts; nothing where no trace can be replayed."""
    whole = {row["scenario"]: row for row in rows if row["rank"] is None}
    if "as_recorded" not in whole:
        return []
    base = whole["as_recorded"]
    if base["measured_ns"] is None:
        return [Paragraph(f"By the durations its generator wrote, the job takes {duration(base['replayed_ns'])}.")]
    text = f"From the first operation that the execution traces hold to the last, {duration(base['measured_ns'])} were"
    text += f" measured; replayed by its dependencies, that work takes {duration(base['replayed_ns'])}."
    for scenario, words in _SCENARIOS.items():
        ranks = [row["difference"] or 0 for row in rows if row["scenario"] == scenario and row["rank"] is not None]
        if scenario in whole and ranks:
            text += f" If {words}: {duration(whole[scenario]['replayed_ns'])},"
            text += f" {_shorter(percent(-max(ranks)), percent(-min(ranks)))}."
    return [Paragraph(text)]


def _shorter(least: str, most: str) -> str:
    if least != most:
        return f"single ranks {least} to {most} shorter"
    return "no rank shorter" if least == percent(0) else f"each rank {least} shorter"


_VOLUME_COLUMNS = (
    TableColumn("process groups", _name),
    number("groups", lambda row: count(row["group_count"]) if row["group_count"] else "—"),
    number("ranks", lambda row: count(row["rank_count"])),
    number("calls", lambda row: count(row["call_count"])),
    number("sent", lambda row: size(row["sent_bytes"]), optional=True),
    number("a rank", lambda row: size(row["bytes_of_a_rank"]), optional=True),
    number("of all", lambda row: percent(row["share"]), optional=True),
)
_MATRIX_COLUMNS = (
    number("from rank", lambda row: str(row["source_rank"])),
    number("to rank", lambda row: str(row["destination_rank"])),
    number("calls", lambda row: count(row["call_count"])),
    number("sent", lambda row: size(row["sent_bytes"])),
)
_SPLIT_COLUMNS = (
    TableColumn("process group", lambda row: clean(row["process_group"] or "—", 60)),
    number("rank", lambda row: str(row["rank"])),
    number("all-to-alls", lambda row: count(row["call_count"])),
    number("elements received", lambda row: count(row["received_elements"])),
    number("of the group's mean", lambda row: percent(row["received_ratio"])),
    number("largest split, of the call's mean", lambda row: percent(row["worst_split_ratio"])),
)
_COLUMNS = (
    number("rank", lambda trace: "—" if trace["rank"] is None else str(trace["rank"])),
    TableColumn("file", lambda trace: clean(trace["path"], 200), code=True, wide=True),
    TableColumn(
        "tied to the timeline by",
        lambda trace: _METHODS.get(trace["method"], clean(trace["method"], 40)),
        optional=True,
    ),
    number("operations paired", lambda trace: percent(trace["matched_share"]), optional=True),
    number("names equal", lambda trace: percent(trace["name_agreement"]), optional=True),
    number("nodes", lambda trace: count(trace["node_count"])),
    number("device nodes linked", lambda trace: percent(trace["device_successor_share"]), optional=True),
    number("dangling edges", lambda trace: count(trace["dangling_edge_count"])),
    TableColumn("graph", lambda trace: _LABELS.get(trace["label"], clean(trace["label"], 40))),
)

SECTION = Plugin(110, "Execution traces", "Execution traces", _build)
