"""The fabric as NCCL's logs tell it: which rank uses which NIC, by which path, in which rings, and what looks wrong.

Reads fabric.* and raw.nccl_file. Nothing here is a measured time: the section says why, the timeline says how much.
"""

from traceforge.report.blocks import (
    Block,
    Card,
    Cards,
    Column,
    Missing,
    Note,
    Plugin,
    Section,
    Subheading,
    Table,
    Tile,
    Tiles,
)
from traceforge.report.charts.ring import PATHS
from traceforge.report.context import Context, Row
from traceforge.report.fabric_figures import figure_of_nics, figure_of_ranks, figure_of_rings
from traceforge.report.words import capital, clean, count, duration, listed, percent, plural, size, spaced

_MOST_CARDS = 12
_ACRONYMS = {
    "gdr": "GPU Direct RDMA",
    "nic": "NIC",
    "cpu": "CPU",
    "nvls": "NVLink SHARP",
    "p2p": "peer-to-peer",
    "numa": "NUMA",
}
_MISSING = Missing(
    "No log of NCCL is among the files, so paths, NICs and channels cannot be shown.",
    "Set `NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING` and "
    "`NCCL_DEBUG_FILE=nccl_%h_%p.log` for one run, and put the logs into the folder of the traces. "
    "Logging of every call (subsystem COLL) slows training down; the others do not.",
)


def _build(context: Context) -> Section | Missing:
    facts = context.rows("sections/fabric")[0]
    findings = context.rows("sections/fabric_findings")
    if not facts["processes"]:
        # Dumps of flight recorders make findings without any log, and the Inspector measures without one.
        found = [*(_findings(findings, context) if findings else []), *_measured(context)]
        return Section(found) if found else _MISSING
    paths = context.rows("sections/fabric_paths")
    blocks: list[Block] = [_tiles(facts), *_findings(findings, context)]
    blocks += figure_of_ranks(context)
    blocks += figure_of_nics(context)
    blocks += figure_of_rings(context)
    blocks += _tables(context, paths)
    return Section([*blocks, *_measured(context)])


def _tiles(facts: Row) -> Tiles:
    versions = clean(facts["versions"] or "not stated", 60)
    tiles = [
        Tile(count(facts["processes"]), "Processes logged", f"on {plural(facts['hosts'], 'host')}"),
        Tile(
            count(facts["communicators"]),
            "Communicators",
            f"{count(facts['complete'])} with all ranks; the largest has {count(facts['largest'] or 0)}",
        ),
        Tile(versions, "Version of NCCL"),
        Tile(
            percent(facts["understood_share"]),
            "Of records understood",
            "the rest is counted by kind in raw.nccl_unparsed",
        ),
    ]
    if facts["direct_share"] is not None:
        tiles.append(Tile(percent(facts["direct_share"]), "Of network connections use GPU Direct RDMA"))
    return Tiles(tiles, ["sections/fabric"])


def _findings(rows: list[Row], context: Context) -> list[Block]:
    if not rows:
        return [Note("The logs show nothing in the configuration that is known to cost time.")]
    note = "What the logs show of the configuration; none of it is a measured delay. " + (
        "Where the timeline shows a delay that fits, the verdict's evidence names it."
        if context.job.used
        else "Record a timeline beside the logs to learn what it costs."
    )
    blocks: list[Block] = [Note(note), Cards([_card(row) for row in rows[:_MOST_CARDS]])]
    if len(rows) > _MOST_CARDS:
        blocks.append(Note(f"{plural(len(rows) - _MOST_CARDS, 'further finding')} in table fabric.finding."))
    return blocks


def _card(row: Row) -> Card:
    whom = "the whole job" if row["subject_kind"] == "job" else f"{spaced(row['subject_kind'])} {row['subject']}"
    return Card(
        title=clean(row["summary"], 600),
        kicker=f"{_kind(row['code'])} ({clean(row['severity'], 20)}, {clean(row['basis'], 60)})",
        text="",
        confidence="",
        facts=[
            ("Concerns", clean(whom, 120)),
            ("First seen", f"{clean(row['path'], 160)}, line {count(row['line'])}"),
            ("Shown by", plural(row["citation_count"], "line")),
            *([("Measured delay that fits", clean(row["measured"], 300))] if row["measured"] else []),
        ],
        evidence_for=(),
        evidence_against=(),
        next_step=clean(row["next_step"], 600),
        mode=row["mode"] if row["severity"] == "problem" else "",
    )


def _kind(code: str) -> str:
    return capital(" ".join(_ACRONYMS.get(word, word) for word in spaced(code).split()))


def _tables(context: Context, paths: list[Row]) -> list[Block]:
    blocks: list[Block] = []
    if paths:
        columns = [
            Column("path"),
            Column("network"),
            Column("connections", numeric=True),
            Column("relayed", numeric=True),
            Column("channels", numeric=True),
        ]
        table = [
            [
                PATHS[row["path_class"]][1],
                clean(row["network"] or "—", 40),
                count(row["connections"]),
                count(row["relayed"]),
                count(row["channels"]),
            ]
            for row in paths
        ]
        blocks += [Subheading("Classes of paths"), Table(columns, table, queries=["sections/fabric_paths"])]
    collectives = context.rows("sections/fabric_collectives")
    if collectives:
        blocks += [Subheading("How the timeline's collectives travel"), _collective_table(collectives, context)]
    trees = context.rows("sections/fabric_trees")
    if trees:
        blocks += [Subheading("Trees of the largest communicator"), _tree_table(trees, context.limits.table_rows)]
    choices = context.rows("sections/fabric_choices")
    if choices:
        blocks += [Subheading("Algorithms NCCL chose"), _choice_table(choices, context.limits.table_rows)]
    return blocks


