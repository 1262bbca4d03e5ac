"""The fabric as NCCL's logs describe it: which NIC each rank uses, by which path, in which rings, and what looks wrong.

Reads fabric.* and raw.nccl_file. Nothing here is a measured time: the section says why, the timeline says how much.
"""

from traceforge.report.blocks import (
    Block,
    Card,
    Cards,
    Missing,
    Note,
    Section,
    Subheading,
    Table,
    TableColumn,
    Tile,
    Tiles,
    number,
)
from traceforge.report.charts.ring import PATHS
from traceforge.report.context import Context, Row
from traceforge.report.fabric_figures import figure_of_nics, figure_of_ranks, figure_of_rings
from traceforge.report.formatting import (
    capital,
    cautious_percent,
    clean,
    count,
    duration,
    listed,
    percent,
    plural,
    size,
    spaced,
)
from traceforge.report.machine_readable import MOST_ENTRIES
from traceforge.report.plugin import Plugin

_MOST_CARDS = 12
_MOST_OPEN_CARDS = 3
_ACRONYMS = {
    "gdr": "GPU Direct RDMA",
    "nic": "NIC",
    "cpu": "CPU",
    "nvls": "NVLink SHARP",
    "p2p": "peer-to-peer",
    "numa": "NUMA",
}
_MISSING = Missing(
    "There is no NCCL log among the files, so paths, NICs and channels cannot be shown.",
    "Set `NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING` and "
    "`NCCL_DEBUG_FILE=nccl_%h_%p.log` for one run, and put the logs into the trace folder. "
    "Logging every call (subsystem COLL) slows down training; the others do not.",
)
_ON_HOST = Missing(
    "The job communicates on its hosts (gloo), which logs no paths.",
    "Put telemetry of the hosts' NICs (Prometheus' JSON) into the trace folder: it shows their load and errors.",
)


def _build(context: Context) -> Section | Missing:
    facts = context.rows("sections/fabric")[0]
    findings = context.rows("sections/fabric_findings")
    if not facts["processes"]:
        # Telemetry makes findings without a log, the Inspector measures without one; hangs have a tab of their own.
        findings = [row for row in findings if row["code"] != "hang_recorded"]
        found = [*(_findings(findings, context) if findings else []), *_measured(context)]
        return Section(found) if found else _ON_HOST if facts["is_on_host"] else _MISSING
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
        _communicators(facts),
        Tile(versions, "NCCL version"),
        Tile(
            cautious_percent(facts["understood_share"]),
            "Records understood",
            "of what NCCL logged" if facts["understood_share"] == 1 else "the others are counted in raw.nccl_unparsed",
        ),
    ]
    if facts["direct_share"] is not None:
        tiles.append(Tile(percent(facts["direct_share"]), "Network connections with GPU Direct RDMA"))
    return Tiles(tiles, ["sections/fabric"])


def _communicators(facts: Row) -> Tile:
    """How many there are: several that no line names may be one, and connections alone tell of one at least."""
    if not facts["least"]:
        return Tile("0", "Communicators", "no line names one")
    largest = f"the largest has {count(facts['largest'] or 0)}"
    if facts["least"] == facts["communicators"]:
        return Tile(count(facts["least"]), "Communicators", f"{count(facts['complete'])} with all ranks; {largest}")
    sizes = largest if facts["largest"] else "their sizes are not known"
    return Tile("not known", "Communicators", f"at least {count(facts['least'])}: no line names them all; {sizes}")


def _findings(rows: list[Row], context: Context) -> list[Block]:
    if not rows:
        return [Note("The logs show no configuration that is known to cost time.")]
    note = "Configuration as seen in the logs; none of it is a measured delay. " + (
        "Where the timeline shows a matching delay, the evidence of the verdict names it."
        if context.job.used
        else "Record a timeline beside the logs to learn what it costs."
    )
    blocks: list[Block] = [
        Subheading("What the logs show, the worst first"),
        Note(note),
        Cards([_card(row, is_open=place < _MOST_OPEN_CARDS) for place, row in enumerate(rows[:_MOST_CARDS])]),
    ]
    if len(rows) > _MOST_CARDS:
        blocks.append(Note(f"{plural(len(rows) - _MOST_CARDS, 'further finding')} in table fabric.finding."))
    return blocks


def _card(row: Row, *, is_open: bool) -> Card:
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
            *([("Matching measured delay", clean(row["measured"], 300))] if row["measured"] else []),
        ],
        evidence_for=(),
        evidence_against=(),
        next_step=clean(row["next_step"], 600),
        mode=row["mode"] if row["severity"] == "problem" else "",
        is_folded=not is_open or row["severity"] != "problem",
    )


def _kind(code: str) -> str:
    return capital(" ".join(_ACRONYMS.get(word, word) for word in spaced(code).split()))


def _tables(context: Context, paths: list[Row]) -> list[Block]:
    limit = context.limits.table_rows
    blocks: list[Block] = []
    if paths:
        blocks.append(Table.of(paths, _PATH_COLUMNS, limit, "Classes of paths", ["sections/fabric_paths"]))
    for query, title, columns in (
        ("sections/fabric_collectives", "Paths of the timeline's collectives", _COLLECTIVE_COLUMNS),
        ("sections/fabric_trees", "Trees of the largest communicator", _TREE_COLUMNS),
        ("sections/fabric_choices", "Algorithms NCCL chose", _CHOICE_COLUMNS),
    ):
        if rows := context.rows(query):
            blocks.append(Table.of(rows, columns, limit, title, [query]))
    return blocks


