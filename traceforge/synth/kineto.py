"""Kineto traces. In: a job that was run. Out: the JSON text of each rank's trace, as PyTorch 2.6 to 2.13 write it.

Host operations with their driver calls, kernels tied to these by correlation and by flow, collectives with their
arguments, steps. Timestamps are µs with three decimals, relative to baseTimeNanoseconds. Not written: Python stacks,
memory events, the second copy of annotations on the device.
"""

import json
from collections.abc import Iterator
from itertools import count, groupby

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.kineto_args import (
    collective_arguments,
    group_arguments,
    message_arguments,
    peer_inputs,
    routing_arguments,
)
from traceforge.synth.program import COMPUTE, MessageSide, ProgramOperation
from traceforge.synth.scenario import SimulatedJob

_BASE_NS = 1_735_689_600_000_000_000
_STREAMS = {COMPUTE: 7, "tensor_parallel": 16, "data_parallel": 20}
_FIRST_OTHER_STREAM = 24
_MAIN = 0
_COMMUNICATION = ("collective", "message")


def record_function(job: SimulatedJob, iteration: int, place: int) -> int:
    """Number of the record function of an operation; those within it have the next numbers."""
    return job.functions * (iteration * len(job.load.host_ns[0]) + place) + 1


def trace_text(job: SimulatedJob, rank: int) -> str:
    """The trace file of one rank."""
    return _Writer(job, rank).text()


