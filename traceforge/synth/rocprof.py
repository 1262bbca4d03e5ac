"""JSON of rocprofv3. In: a job that was run. Out: `rankR_results.json`, a file a rank, as `--output-format json` does.

Laid out as the public file of rocprofiler-sdk 1.0 is: agents of the whole node, tables of names, one list of records a
kind, empty ones too. Not written: fields that say how a kernel uses the device, code objects, files of counters.
"""

import json
from collections.abc import Sequence
from typing import Any

from traceforge.synth.rocm_records import COPY, DISPATCH, HIP, MARKER, RCCL, RocmRecord, records_of
from traceforge.synth.scenario import SimulatedJob

_LISTS = {
    DISPATCH: "kernel_dispatch", HIP: "hip_api", "HSA_CORE_API": "hsa_api", MARKER: "marker_api", RCCL: "rccl_api",
    COPY: "memory_copy", "MEMORY_ALLOCATION": "memory_allocation", "SCRATCH_MEMORY": "scratch_memory",
}  # fmt: skip
_KINDS = ("NONE", *_LISTS)
_RANGE = "roctxThreadRangeA"
_FIRST_AGENT = 37_944  # a number that is no device's
_PID = 900


def rocprof_text(job: SimulatedJob, rank: int) -> str:
    """The file of one rank."""
    records = records_of(job, rank)
    names = {kind: list(dict.fromkeys(one.name for one in records if one.kind == kind)) for kind in _LISTS}
    kernels, operations = names[DISPATCH], names | {DISPATCH: ["KERNEL_DISPATCH_COMPLETE"], MARKER: [_RANGE]}
    pid, tid = _PID + rank, _PID + rank
    process = {
        "metadata": {
            "node": {"id": 0, "hostname": job.scenario.cluster.host_of(rank)}, "pid": pid,
            "init_time": min((one.start_ns for one in records), default=0),
            "fini_time": max((one.end_ns for one in records), default=0), "command": ["python"], "config": {},
        },
        "agents": _agents(job.scenario.cluster.devices),
        "strings": {
            "buffer_records": [{"kind": kind, "operations": operations.get(kind, [])} for kind in _KINDS],
            "marker_api": [{"key": one.correlation, "value": one.name} for one in records if one.kind == MARKER],
        },
        "kernel_symbols": [
            {"kernel_id": number, "kernel_name": f"{name.partition('(')[0]}.kd", "formatted_kernel_name": name}
            for number, name in enumerate(kernels)
        ],
        "buffer_records": {
            listed: [_record(one, operations[kind], kernels, tid) for one in records if one.kind == kind]
            for kind, listed in _LISTS.items()
        },
    }  # fmt: skip
    return json.dumps({"rocprofiler-sdk-tool": [process]})


def _agents(devices: int) -> list[dict[str, object]]:
    """The processors of a node, the CPU first."""
    cpu = {"id": {"handle": _FIRST_AGENT}, "type": 1, "product_name": "CPU", "cu_count": 0, "mem_banks": []}
    gpu = {"type": 2, "product_name": "AMD Instinct MI300X", "cu_count": 304}
    memory = [{"heap_type": 1, "size_in_bytes": 206_141_652_992}]
    return [cpu, *({"id": _agent(number), **gpu, "mem_banks": memory} for number in range(devices))]


def _agent(device: int) -> dict[str, int]:
    return {"handle": _FIRST_AGENT + 1 + device}


def _record(one: RocmRecord, operations: Sequence[str], kernels: Sequence[str], tid: int) -> dict[str, Any]:
    said = {
        "kind": _KINDS.index(one.kind), "operation": operations.index(one.name) if one.name in operations else 0,
        "thread_id": tid, "correlation_id": {"internal": one.correlation, "external": 0},
        "start_timestamp": one.start_ns, "end_timestamp": one.end_ns,
    }  # fmt: skip
    place = {"stream_id": {"handle": one.stream}}
    if one.kind == DISPATCH:
        kernel = {"agent_id": _agent(one.device), "queue_id": {"handle": 1}, "kernel_id": kernels.index(one.name)}
        return said | place | {"dispatch_info": kernel}
    if one.kind == COPY:
        ends = [{"handle": _FIRST_AGENT}, _agent(one.device)]
        ends = ends[::-1] if one.name.endswith("TO_HOST") else ends
        return said | place | {"src_agent_id": ends[0], "dst_agent_id": ends[1], "bytes": one.size_bytes}
    return said