def _bus_bandwidth(row: Row) -> str:
    return "—" if row["bandwidth_bytes_per_s"] is None else f"{size(row['bandwidth_bytes_per_s'])}/s"


def _algorithm(row: Row) -> str:
    return " ".join(clean(word, 30) for word in (row["algorithm"], row["protocol"]) if word) or "not stated"


def _root(row: Row) -> str:
    if not row["roots"]:
        return "—"  # its log is missing
    return str(row["root"]) if row["roots"] == 1 else plural(row["roots"], "root")


def _measured(context: Context) -> list[Block]:
    """What the Inspector measured, without any timeline."""
    rows = context.rows("sections/fabric_measured")
    if not rows:
        return []
    note = Note(
        "Measured by NCCL's Inspector on each rank, without a timeline. A rank's time starts with its own arrival: the "
        "shortest is the transfer; how much longer the longest takes is the skew of the arrivals. Medians."
    )
    table = Table.of(rows, _MEASURED_COLUMNS, context.limits.table_rows, queries=["sections/fabric_measured"])
    return [Subheading("Collectives as measured by NCCL's Inspector"), note, table]


def _last(row: Row) -> str:
    if row["last_rank"] is None:
        return "not all ranks are here"
    whose = "rank in the group" if row["is_local"] else "rank"
    return f"{whose} {row['last_rank']}, in {count(row['last_times'])} of {count(row['complete'])}"


def _summarise(context: Context) -> dict[str, object]:
    facts = context.rows("sections/fabric")[0]
    findings = [
        {
            **{name: row[name] for name in ("code", "severity", "subject_kind", "basis", "line")},
            "subject": clean(row["subject"], 120),
            "path": clean(row["path"], 200),
        }
        for row in context.rows("sections/fabric_findings")[:MOST_ENTRIES]
    ]
    return {
        "fabric": {
            "processes": facts["processes"],
            "communicators": facts["communicators"] if facts["least"] == facts["communicators"] else None,
            "findings": findings,
        }
    }


_PATH_COLUMNS = (
    TableColumn("path", lambda row: PATHS[row["path_class"]][1]),
    TableColumn("network", lambda row: clean(row["network"] or "—", 40)),
    number("connections", lambda row: count(row["connections"])),
    number("relayed", lambda row: count(row["relayed"])),
    number("channels", lambda row: count(row["channels"])),
)
_COLLECTIVE_COLUMNS = (
    TableColumn("group", lambda row: clean(row["group_name"], 60)),
    TableColumn("operation", lambda row: clean(row["op"] or "unknown", 40)),
    number("size", lambda row: size(row["size_bytes"])),
    number("calls", lambda row: count(row["calls"])),
    TableColumn("algorithm", _algorithm),
    number("channels", lambda row: "—" if row["channel_count"] is None else count(row["channel_count"])),
    TableColumn("path", lambda row: "not stated" if row["path_class"] is None else PATHS[row["path_class"]][1]),
    TableColumn("NICs", lambda row: listed([clean(name, 40) for name in row["nics"]]) or "none"),
    number("transfer", lambda row: duration(row["transfer_ns"])),
    number("bus bandwidth", _bus_bandwidth),
    number("match", lambda row: percent(row["score"])),
)
_TREE_COLUMNS = (
    number("channel", lambda row: str(row["channel"])),
    number("ranks", lambda row: count(row["ranks"])),
    TableColumn("root", _root),
    number("most children", lambda row: count(row["most_children"] or 0)),
    number("links between hosts", lambda row: "—" if row["crossings"] is None else count(row["crossings"])),
)
_CHOICE_COLUMNS = (
    TableColumn("operation", lambda row: clean(row["op"] or "unknown", 40)),
    number("size", lambda row: size(row["size_bytes"])),
    TableColumn("algorithm", lambda row: clean(row["algorithm"], 40)),
    TableColumn("protocol", lambda row: clean(row["protocol"] or "—", 40)),
    TableColumn(
        "channels", lambda row: "—" if row["channel_low"] is None else f"{row['channel_low']} to {row['channel_high']}"
    ),
    number("chosen", lambda row: count(row["choices"])),
)
_MEASURED_COLUMNS = (
    TableColumn("communicator", lambda row: clean(row["comm_hash"] or "—", 40), code=True),
    number("ranks", lambda row: "—" if row["rank_count"] is None else count(row["rank_count"])),
    TableColumn("operation", lambda row: clean(row["op"], 40)),
    number("size", lambda row: size(row["size_bytes"])),
    number("calls", lambda row: count(row["calls"])),
    number("transfer", lambda row: duration(row["transfer_ns"])),
    number("95 % below", lambda row: duration(row["slow_transfer_ns"])),
    number("bus bandwidth", _bus_bandwidth),
    number("skew", lambda row: duration(row["skew_ns"])),
    TableColumn("last most often", _last),
)

SECTION = Plugin(70, "Fabric", "Fabric", _build, _summarise)