class _Writer:
    def __init__(self, job: SimulatedJob, rank: int) -> None:
        self._job, self._rank = job, rank
        self._program = job.program_of(rank)
        self._device = rank % job.scenario.cluster.devices
        self._pid = 1_000 + rank
        events = job.events
        self._host_start, self._call_start = self._read(events.host_start_ns), self._read(events.call_start_ns)
        self._call_end = self._read(events.call_end_ns)
        self._device_start, self._device_end = self._read(events.device_start_ns), self._read(events.device_end_ns)
        self._numbers = count(1)
        self._groups = [group for group in job.scenario.cluster.groups() if rank in group.ranks]
        self._by_kind = {group.kind: group for group in self._groups}
        self._sequence = {group.kind: count(1) for group in self._groups}
        self._args = {n: self._arguments(op) for n, op in enumerate(self._program) if op.action in _COMMUNICATION}
        others = sorted({op.runs_on for op in self._program} - _STREAMS.keys())
        self._streams = _STREAMS | {name: _FIRST_OTHER_STREAM + 4 * n for n, name in enumerate(others)}

    def _read(self, true_ns: NDArray[np.float64]) -> NDArray[np.int64]:
        """What this rank's clock shows; the last axis, the rank, is gone."""
        # The first event lies some seconds after the base, on every clock.
        return self._job.clocks.read(true_ns, self._rank) + 10_000_000_000

    def text(self) -> str:
        head = json.dumps(self._head())[:-1]
        events = ",\n".join(self._events())
        return f'{head},\n"traceEvents": [\n{events}\n],\n"traceName": "rank{self._rank}.pt.trace.json"}}\n'

    def _head(self) -> dict[str, object]:
        cluster = self._job.scenario.cluster
        return {
            "schemaVersion": 1,
            "deviceProperties": [
                {"id": device, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85029158912, "computeMajor": 9,
                 "computeMinor": 0, "numSms": 132}
                for device in range(cluster.devices)
            ],
            "distributedInfo": {
                "backend": "nccl", "rank": self._rank, "world_size": cluster.ranks, "pg_count": len(self._groups),
                "pg_config": [
                    {"pg_name": args["Process Group Name"], "pg_desc": args["Process Group Description"],
                     "pg_size": len(group.ranks), "backend_config": "cuda:nccl", "ranks": list(group.ranks)}
                    for group in self._groups
                    for args in [group_arguments(self._job.scenario, group)]
                ],
                "nccl_version": self._job.scenario.nccl.version or "2.21.5",
            },
            "host_name": cluster.host_of(self._rank),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": _BASE_NS,
        }  # fmt: skip

    def _arguments(self, operation: ProgramOperation) -> list[str]:
        """Of a collective, or of each part of a message."""
        scenario, group = self._job.scenario, self._by_kind[operation.group or "data_parallel"]
        every = [message_arguments(scenario, group, operation, part) for part in operation.parts]
        return [json.dumps(args)[1:-1] for args in every or [collective_arguments(scenario, group, operation)]]

    def _events(self) -> Iterator[str]:
        yield from self._names()
        events = self._job.events
        starts, ends = self._read(events.step_start_ns), self._read(events.step_end_ns)
        for i in range(len(starts)):
            step = f"ProfilerStep#{self._job.scenario.first_step + i}"
            yield self._complete("user_annotation", step, int(starts[i]), int(ends[i]), self._pid, _MAIN)
            yield from self._stalls(i)
            yield from self._annotations(i)
            for n, operation in enumerate(self._program):
                yield from self._operation(i, n, operation)

    def _names(self) -> Iterator[str]:
        names = [
            ("process_name", self._pid, 0, "python"),
            ("process_labels", self._pid, 0, "CPU"),
            ("process_name", self._device, 0, "python"),
            ("process_labels", self._device, 0, f"GPU {self._device}"),
        ]
        names += [("thread_name", self._device, stream, f"stream {stream}") for stream in self._streams.values()]
        for name, pid, tid, label in names:
            key = "labels" if name == "process_labels" else "name"
            yield json.dumps({"name": name, "ph": "M", "ts": 0.0, "pid": pid, "tid": tid, "args": {key: label}})

    def _stalls(self, i: int) -> Iterator[str]:
        for number, stall in enumerate(self._job.load.stalls):
            duration = float(stall.duration_ns[i, self._rank])
            if duration > 0 and stall.name:
                start = int(self._read(self._job.events.stall_start_ns[number])[i])
                # It lasts until the operation before which it stands begins.
                end = int(self._host_start[i, stall.place])
                yield self._complete(stall.category, stall.name, start, end, self._pid, _MAIN)

    def _annotations(self, i: int) -> Iterator[str]:
        numbered = enumerate(self._program)
        for name, operations in groupby(numbered, lambda one: one[1].annotation):
            places = [place for place, _ in operations]
            if name:
                start, end = int(self._host_start[i, places[0]]), int(self._call_end[i, places[-1]])
                yield self._complete("user_annotation", name, start, end, self._pid, _MAIN)

    def _operation(self, i: int, n: int, operation: ProgramOperation) -> Iterator[str]:
        start, call, end = int(self._host_start[i, n]), int(self._call_start[i, n]), int(self._call_end[i, n])
        match operation.action:
            case "input":
                number = f'"Record function id": {record_function(self._job, i, n)}'
                yield self._complete("user_annotation", operation.name, start, call, self._pid, _MAIN, number)
            case "free":
                yield self._runtime("cudaFree", call, end)
            case "await":
                yield self._host(operation.name, start, end, record_function(self._job, i, n))
                yield self._runtime("cudaStreamWaitEvent", call, end)
            case "collective":
                yield from self._collective(i, n, operation)
            case "message":
                yield from self._messages(i, n, operation)
            case "synchronise" | "read":
                if self._device_end[i, n] > self._device_start[i, n]:
                    yield self._host(operation.name, start, end, record_function(self._job, i, n))
                    middle = min(end, int(self._device_start[i, n]))
                    yield from self._launched(i, n, operation.kernel, "cudaMemcpyAsync", call, middle)
                    yield self._runtime("cudaStreamSynchronize", middle, end)
            case _:
                yield self._host(operation.name, start, end, record_function(self._job, i, n))
                launch = "cudaMemcpyAsync" if operation.action == "copy" else "cudaLaunchKernel"
                yield from self._launched(i, n, operation.kernel, launch, call, end)

    def _collective(self, i: int, n: int, operation: ProgramOperation) -> Iterator[str]:
        start, call, end = int(self._host_start[i, n]), int(self._call_start[i, n]), int(self._call_end[i, n])
        group = operation.group or "data_parallel"
        args = f'{self._args[n][0]}{self._splits(i, operation)}, "Seq": {next(self._sequence[group])}'
        handle = record_function(self._job, i, n)
        yield self._host(operation.name, start, end, handle)
        yield self._host("record_param_comms", start + (call - start) // 2, end, handle + 1, args)
        yield from self._launched(i, n, operation.kernel, "cudaLaunchKernelExC", call, end, args)

    def _splits(self, i: int, operation: ProgramOperation) -> str:
        """What depends on the routing of tokens."""
        if operation.routed is None:
            return ""
        group = self._by_kind["expert_parallel"]
        return ", " + json.dumps(routing_arguments(self._job, group, operation, i, self._rank))[1:-1]

    def _messages(self, i: int, n: int, operation: ProgramOperation) -> Iterator[str]:
        """One by one, a message's kernel is launched by its call and has its arguments; a batch's has none."""
        start, call, end = int(self._host_start[i, n]), int(self._call_start[i, n]), int(self._call_end[i, n])
        sequence = next(self._sequence["pipeline_parallel"])
        args = [f'{args}, "Seq": {sequence}' for args in self._args[n]]
        if not operation.is_batched:
            yield from self._call(i, n, 0, args[0], start, end)
            middle = start + 3 * (call - start) // 4
            yield self._complete("user_annotation", self._title(operation.parts[0]), middle, end, self._pid, _MAIN)
            yield from self._launched(i, n, operation.kernel, "cudaLaunchKernelExC", call, end, args[0])
            return
        share = (call - start) // (len(args) + 1)
        for number, own in enumerate(args):
            yield from self._call(i, n, number, own, start + number * share, start + (number + 1) * share)
        yield self._complete("user_annotation", operation.name, start + len(args) * share, end, self._pid, _MAIN)
        yield from self._launched(i, n, operation.kernel, "cudaLaunchKernelExC", call, end)

    def _call(self, i: int, n: int, number: int, args: str, start: int, end: int) -> Iterator[str]:
        """The host's side of sending or receiving."""
        operation = self._program[n]
        part = operation.parts[number]
        handle = record_function(self._job, i, n) + 2 * number
        name = "c10d::send" if part.sends else "c10d::recv_"
        yield self._host(name, start, end, handle, peer_inputs(operation, part))
        # PyTorch names the peer here, too, as if it were the rank itself.
        recorded = f'{args}, "Rank": {part.peer}'
        yield self._host("record_param_comms", start + (end - start) // 4, end, handle + 1, recorded)

    def _title(self, part: MessageSide) -> str:
        own = self._by_kind["pipeline_parallel"].ranks.index(self._rank)
        return f"nccl:send {own}->{part.peer}" if part.sends else f"nccl:recv {own}<-{part.peer}"

    def _launched(
        self, i: int, n: int, kernel: str, launch: str, start: int, end: int, args: str = ""
    ) -> Iterator[str]:
        number = next(self._numbers)
        category = "gpu_memcpy" if kernel.startswith("Memcpy") else "kernel"
        tid = self._streams[self._program[n].runs_on]
        own = f'"device": {self._device}, "stream": {tid}, "correlation": {number}'
        own += f", {args}" if args else ""
        at = int(self._device_start[i, n])
        yield self._runtime(launch, start, end, f'"correlation": {number}')
        yield self._complete(category, kernel, at, int(self._device_end[i, n]), self._device, tid, own)
        yield self._flow("s", number, self._pid, _MAIN, start)
        yield self._flow("f", number, self._device, tid, at)

    def _host(self, name: str, start: int, end: int, handle: int, args: str = "") -> str:
        number = f'"External id": {next(self._numbers)}, "Record function id": {handle}'
        return self._complete("cpu_op", name, start, end, self._pid, _MAIN, f"{number}, {args}" if args else number)

    def _runtime(self, name: str, start: int, end: int, args: str = "") -> str:
        return self._complete("cuda_runtime", name, start, end, self._pid, _MAIN, args)

    def _complete(self, category: str, name: str, start: int, end: int, pid: int, tid: int, args: str = "") -> str:
        return (
            f'{{"ph": "X", "cat": "{category}", "name": {json.dumps(name)}, "pid": {pid}, "tid": {tid}, '
            f'"ts": {_microseconds(start)}, "dur": {_microseconds(end - start)}, "args": {{{args}}}}}'
        )

    def _flow(self, phase: str, number: int, pid: int, tid: int, at: int) -> str:
        bound = ', "bp": "e"' if phase == "f" else ""
        return (
            f'{{"ph": "{phase}", "id": {number}, "pid": {pid}, "tid": {tid}, "ts": {_microseconds(at)}, '
            f'"cat": "ac2g", "name": "ac2g"{bound}}}'
        )


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"
