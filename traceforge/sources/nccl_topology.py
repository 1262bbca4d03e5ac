"""Topologies and graphs that NCCL dumps as XML. In: a file. Out: raw.nccl_topology*, raw.nccl_graph* rows.

Idea: the tree of elements is the tree of devices; NVLink, XGMI and C2C lead across it and name their other end by PCI
address. Written by NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE, read by NCCL_TOPO_FILE; RCCL and cloud providers ship
such files. Entities are refused, as nothing that writes these files uses them. Not handled: files above 64 MiB.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.stream import read_whole
from traceforge.records import Batch, Issue, ReadOptions, Source, SourceSummary

_KIND = "nccl_topology"
_ROOT = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:system|graphs)\b[^>]*>", re.DOTALL)
_LARGEST_BYTES = 64 * 1024 * 1024
_LINKS = ("nvlink", "xgmi", "c2c")
_NODES = ("cpu", "pci", "gpu", "nic", "net", "nvs")
_PATTERNS = {"1": "balanced_tree", "2": "split_tree", "3": "tree", "4": "ring", "5": "nvls", "6": "collnet_direct"}
_MEGABIT_BYTES = 125_000

_SCHEMAS: dict[str, dict[str, pl.DataType]] = {
    "topology": {"topology_id": pl.Int64(), "origin": pl.String()},
    "topology_node": {
        "topology_id": pl.Int64(),
        "node_id": pl.Int32(),
        "parent_node_id": pl.Int32(),
        "kind": pl.String(),
        "name": pl.String(),
        "pci_address": pl.String(),
        "device": pl.Int32(),
        "rank": pl.Int32(),
        "numa_node": pl.Int32(),
        "bandwidth_bytes_per_s": pl.Int64(),
        "detail": pl.String(),
    },
    "topology_link": {
        "topology_id": pl.Int64(),
        "from_node_id": pl.Int32(),
        "to_name": pl.String(),
        "kind": pl.String(),
        "link_count": pl.Int32(),
    },
    "graph": {
        "graph_id": pl.Int64(),
        "pattern": pl.String(),
        "cross_nic": pl.Int32(),
        "channel_count": pl.Int32(),
        "intra_bandwidth_bytes_per_s": pl.Int64(),
        "inter_bandwidth_bytes_per_s": pl.Int64(),
        "intra_path_type": pl.String(),
        "inter_path_type": pl.String(),
        "has_same_channels": pl.Boolean(),
    },
    "graph_channel": {"graph_id": pl.Int64(), "channel": pl.Int32(), "nodes": pl.List(pl.String())},
}
Row = dict[str, object]


class NcclTopologySource:
    """The source `nccl_topology`."""

    name = _KIND

    def recognises(self, head: bytes) -> bool:
        """Whether the first element is a system or a list of graphs, as NCCL names them."""
        match = _ROOT.match(head)
        return match is not None and re.search(rb"<(?:cpu|pci|gpu|nic|graph)\b", head[match.start() :]) is not None

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a whole file.

        Raises:
            InputUnusableError: it is no well-formed XML, is too large, or defines entities.
        """
        data = read_whole(path, _LARGEST_BYTES, options.report_progress)
        tables: dict[str, list[Row]] = {name: [] for name in _SCHEMAS}
        root = _root(data, path)
        unknown = _graphs(root, tables) if root.tag == "graphs" else _system(root, tables)
        for name, rows in tables.items():
            if rows:
                emit(Batch(f"raw.nccl_{name}", pl.DataFrame(rows, schema=_SCHEMAS[name])))
        count = sum(len(rows) for name, rows in tables.items() if name in ("topology_node", "topology_link", "graph"))
        detail = "elements of a kind that is not known were left out"
        issues = (Issue("nccl_topology_unknown_element", "info", unknown, None, detail, unknown),) if unknown else ()
        return SourceSummary(_KIND, None, None, None, count + unknown, count, issues)


