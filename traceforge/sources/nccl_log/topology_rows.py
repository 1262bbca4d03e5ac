"""Rows of topology dumps. In: matches of GRAPH lines. Out: raw.nccl_topology, its nodes and links, paths and graphs.

Idea: dumps of several threads interleave, so each thread has its own; a `+` hangs on the node whose name starts in its
column. Not handled: dumps whose lines were torn (their nodes lack parents).
"""

import re
from dataclasses import dataclass, field

from traceforge.sources.nccl_log.communicators import Communicators
from traceforge.sources.nccl_log.grammar import Handler, Record, Rule, fitting, row_of
from traceforge.sources.nccl_log.quantities import gigabytes, integer, pci_address
from traceforge.sources.nccl_log.tables import Tables

_PATH = re.compile(r"(?P<to_name>\S+) \((?P<hop_count>\d+)/(?P<bandwidth_bytes_per_s>[\d.]+)/(?P<path_type>\w+)\)")
_WITH_BUS = ("gpu", "pci", "nic")
Thread = tuple[int | None, int | None]


@dataclass(slots=True)
class _Dump:
    """A dump that is being printed: its id, how many nodes it has, and which node's name starts in which column."""

    topology_id: int
    node_count: int = 0
    columns: dict[int, int] = field(default_factory=dict)


class TopologyRows:
    """Handlers of topics on topology."""

    def __init__(self, tables: Tables, communicators: Communicators) -> None:
        self._tables = tables
        self._communicators = communicators
        self._dumps: dict[Thread, _Dump] = {}
        self._graphs: dict[Thread, int] = {}

    @property
    def topics(self) -> dict[str, Handler]:
        """What reads each topic; made when asked for, as one kept here would keep all that was read alive."""
        return {
            "topology": self._topology,
            "topology_node": self._node,
            "paths": self._paths,
            "graph": self._graph,
            "graph_channel": self._graph_channel,
        }

    def _topology(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        handle = self._communicators.during_init(record.at, opens=True)
        row = row_of(rule, "topology", match.groupdict())
        row |= {"topology_id": record.record_id, "handle_id": handle.handle_id if handle else None, "origin": "log"}
        self._dumps[record.process_id, record.tid] = _Dump(record.record_id)
        return self._tables.add("topology", row)

    def _node(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        dump = self._dumps.get((record.process_id, record.tid))
        if dump is None:
            return False
        kind, _, number = match["name"].partition("/")
        kind = kind.lower()
        parent = dump.columns.get(len(match["indent"])) if match["link"] else None
        link = {
            "bandwidth_bytes_per_s": gigabytes(match["bandwidth_bytes_per_s"] or ""),
            "topology_id": dump.topology_id,
        }
        if match["link"] and match["link"] not in ("PCI", "NET"):
            row = {"from_node_id": parent, "to_name": match["name"], "kind": match["link"]}
            return self._tables.add("topology_link", {**link, **row})
        detail = match["detail"]
        row = {
            "node_id": dump.node_count,
            "parent_node_id": parent,
            "kind": kind,
            "name": match["name"],
            "pci_address": pci_address(number.rpartition("-")[2]) if kind in _WITH_BUS else None,
            "rank": fitting(integer(detail or ""), "i32") if kind == "gpu" else None,
            "detail": detail,
        }
        dump.columns[match.start("name")] = dump.node_count
        dump.node_count += 1
        return self._tables.add("topology_node", {**link, **row})

    def _paths(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        dump = self._dumps.get((record.process_id, record.tid))
        row = {
            "record_id": record.record_id,
            "topology_id": None if dump is None else dump.topology_id,
            "from_name": match["from_name"],
        }
        return all(
            self._tables.add("path", {**row, **row_of(rule, "path", path.groupdict())})
            for path in _PATH.finditer(match["paths"])
        )

    def _graph(self, rule: Rule, match: re.Match[str], record: Record) -> bool:
        row = row_of(rule, "graph", match.groupdict())
        handle = self._communicators.during_init(record.at, opens=True)
        row |= {"graph_id": record.record_id, "handle_id": handle.handle_id if handle else None}
        self._graphs[record.process_id, record.tid] = record.record_id
        return self._tables.add("graph", row)

    def _graph_channel(self, _rule: Rule, match: re.Match[str], record: Record) -> bool:
        row = {
            "graph_id": self._graphs.get((record.process_id, record.tid)),
            "channel": fitting(integer(match["channel"]), "i32"),
            "nodes": match["nodes"].split(),
        }
        return self._tables.add("graph_channel", row)
