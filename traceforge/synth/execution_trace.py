"""PyTorch execution traces. In: a job that was run. Out: each rank's trace as JSON, schema 1.1.1-chakra.0.0.4.

Operations of the host without times, tied to the Kineto trace by `rf_id`, the number of the record function, which both
repeat. Not written: tensors' storage, operations below `aten::`, threads other than the main one.
"""

import json
from collections.abc import Iterator, Mapping

from traceforge.synth.cluster import Group, Kind
from traceforge.synth.kineto import record_function
from traceforge.synth.kineto_args import (
    collective_arguments,
    group_arguments,
    message_arguments,
    routing_arguments,
)
from traceforge.synth.scenario import SimulatedJob

_SCHEMA = "1.1.1-chakra.0.0.4"
_PROCESS, _THREAD, _GROUPS, _FIRST = 1, 2, 3, 4
_TENSORS = "GenericList[Tensor(c10::BFloat16)]"
_FUNCTION_SCOPE, _USER_SCOPE = 0, 7
_NOTHING: dict[str, list[object]] = {"values": [], "shapes": [], "types": [], "strides": []}

Node = dict[str, object]


def execution_trace_text(job: SimulatedJob, rank: int) -> str:
    """The execution trace of one rank: all recorded iterations."""
    head = {"schema": _SCHEMA, "pid": 1_000 + rank, "time": "2025-01-01 00:00:00", "start_ts": 10_000}
    nodes = ",\n".join(json.dumps(node) for node in _nodes(job, rank))
    return f'{json.dumps(head)[:-1]},\n"nodes": [\n{nodes}\n],\n"finish_ts": 20000}}\n'


def _nodes(job: SimulatedJob, rank: int) -> Iterator[Node]:
    groups = [group for group in job.scenario.cluster.groups() if rank in group.ranks]
    listed = [
        {"pg_name": str(args["Process Group Name"]), "pg_desc": args["Process Group Description"],
         "backend_config": "cuda:nccl", "ranks": list(group.ranks), "group_size": len(group.ranks)}
        for group in groups
        for args in [group_arguments(job.scenario, group)]
    ]  # fmt: skip
    yield _node(_PROCESS, "[pytorch|profiler|execution_trace|process]", _PROCESS, 0, scope=_USER_SCOPE)
    yield _node(_THREAD, "[pytorch|profiler|execution_trace|thread]", _PROCESS, 0, scope=_USER_SCOPE)
    listing = {"values": [json.dumps(listed)], "shapes": [[]], "types": ["String"], "strides": [[]]}
    yield _node(_GROUPS, "## process_group:init ##", _THREAD, 0, scope=_USER_SCOPE) | {"inputs": listing}
    by_kind = {group.kind: group for group in groups}
    for i in range(job.scenario.iterations):
        for n, operation in enumerate(job.program_of(rank)):
            if operation.action != "free":
                yield from _operation(job, rank, by_kind, i, n)


def _operation(job: SimulatedJob, rank: int, groups: Mapping[Kind, Group], i: int, n: int) -> Iterator[Node]:
    operation = job.program_of(rank)[n]
    handle = record_function(job, i, n)
    if operation.group is None:
        scope = _USER_SCOPE if operation.action == "input" else _FUNCTION_SCOPE
        yield _node(_FIRST + handle, operation.name, _THREAD, handle, scope=scope)
        return
    group = groups[operation.group]
    device = f"cuda:{rank % job.scenario.cluster.devices}"
    if operation.action == "collective":
        args = collective_arguments(job.scenario, group, operation) | routing_arguments(job, group, operation, i, rank)
        yield from _communication(operation.name, handle, args, group, device)
    for number, part in enumerate(operation.parts):
        args = message_arguments(job.scenario, group, operation, part)
        yield from _communication(
            "c10d::send" if part.sends else "c10d::recv_", handle + 2 * number, args, group, device
        )


def _communication(name: str, handle: int, args: Mapping[str, object], group: Group, device: str) -> Iterator[Node]:
    number = _FIRST + handle
    facts: dict[str, object] = {
        "collective_name": args["Collective name"], "dtype": "BFloat16", "in_msg_nelems": args["In msg nelems"],
        "out_msg_nelems": args["Out msg nelems"], "in_split_size": args["In split size"],
        "out_split_size": args["Out split size"], "global_rank_start": group.ranks[0],
        "global_rank_stride": group.ranks[1] - group.ranks[0], "pg_name": args["Process Group Name"],
        "pg_desc": args["Process Group Description"], "pg_size": len(group.ranks),
    }  # fmt: skip
    yield _node(number, name, _THREAD, handle)
    node = _node(number + 1, "record_param_comms", number, handle + 1, facts=facts)
    inputs, outputs = (_tensor(number, args[side], device) for side in ("In msg nelems", "Out msg nelems"))
    yield {**node, "inputs": inputs, "outputs": outputs}


def _tensor(number: int, elements: object, device: str) -> dict[str, list[object]]:
    tensor = [number, number, 0, elements, 2, device]
    return {"values": [[tensor]], "shapes": [[[elements]]], "types": [_TENSORS], "strides": [[[1]]]}


def _node(
    number: int,
    name: str,
    parent: int,
    handle: int,
    *,
    scope: int = _FUNCTION_SCOPE,
    facts: dict[str, object] | None = None,
) -> Node:
    attributes: dict[str, object] = {
        "rf_id": handle, "fw_parent": 0, "seq_id": -1, "scope": scope, "tid": 1, "fw_tid": 0, "op_schema": "",
        "kernel_backend": "", "kernel_file": "", "tensor_range": "",
    }  # fmt: skip
    attributes |= facts or {}
    return {
        "id": number,
        "name": name,
        "ctrl_deps": parent,
        "inputs": _NOTHING,
        "outputs": _NOTHING,
        "attrs": [
            {"name": key, "type": "string" if isinstance(value, str) else _type(key), "value": value}
            for key, value in attributes.items()
        ],
    }


def _type(name: str) -> str:
    return "int64" if name == "seq_id" else "uint64"
