"""Figures of the section on the fabric: ranks and NICs, load of NICs, rings. In: a context. Out: blocks.

The queries lie beside the section. Nothing here is a measured time.
"""

from traceforge.report.blocks import Block, Figure, LegendEntry, Note, Panel, Subheading, Table, TableColumn, number
from traceforge.report.charts.parts import bars_spec, bars_table, share_axis
from traceforge.report.charts.ring import PATHS, ring_spec
from traceforge.report.context import Context, Row
from traceforge.report.formatting import clean, count, listed, percent, plural, rank_list, size

_MOST_BARS = 10
_MOST_CHANNELS = 8
_MODEL = (
    "Planned by NCCL, not measured: connections of rings and trees and, where calls are logged, their bytes times the "
    "share that the links of a ring carry, split evenly over channels."
)


def _nic(row: Row) -> str:
    number = f"{clean(row['network'], 40)}/{row['nic']}"
    return f"{clean(row['name'], 40)} ({number})" if row["name"] else number


def _gpu(row: Row) -> str:
    return clean(row["pci_address"] or ("—" if row["device"] is None else f"device {row['device']}"), 40)


def figure_of_ranks(context: Context) -> list[Block]:
    """Which rank uses which NIC; nothing where no NIC is used."""
    rows = context.rows("sections/fabric_ranks")
    if not rows:
        return []
    fold = "Ranks and their NICs"
    table = Table.of(rows, _RANK_COLUMNS, context.limits.table_rows, fold, ["sections/fabric_ranks"])
    return [Subheading(_ranks_caption(rows)), table]


def _ranks_caption(rows: list[Row]) -> str:
    users: dict[tuple[str, str, int], set[int]] = {}
    for row in rows:
        users.setdefault((row["host"], row["network"], row["nic"]), set()).add(row["rank"])
    ranks = {row["rank"] for row in rows}
    text = f"{plural(len(ranks), 'rank')} of {plural(len({row['host'] for row in rows}), 'host')} use "
    text += plural(len(users), "NIC")
    most = max(len(ranks) for ranks in users.values())
    return f"{text}, up to {most} ranks a NIC." if most > 1 else f"{text}, one per rank."


def figure_of_nics(context: Context) -> list[Block]:
    """What each NIC carries by plan; nothing where none is used."""
    rows = context.rows("sections/fabric_nics")
    used = [row for row in rows if row["edge_count"]]
    if not used:
        return []
    drawn = sorted(rows, key=lambda row: -row["edge_share"])[:_MOST_BARS]
    values = [_carried(row) for row in drawn]
    labels = [f"{clean(row['host'], 40)} {_nic(row)}" for row in drawn]
    data = bars_table(labels, values, "share", [float(row["edge_share"]) for row in drawn])
    spec = bars_spec("shares", share_axis("share of the host's connections"), ("NIC", "carries"), values)
    panel = Panel(spec, {"shares": data}, "Share of each NIC.")
    notes = [f"The busiest {len(drawn)} of {len(rows)} NICs are drawn."] if len(drawn) < len(rows) else []
    return [
        Figure(
            name="fabric-nics",
            caption=_nics_caption(rows, used),
            panels=[panel],
            table=Table.of(rows, _NIC_COLUMNS, context.limits.table_rows),
            queries=["sections/fabric_nics"],
            notes=[_MODEL, *notes],
        )
    ]


def _carried(row: Row) -> str:
    if not row["edge_count"]:
        return "nothing"
    amount = "" if row["send_bytes"] is None else f", {size(row['send_bytes'])} sent"
    return f"{percent(row['edge_share'])}{amount}"


def _nics_caption(rows: list[Row], used: list[Row]) -> str:
    busiest = max(used, key=lambda row: row["edge_share"])
    idle = [row for row in rows if not row["edge_count"] and row["host"] == busiest["host"]]
    shares = {percent(row["edge_share"]) for row in used}
    if len(shares) == 1 < len(used) and not idle:
        return f"Connections are spread evenly: each of {count(len(used))} NICs carries {shares.pop()} of its host's."
    if len(shares) == 1 < len(used):
        text = f"Each of the {count(len(used))} NICs in use carries {shares.pop()} of its host's connections"
    else:
        text = f"The busiest NIC, {_nic(busiest)} of host {clean(busiest['host'], 40)}, carries "
        text += f"{percent(busiest['edge_share'])} of its host's connections"
    if idle:
        carry = "carries" if len(idle) == 1 else "carry"
        text += f"; on {clean(busiest['host'], 40)}, {listed([_nic(row) for row in idle])} {carry} none"
    return text + "."


