"""What rocprofv3 records of a job. In: a job that was run. Out: each rank's records, as both of its formats hold them.

It says what PyTorch's own trace of the job says, as far as rocprofv3 records it: calls of HIP and RCCL, markers as
`torch.autograd.profiler.emit_nvtx` writes them, steps as markers `step N`, dispatches and copies. RCCL runs every
collective in a kernel of one name, so that only its calls name them. Not written: sizes and groups of collectives,
calls of HSA, counters.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from traceforge.synth.kineto import trace_text
from traceforge.synth.scenario import SimulatedJob

HIP, RCCL, MARKER = "HIP_RUNTIME_API_EXT", "RCCL_API", "MARKER_CORE_RANGE_API"
DISPATCH, COPY = "KERNEL_DISPATCH", "MEMORY_COPY"
_BOOTED_NS = 5_000_000_000  # the node's clock at what the Kineto files call their base time
_STEP = "ProfilerStep#"
_COLLECTIVE_KERNEL = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
_CALLS = ("AllReduce", "AllGather", "ReduceScatter")
_COPIES = {"HtoD": "HOST_TO_DEVICE", "DtoH": "DEVICE_TO_HOST", "DtoD": "DEVICE_TO_DEVICE"}

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RocmRecord:
    """One record; times in ns on the node's clock.

    Attributes:
        kind: the SDK's word for what it is of.
        name: of the call, the kernel or the direction of the copy, or the marker's text.
        correlation: joins what the device did to the call that asked for it.
        device: number of the GPU among those of the node; of a call, the rank's own.
        stream: of the device; 0 of calls.
        size_bytes: of a copy.
    """

    kind: str
    name: str
    start_ns: int
    end_ns: int
    correlation: int
    device: int
    stream: int = 0
    size_bytes: int = 0


def records_of(job: SimulatedJob, rank: int) -> list[RocmRecord]:
    """All records of a rank's process."""
    trace = json.loads(trace_text(job, rank), parse_float=Decimal)
    own = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    # Calls that launch nothing, and markers, have correlations of their own behind those of the launches.
    launched = {event["args"]["correlation"]: event for event in own if "stream" in event["args"]}
    device = rank % job.scenario.cluster.devices
    found: list[RocmRecord] = []
    for number, event in enumerate(own, start=max(launched, default=0) + 1):
        found += _records(event, number, launched, device)
    return found


def _records(event: Event, number: int, launched: Mapping[int, Event], device: int) -> Iterator[RocmRecord]:
    """What is recorded of one event of the job."""
    start = int(event["ts"] * 1000) - _BOOTED_NS
    end, args, name = start + int(event["dur"] * 1000), event["args"], event["name"]
    correlation = args.get("correlation", number)
    match event["cat"]:
        case "cuda_runtime":
            kernel = launched[correlation]["name"] if correlation in launched else ""
            if kernel.startswith("nccl"):
                call = next((one for one in _CALLS if one in kernel), "GroupEnd")
                yield RocmRecord(RCCL, f"nccl{call}", start, end, number, device)
            yield RocmRecord(HIP, f"hip{name.removeprefix('cuda')}", start, end, correlation, device)
        case "kernel":
            said = _COLLECTIVE_KERNEL if name.startswith("nccl") else name
            yield RocmRecord(DISPATCH, said, start, end, correlation, device, args["stream"])
        case "gpu_memcpy":
            direction = next(said for word, said in _COPIES.items() if word in name)
            size = args.get("bytes", 0)
            yield RocmRecord(COPY, f"MEMORY_COPY_{direction}", start, end, correlation, device, args["stream"], size)
        case "cpu_op":
            text = f"{name}, op_id = {args['Record function id']}"
            yield RocmRecord(MARKER, text, start, end, correlation, device)
        case _:
            text = f"step {name.removeprefix(_STEP)}" if name.startswith(_STEP) else name
            yield RocmRecord(MARKER, text, start, end, correlation, device)
