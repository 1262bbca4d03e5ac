"""Chakra execution traces for simulators. In: a run of a store. Out: one `.et` file per rank, `<prefix>.<rank>.et`.

Each file holds metadata, a node that lists the process groups, and the nodes of `chakra_graph`: with start times on the
aligned clock, group names, and dependencies that all exist. Compatible with MLCommons Chakra schema 0.0.4 and 1.0.0.
Not handled: tensors; more than one trace per rank (timed ones are preferred).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.export.chakra_graph import exported_nodes
from traceforge.export.chakra_groups import NumberedGroups
from traceforge.export.chakra_node import ExportNode
from traceforge.export.protobuf import framed, number, packed, text
from traceforge.redaction import Redaction
from traceforge.sources.chakra import schema
from traceforge.store.database import Store
from traceforge.store.targets import replaced_file

_TRACES = """
SELECT source_id, part, rank, label
FROM graph.quality
WHERE run_id = ? AND rank IS NOT NULL
QUALIFY ROW_NUMBER() OVER (
  PARTITION BY rank ORDER BY LIST_POSITION(['timed', 'modelled', 'structure_only'], label), source_id, part
) = 1
ORDER BY rank
"""
_INIT_NODE = "## process_group:init ##"
_WIRE_VERSION = "0.0.4"
_METADATA, _COMPUTE, _COLLECTIVE = 1, 4, schema.COLLECTIVE
_INT32, _INT64, _BOOL, _TEXT = 7, 9, 27, 29
_OF_32_BITS = frozenset(schema.COMMUNICATION_ATTRIBUTES.values())
_NS_PER_US = 1_000


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that was written.

    Attributes:
        path: of the file.
        rank: global rank.
        node_count: nodes in it.
        label: as in graph.quality.
    """

    path: Path
    rank: int
    node_count: int
    label: str


def export_chakra(
    store: Store, run_id: int, folder: Path, prefix: str, redaction: Redaction | None = None
) -> Iterator[ExportedFile]:
    """Write one file per rank into a folder, which is created if it is missing.

    Args:
        store: with its stages built.
        prefix: files are named `<prefix>.<rank>.et`.
        redaction: replaces names of hosts, files and users in the names of nodes and process groups.

    Raises:
        InputUnusableError: the run holds no execution trace whose rank is known, or a file cannot be written.
    """
    traces = store.rows(_TRACES, [run_id])
    if not traces:
        raise _nothing_to_export(store, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    groups = NumberedGroups(store, run_id)
    for source_id, part, rank, label in traces:
        nodes = exported_nodes(store, source_id, part, groups, redaction)
        known = groups.listed(source_id, part, {node.facts.get("process_group") for node in nodes})
        listed = text(schema.INPUTS, _arguments(redaction.frame(known) if redaction else known))
        path = folder / f"{prefix}.{rank}.et"
        with replaced_file(path) as place, place.open("wb") as file:
            file.write(framed(_metadata(rank, label)))
            of_groups = next((node for node in nodes if node.name == _INIT_NODE), None)
            if of_groups is None:
                of_groups = ExportNode(1, _INIT_NODE, "metadata", True, None, 0)
                nodes.insert(0, of_groups)
            for node in nodes:
                file.write(framed(_message(node) + (listed if node is of_groups else b"")))
        yield ExportedFile(path, rank, len(nodes), label)


def _nothing_to_export(store: Store, run_id: int) -> InputUnusableError:
    if store.value("SELECT COUNT(*) FROM graph.quality WHERE run_id = ?", [run_id]):
        what = "nothing says which rank the execution traces of the run are of"
        hint = "name each file by its rank (job.0.et, job.1.et …) and ingest them again"
    else:
        what = "the run holds no execution trace"
        hint = "record execution traces (torch.profiler.ExecutionTraceObserver) beside the timelines and ingest both"
    return InputUnusableError(what, where=str(store.path), hint=hint)


def _metadata(rank: int, label: str) -> bytes:
    attributes: dict[str, int | str] = {"rank": rank, "label": label, "time_unit": "us"}
    return text(schema.VERSION, _WIRE_VERSION) + b"".join(
        text(schema.METADATA_ATTRIBUTE, _attribute(name, value)) for name, value in attributes.items()
    )


def _arguments(groups: pl.DataFrame) -> bytes:
    """Arguments of the node that lists the process groups, as PyTorch and its converter write them."""
    return text(1, repr([json.dumps(groups.to_dicts())])) + text(2, "[[]]") + text(3, "['String']")


def _message(node: ExportNode) -> bytes:
    # Simulators refuse communication of the host.
    attributes = {"is_cpu_op": node.is_cpu and node.kind != "communication", **_expected_attributes(node)}
    return b"".join(
        (
            number(schema.ID, node.node_id),
            text(schema.NAME, node.name),
            number(schema.TYPE, _type(node)),
            packed(schema.CONTROL, node.control),
            packed(schema.DATA, node.data),
            number(schema.START, None if node.start_ns is None else max(0, node.start_ns) // _NS_PER_US),
            number(schema.DURATION, (node.duration_ns + _NS_PER_US // 2) // _NS_PER_US),
            *(text(schema.ATTRIBUTE, _attribute(name, value)) for name, value in attributes.items()),
        )
    )


def _type(node: ExportNode) -> int:
    if node.kind == "metadata":
        return _METADATA
    if node.kind != "communication":
        return _COMPUTE
    return {"send": schema.SEND, "recv": schema.RECEIVE}.get(str(node.facts.get("op")), _COLLECTIVE)


def _expected_attributes(node: ExportNode) -> dict[str, int | str | bool]:
    """Attributes under the names that readers of such files expect."""
    names = {"stream": "stream", "rf_id": "rf_id", "tid": "thread_id", "op_schema": "op_schema"}
    if node.kind == "communication":
        names |= {"comm_size": "size_bytes", "pg_name": "process_group"}
        names |= {"comm_src": "source_rank", "comm_dst": "destination_rank"}
    found = {name: node.facts[fact] for name, fact in names.items() if fact in node.facts}
    op = node.facts.get("op")
    if node.kind == "communication" and op in schema.COLLECTIVES:
        found["comm_type"] = schema.COLLECTIVES.index(str(op))
    elif node.kind == "communication" and op in ("send", "recv"):
        found["comm_tag"] = node.facts.get("tag", 0)
    return {name: value for name, value in found.items() if isinstance(value, int | str)}


def _attribute(name: str, value: int | str | bool) -> bytes:
    if isinstance(value, str):
        return text(schema.ATTRIBUTE_NAME, name) + text(_TEXT, value, keep_empty=True)
    kind = _BOOL if isinstance(value, bool) else _INT32 if name in _OF_32_BITS else _INT64
    return text(schema.ATTRIBUTE_NAME, name) + number(kind, int(value), keep_zero=True)
