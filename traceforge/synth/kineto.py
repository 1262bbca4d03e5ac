"""Kineto traces. In: a job that was run. Out: the JSON text of each rank's trace, as PyTorch 2.6 to 2.13 write it.

Host operations with their driver calls, kernels tied to these by correlation and by flow, collectives with their
arguments, steps. Timestamps are µs with three decimals, relative to baseTimeNanoseconds. Not written: Python stacks,
memory events, the second copy of annotations on the device.
"""

import json
from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.cluster import Group
from traceforge.synth.program import ProgramOperation
from traceforge.synth.scenario import Scenario, SimulatedJob

_BASE_NS = 1_735_689_600_000_000_000
_STREAMS = {"compute": 7, "tensor_parallel": 16, "data_parallel": 20}
_MAIN = 0


def group_arguments(scenario: Scenario, group: Group) -> dict[str, object]:
    """How arguments name a process group; groups are numbered alike on all ranks."""
    known = [(one.kind, one.ranks) for one in scenario.cluster.groups()]
    return {
        "Process Group Name": str(1 + known.index((group.kind, group.ranks))),
        "Process Group Description": "mesh_tp" if group.kind == "tensor_parallel" else "mesh_dp",
        "Process Group Ranks": str(list(group.ranks)),
    }


def record_function(job: SimulatedJob, iteration: int, place: int) -> int:
    """Number of the record function of an operation; the one within a collective has the next number."""
    return 2 * (iteration * len(job.program) + place) + 1


def trace_text(job: SimulatedJob, rank: int) -> str:
    """The trace file of one rank."""
    return _Writer(job, rank).text()


class _Writer:
    def __init__(self, job: SimulatedJob, rank: int) -> None:
        self._job, self._rank = job, rank
        self._device = rank % job.scenario.cluster.devices
        self._pid = 1_000 + rank
        events = job.events
        self._host_start, self._call_start = self._read(events.host_start_ns), self._read(events.call_start_ns)
        self._call_end = self._read(events.call_end_ns)
        self._device_start, self._device_end = self._read(events.device_start_ns), self._read(events.device_end_ns)
        self._numbers = count(1)
        self._groups = [group for group in job.scenario.cluster.groups() if rank in group.ranks]
        self._sequence = {group.kind: count(1) for group in self._groups}
        self._args = {n: self._collective_args(op) for n, op in enumerate(job.program) if op.action == "collective"}

    def _read(self, true_ns: NDArray[np.float64]) -> NDArray[np.int64]:
        """What this rank's clock shows; the last axis, the rank, is gone."""
        # The first event lies some seconds after the base, on every clock.
        shown: NDArray[np.int64] = self._job.clocks.read(true_ns)[..., self._rank] + 10_000_000_000
        return shown

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

    def _collective_args(self, operation: ProgramOperation) -> str:
        group = next(one for one in self._groups if one.kind == operation.group)
        args = {
            "Collective name": "allreduce", "In msg nelems": operation.size_bytes // 2,
            "Out msg nelems": operation.size_bytes // 2, "Group size": len(group.ranks), "dtype": "BFloat16",
            "In split size": "[]", "Out split size": "[]", **group_arguments(self._job.scenario, group),
        }  # fmt: skip
        return json.dumps(args)[1:-1]

    def _events(self) -> Iterator[str]:
        yield from self._names()
        events = self._job.events
        starts, ends = self._read(events.step_start_ns), self._read(events.step_end_ns)
        for i in range(len(starts)):
            step = f"ProfilerStep#{self._job.scenario.first_step + i}"
            yield self._complete("user_annotation", step, int(starts[i]), int(ends[i]), self._pid, _MAIN)
            yield from self._stalls(i)
            for n, operation in enumerate(self._job.program):
                yield from self._operation(i, n, operation)

    def _names(self) -> Iterator[str]:
        names = [
            ("process_name", self._pid, 0, "python"),
            ("process_labels", self._pid, 0, "CPU"),
            ("process_name", self._device, 0, "python"),
            ("process_labels", self._device, 0, f"GPU {self._device}"),
        ]
        names += [("thread_name", self._device, stream, f"stream {stream}") for stream in _STREAMS.values()]
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
            case "synchronise":
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
        args = f'{self._args[n]}, "Seq": {next(self._sequence[group])}'
        handle = record_function(self._job, i, n)
        yield self._host(operation.name, start, end, handle)
        yield self._host("record_param_comms", start + (call - start) // 2, end, handle + 1, args)
        yield from self._launched(i, n, operation.kernel, "cudaLaunchKernelExC", call, end, args, group)

    def _launched(
        self, i: int, n: int, kernel: str, launch: str, start: int, end: int, args: str = "", stream: str = "compute"
    ) -> Iterator[str]:
        number = next(self._numbers)
        category = "gpu_memcpy" if kernel.startswith("Memcpy") else "kernel"
        tid = _STREAMS[stream]
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