def figure_of_rings(context: Context) -> list[Block]:
    """The rings of the largest communicator; nothing where none is known."""
    rows = context.rows("sections/fabric_rings")
    if not rows:
        return []
    channels = sorted({row["channel"] for row in rows})
    if not any(row["is_complete"] for row in rows):
        return [Note(_rings_caption(rows, channels))]
    length = max(row["position"] for row in rows) + 1
    room = max(1, min(_MOST_CHANNELS, context.limits.marks // length))
    rings = [[row for row in rows if row["channel"] == channel] for channel in channels]
    drawn = [row for ring in rings[:room] for row in ring]
    panel = Panel(ring_spec(len(channels[:room]), length), {"cells": _cells(drawn)}, "Rings by channel and place.")
    seen = {row["path_class"] or "unknown" for row in rows}
    notes = ["Each cell is a rank; its colour is the path to the next rank, the last one's to the first."]
    if "unknown" in seen:
        notes.append("A ring is planned at init; NCCL 2.22 and later connects it only when it is first used.")
    if room < len(channels):
        notes.append(f"The first {room} of {len(channels)} channels are drawn.")
    return [
        Figure(
            name="fabric-rings",
            caption=_rings_caption(rows, channels),
            panels=[panel],
            table=Table.of(rings, _RING_COLUMNS, context.limits.table_rows),
            queries=["sections/fabric_rings"],
            legend=[LegendEntry(swatch, words) for path, (swatch, words) in PATHS.items() if path in seen],
            notes=notes,
        )
    ]


def _cells(rows: list[Row]) -> dict[str, list[object]]:
    return {
        "channel": [row["channel"] for row in rows],
        "position": [row["position"] for row in rows],
        "rank": [_rank(row) for row in rows],
        "host": [clean(row["host"] or "unknown", 60) for row in rows],
        "path": [row["path_class"] or "unknown" for row in rows],
        "words": [PATHS[row["path_class"] or "unknown"][1] for row in rows],
        "nics": [_nics(row) for row in rows],
    }


def _rank(row: Row) -> str:
    return str(row["rank"] if row["global_rank"] is None else row["global_rank"])


def _nics(row: Row) -> str:
    ends = [row["send_nic"], row["receive_nic"]]
    return "none" if ends == [None, None] else " to ".join("?" if end is None else str(end) for end in ends)


def _rings_caption(rows: list[Row], channels: list[int]) -> str:
    whole = {row["channel"] for row in rows if row["is_complete"]}
    if not whole:
        planned = plural(len(channels), "ring")
        return f"Of the largest communicator's {planned}, none can be followed to its end in these logs."
    ranks = len({row["rank"] for row in rows})
    text = f"The largest communicator runs {plural(len(channels), 'ring')} through {plural(ranks, 'rank')}"
    if len(whole) < len(channels):
        return f"{text}; {plural(len(channels) - len(whole), 'ring')} cannot be followed to the end in these logs."
    nodes = len({row["host"] for row in rows if row["host"]})
    first = [row for row in rows if row["channel"] == channels[0]]
    hops = sum((row["path_class"] or "").startswith(("network", "socket")) for row in first)
    is_known = all(row["host"] for row in rows)
    if not hops:
        return f"{text}, without leaving a node." if nodes == 1 and is_known else f"{text}."
    extra = f", more than its {plural(nodes, 'node')} need" if is_known and hops > nodes else ""
    return f"{text}; the first crosses the network {plural(hops, 'time')}{extra}."


_RANK_COLUMNS = (
    number("rank", lambda row: "—" if row["rank"] is None else str(row["rank"])),
    TableColumn("host", lambda row: clean(row["host"], 60)),
    TableColumn("GPU", _gpu, code=True),
    TableColumn("NIC", _nic),
    TableColumn("path to it", lambda row: clean(row["path_type"] or "—", 20), code=True),
    number("connections", lambda row: count(row["connections"])),
    TableColumn("GPU Direct RDMA", lambda row: "yes" if row["is_gdr"] else "no"),
    TableColumn("relayed by another GPU", lambda row: "yes" if row["is_relayed"] else "no"),
)
_NIC_COLUMNS = (
    TableColumn("host", lambda row: clean(row["host"], 60)),
    TableColumn("NIC", _nic),
    TableColumn("ranks", lambda row: rank_list(row["ranks"]) if row["ranks"] else "—"),
    number("connections", lambda row: count(row["edge_count"])),
    number("with GPU Direct RDMA", lambda row: count(row["gdr_edge_count"])),
    number("share of the host's", lambda row: percent(row["edge_share"])),
    number("bytes sent", lambda row: size(row["send_bytes"])),
)
_RING_COLUMNS = (
    number("channel", lambda ring: str(ring[0]["channel"])),
    TableColumn("ranks in order", lambda ring: " → ".join(_rank(row) for row in ring), wide=True),
    TableColumn("complete", lambda ring: "yes" if ring[0]["is_complete"] else "no"),
    TableColumn("known from", lambda ring: ring[0]["origin"]),
)
