"""Large execution traces made of small recorded ones. In: a corpus, a factor. Out: files that several tools accept.

Idea: one rank's nodes and events are repeated with ids, handles and times moved on, as a longer run would have them.
The execution trace is written as schema 1.0.2 and the timeline repeats its handles: upstream's linker needs both.
Not handled: names that grow with the run.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from tests.export.decoding import messages, varint
from tests.sources.chakra_wire import attribute, framed, metadata, node
from tests.sources.chakra_wire import varint as written

_STEP_US = 10_000_000
_HANDLES = ("External id", "Ev Idx", "correlation")
_TYPES = {"rf_id": "uint64", "fw_parent": "uint64", "seq_id": "int64", "scope": "uint64", "tid": "uint64"}
_ROOTS = ("[pytorch|profiler|execution_trace|thread]", "[pytorch|profiler|execution_trace|process]")


def linked_pair(corpus: Path, factor: int, folder: Path) -> tuple[Path, Path, int]:
    """Execution trace and timeline of a rank of the Megatron job, repeated; and the number of nodes."""
    source = corpus / "traces" / "chakra" / "megatron_tp8_a100"
    trace = json.loads(gzip.decompress((source / "megatron_et_0.json.gz").read_bytes()))
    timeline = json.loads(gzip.decompress((source / "megatron_kineto_0.json.gz").read_bytes()))
    nodes = [modern for number in range(factor) for modern in _moved_nodes(trace["nodes"], number)]
    events = [moved for number in range(factor) for moved in _moved_events(timeline["traceEvents"], number)]
    host, device = folder / "rank0.et.json", folder / "rank0.pt.trace.json"
    head = {"schema": "1.0.2-chakra.0.0.4", "pid": trace["pid"], "time": trace["time"], "start_ts": 1}
    with host.open("w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ',\n  "nodes": [\n')
        file.write(",\n".join("    " + json.dumps(one) for one in nodes))
        file.write('\n  ],\n  "finish_ts": 2\n}\n')
    device.write_text(json.dumps({**timeline, "traceEvents": events}), encoding="utf-8")
    return host, device, len(nodes)


def _moved_nodes(nodes: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Nodes as of 1.0.2, with ids and handles of the repetition."""
    by = number * (max(one["id"] for one in nodes) + 1)
    handles = number * (max(one["rf_id"] for one in nodes) + 1)
    moved = []
    for one in nodes:
        if one["name"] in _ROOTS and number:
            continue
        parent = one["parent"] if one["parent"] <= 2 else one["parent"] + by
        stated = {**{name: one[name] for name in _TYPES}, "fw_tid": one["fw_tid"], "op_schema": one["op_schema"]}
        stated["rf_id"] += handles if one["rf_id"] else 0
        kinds = {**_TYPES, "fw_tid": "uint64", "op_schema": "string"}
        moved.append(
            {
                "id": one["id"] if one["name"] in _ROOTS else one["id"] + by,
                "name": one["name"],
                "ctrl_deps": parent,
                "inputs": {"values": one["inputs"], "shapes": one["input_shapes"], "types": one["input_types"]},
                "outputs": {"values": one["outputs"], "shapes": one["output_shapes"], "types": one["output_types"]},
                "attrs": [{"name": name, "type": kinds[name], "value": value} for name, value in stated.items()],
            }
        )
    return moved


def _moved_events(events: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Events with times and identifiers of the repetition; host operations repeat the handle of their node."""
    moved = []
    for event in events:
        if event.get("ph") == "M":
            if not number:
                moved.append(event)
            continue
        args = dict(event.get("args", {}))
        if event.get("cat") in ("cpu_op", "user_annotation") and "External id" in args:
            args["Record function id"] = args["External id"] - 2 + 5_423 * number
        for name in _HANDLES:
            if isinstance(args.get(name), int) and args[name] > 0:
                args[name] += 10_000_000 * number
        copy = {**event, "ts": event["ts"] + _STEP_US * number}
        if args:
            copy["args"] = args
        if "id" in event:
            copy["id"] = event["id"] + 10_000_000 * number
        if str(event.get("name", "")).startswith("ProfilerStep#"):
            copy["name"] = f"ProfilerStep#{3 + number}"
        moved.append(copy)
    return moved


def converted_et(corpus: Path, factor: int, path: Path) -> int:
    """A converter's `.et` repeated, with ids and dependencies moved on; the number of its nodes."""
    source = corpus / "traces" / "kineto" / "megatron_tp2" / "companion" / "final.0.et"
    head, *nodes = messages(source.read_bytes())
    step = 1 + max(_id_of(one) for one in nodes)
    with path.open("wb") as file:
        file.write(framed(head))
        for number in range(factor):
            for one in nodes:
                file.write(framed(_moved_message(one, number * step)))
    return factor * len(nodes)


def lean_et(count: int, path: Path) -> None:
    """A generator's `.et`: a chain of computations with a collective every tenth node."""
    with path.open("wb") as file:
        file.write(framed(metadata("0.0.4")))
        for number in range(1, count + 1):
            marks = [attribute("is_cpu_op", "bool", False), attribute("tensor_size", "uint64", number % 5_000)]
            if number % 10 == 0:
                marks += [attribute("comm_type", "int64", 0), attribute("comm_size", "int64", 1 << 20)]
            kind = 4 if number % 10 else 7
            file.write(
                framed(
                    node(number, f"COMP_{number % 1000}", kind, data=[number - 1], duration_us=100, attributes=marks)
                )
            )


def _id_of(message: bytes) -> int:
    return varint(message, 1)[0] if message[0] == 0x08 else 0


def _moved_message(message: bytes, by: int) -> bytes:
    """A node whose id and packed dependencies are higher by some number."""
    out, place = bytearray(), 0
    while place < len(message):
        begin = place
        tag, place = varint(message, place)
        value, place = varint(message, place)
        if tag >> 3 == 1:
            out += written(tag) + written(value + by)
            continue
        place += value if tag & 7 == 2 else 0
        if tag >> 3 in (4, 5):
            moved, at = bytearray(), place - value
            while at < place:
                other, at = varint(message, at)
                moved += written(other + by)
            out += written(tag) + written(len(moved)) + moved
        else:
            out += message[begin:place]
    return bytes(out)