def _collective_table(rows: list[Row], context: Context) -> Table:
    columns = [
        Column("group"),
        Column("operation"),
        Column("size", numeric=True),
        Column("calls", numeric=True),
        Column("algorithm"),
        Column("channels", numeric=True),
        Column("path"),
        Column("NICs"),
        Column("transfer", numeric=True),
        Column("bus bandwidth", numeric=True),
        Column("match", numeric=True),
    ]
    table = [
        [
            clean(row["group_name"], 60),
            clean(row["op"] or "unknown", 40),
            size(row["size_bytes"]),
            count(row["calls"]),
            " ".join(clean(word, 30) for word in (row["algorithm"], row["protocol"]) if word) or "not stated",
            "—" if row["channel_count"] is None else count(row["channel_count"]),
            "not stated" if row["path_class"] is None else PATHS[row["path_class"]][1],
            listed([clean(name, 40) for name in row["nics"]]) or "none",
            duration(row["transfer_ns"]),
            "—" if row["bandwidth_bytes_per_s"] is None else f"{size(row['bandwidth_bytes_per_s'])}/s",
            percent(row["score"]),
        ]
        for row in rows
    ]
    limit = context.limits.table_rows
    return Table(columns, table[:limit], max(0, len(rows) - limit), queries=["sections/fabric_collectives"])


def _measured(context: Context) -> list[Block]:
    """What the Inspector measured, without any timeline."""
    rows = context.rows("sections/fabric_measured")
    if not rows:
        return []
    columns = [
        Column("communicator", code=True),
        Column("ranks", numeric=True),
        Column("operation"),
        Column("size", numeric=True),
        Column("calls", numeric=True),
        Column("transfer", numeric=True),
        Column("95 % below", numeric=True),
        Column("bus bandwidth", numeric=True),
        Column("skew", numeric=True),
        Column("last most often"),
    ]
    table = [
        [
            clean(row["comm_hash"] or "—", 40),
            "—" if row["rank_count"] is None else count(row["rank_count"]),
            clean(row["op"], 40),
            size(row["size_bytes"]),
            count(row["calls"]),
            duration(row["transfer_ns"]),
            duration(row["slow_transfer_ns"]),
            "—" if row["bandwidth_bytes_per_s"] is None else f"{size(row['bandwidth_bytes_per_s'])}/s",
            "—" if row["skew_ns"] is None else duration(row["skew_ns"]),
            _last(row),
        ]
        for row in rows
    ]
    note = Note(
        "Measured by NCCL's Inspector on each rank, without a timeline. A rank's time begins with its own arrival: the "
        "shortest is the transfer, and by how much the longest exceeds it is the skew of arrivals. Medians."
    )
    limit = context.limits.table_rows
    return [
        Subheading("Collectives as NCCL's Inspector measured them"),
        note,
        Table(columns, table[:limit], max(0, len(rows) - limit), queries=["sections/fabric_measured"]),
    ]


def _last(row: Row) -> str:
    if row["last_rank"] is None:
        return "not all ranks are here"
    whose = "rank in the group" if row["is_local"] else "rank"
    return f"{whose} {row['last_rank']}, in {count(row['last_times'])} of {count(row['complete'])}"


def _tree_table(rows: list[Row], limit: int) -> Table:
    columns = [
        Column("channel", numeric=True),
        Column("ranks", numeric=True),
        Column("root"),
        Column("most children", numeric=True),
        Column("links between hosts", numeric=True),
    ]
    table = [
        [
            str(row["channel"]),
            count(row["ranks"]),
            str(row["root"]) if row["roots"] == 1 else plural(row["roots"], "root"),
            count(row["most_children"] or 0),
            count(row["crossings"]),
        ]
        for row in rows
    ]
    return Table(
        columns, table[:limit], max(0, len(rows) - limit), plural(len(rows), "tree"), ["sections/fabric_trees"]
    )


def _choice_table(rows: list[Row], limit: int) -> Table:
    columns = [
        Column("operation"),
        Column("size", numeric=True),
        Column("algorithm"),
        Column("protocol"),
        Column("channels"),
        Column("chosen", numeric=True),
    ]
    table = [
        [
            clean(row["op"] or "unknown", 40),
            size(row["size_bytes"]),
            clean(row["algorithm"], 40),
            clean(row["protocol"] or "—", 40),
            "—" if row["channel_low"] is None else f"{row['channel_low']} to {row['channel_high']}",
            count(row["choices"]),
        ]
        for row in rows
    ]
    return Table(columns, table[:limit], max(0, len(rows) - limit), queries=["sections/fabric_choices"])


SECTION = Plugin("Fabric", "Fabric", _build)