def _root(data: bytes, path: Path) -> ET.Element:
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise InputUnusableError("a topology that defines entities is not read", where=str(path))
    try:
        return ET.fromstring(data)  # noqa: S314  # entities are refused above
    except ET.ParseError as error:
        line, column = error.position
        where = f"{path}, line {line}, column {column}"
        raise InputUnusableError("the XML is not well-formed", where=where, hint="dump it again") from error


def _system(root: ET.Element, tables: dict[str, list[Row]]) -> int:
    """Nodes and links of a system; returns how many elements were left out."""
    tables["topology"].append({"topology_id": 0, "origin": "xml"})
    unknown = 0
    waiting: list[tuple[ET.Element, int | None, str | None, int | None]] = [
        (child, None, None, None) for child in reversed(root)
    ]
    while waiting:
        element, parent, address, numa = waiting.pop()
        if element.tag in _LINKS and parent is not None:
            tables["topology_link"].append(_link(element, parent))
        elif element.tag in _NODES:
            address = element.get("busid", address)
            numa = _integer(element.get("numaid")) if element.tag == "cpu" else numa
            number = len(tables["topology_node"])
            tables["topology_node"].append(_node(element, number, parent, address, numa))
            waiting += [(child, number, address, numa) for child in reversed(element)]
        else:
            unknown += 1
    return unknown


def _node(element: ET.Element, number: int, parent: int | None, address: str | None, numa: int | None) -> Row:
    known = element.attrib
    name = known.get("busid") or known.get("name") or known.get("dev") or known.get("numaid") or ""
    speed = _integer(known.get("speed")) if element.tag == "net" else None
    return {
        "topology_id": 0,
        "node_id": number,
        "parent_node_id": parent,
        "kind": element.tag,
        "name": name,
        "pci_address": None if element.tag == "cpu" else address,
        "device": _integer(known.get("dev")),
        "rank": _integer(known.get("rank")) if element.tag == "gpu" else None,
        "numa_node": numa,
        "bandwidth_bytes_per_s": None if speed is None else speed * _MEGABIT_BYTES,
        "detail": json.dumps(dict(known)),
    }


def _link(element: ET.Element, parent: int) -> Row:
    count = _integer(element.get("count"))
    target = element.get("target", "")
    return {"topology_id": 0, "from_node_id": parent, "to_name": target, "kind": element.tag, "link_count": count}


def _graphs(root: ET.Element, tables: dict[str, list[Row]]) -> int:
    """Graphs and their channels; returns how many elements were left out."""
    unknown = 0
    for number, graph in enumerate(root):
        if graph.tag != "graph":
            unknown += 1
            continue
        identifier = _integer(graph.get("id"))
        own = number if identifier is None else identifier
        tables["graph"].append(_graph(graph, own))
        for channel, found in enumerate(graph.iter("channel")):
            nodes = [f"{node.tag}/{node.get('dev', '')}" for node in found]
            tables["graph_channel"].append({"graph_id": own, "channel": channel, "nodes": nodes})
    return unknown


def _graph(graph: ET.Element, number: int) -> Row:
    pattern = graph.get("pattern", "")
    same = graph.get("samechannels")
    return {
        "graph_id": number,
        "pattern": _PATTERNS.get(pattern, pattern),
        "cross_nic": _integer(graph.get("crossnic")),
        "channel_count": _integer(graph.get("nchannels")) or 0,
        "intra_bandwidth_bytes_per_s": _gigabytes(graph.get("speedintra")),
        "inter_bandwidth_bytes_per_s": _gigabytes(graph.get("speedinter")),
        "intra_path_type": graph.get("typeintra", ""),
        "inter_path_type": graph.get("typeinter", ""),
        "has_same_channels": None if same is None else same == "1",
    }


def _integer(text: str | None) -> int | None:
    if text is None or not text.removeprefix("-").isdecimal() or len(text) > 9:
        return None
    return int(text)


def _gigabytes(text: str | None) -> int:
    """GB/s, as NCCL prints them, in bytes a second; 0 where it is no number."""
    whole, _, fraction = (text or "").partition(".")
    if not whole.isdecimal() or len(whole) > 6 or not (fraction or "0").isdecimal():
        return 0
    return int(whole + fraction[:9].ljust(9, "0"))


SOURCE: Source = NcclTopologySource()
