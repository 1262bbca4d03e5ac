"""Perfetto traces as PyTorch's CUPTI observer writes them. In: a job that was run. Out: the bytes of each rank's file.

Written by the source of that writer (`cuspy_pftrace.cpp`, August 2026), with a wire encoder of its own: a snapshot of
clocks, tracks, interned names, all begins of a group before all its ends, and a render stage for each kernel and copy.
It says what the JSON of the run says, except ranks and groups beside the events; kernels of collectives have NCCL's
descriptor. Not written: GPU counters, launch sizes, dependencies within graphs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from traceforge.synth.kineto import trace_text
from traceforge.synth.scenario import SimulatedJob
from traceforge.synth.wire import message_field, number_field

_BASE_NS = 1_735_689_600_000_000_000
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_BEGIN, _END = 1, 2
_GROUPS = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
_STAGES = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}
_FUNCTIONS = {"allreduce": "AllReduce", "_allgather_base": "AllGather", "_reduce_scatter_base": "ReduceScatter"}
_LARGE_BYTES = 1 << 20  # from here on the job's NCCL is taken to prefer Simple
_CHANNELS = 16

Event = Mapping[str, Any]


def pftrace_bytes(job: SimulatedJob, rank: int) -> bytes:
    """The file of one rank, not compressed."""
    trace = json.loads(trace_text(job, rank), parse_float=Decimal)
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    return _Trace(events, rank).data()


class _Trace:
    def __init__(self, events: Sequence[Event], rank: int) -> None:
        self._host = [event for event in events if event["cat"] in _GROUPS]
        self._device = [event for event in events if event["cat"] in _STAGES]
        self._names = _numbered(event["name"] for event in events)
        self._categories = _numbered(event["cat"] for event in self._host)
        lanes = [f"[{event['tid']:02d}] stream {event['tid']}" for event in self._device]
        self._specifications = _numbered([*_STAGES.values(), *lanes])
        self._rank = rank
        self._event_ids = {event["args"]["correlation"]: number for number, event in enumerate(self._device, start=1)}

    def data(self) -> bytes:
        packets = [self._clocks(), *self._tracks(), self._interned()]
        for category in _GROUPS:
            group = [event for event in self._host if event["cat"] == category]
            packets += [self._begin(event) for event in group]
            packets += [self._slice(_END, _end_ns(event), event, b"", number_field(13, 0)) for event in group]
        packets += [self._stage(event) for event in self._device]
        return b"".join(message_field(1, packet) for packet in packets)

    def _clocks(self) -> bytes:
        clocks = [message_field(1, number_field(1, clock) + number_field(2, _BASE_NS)) for clock in (6, 1)]
        return number_field(8, _BASE_NS) + number_field(10, 1) + message_field(6, b"".join(clocks))

    def _tracks(self) -> Iterable[bytes]:
        pids = sorted({event["pid"] for event in self._host})
        for pid in pids:
            process = number_field(1, pid) + message_field(6, b"python")
            yield message_field(60, number_field(1, _uuid(pid, None)) + message_field(3, process))
        for pid, tid in sorted({(event["pid"], event["tid"]) for event in self._host}):
            thread = number_field(1, pid) + number_field(2, tid) + message_field(5, b"thread %d" % tid)
            yield message_field(
                60, number_field(1, _uuid(pid, tid)) + number_field(5, _uuid(pid, None)) + message_field(4, thread)
            )

    def _interned(self) -> bytes:
        tables = [(2, self._names), (1, self._categories), (24, self._specifications)]
        entries = [
            message_field(field, number_field(1, iid) + message_field(2, name.encode()))
            for field, table in tables
            for name, iid in table.items()
        ]
        kernels = [event["name"] for event in self._device if event["cat"] == "kernel"]
        entries += [
            message_field(1000, number_field(1, self._names[name]) + message_field(3, name.encode()))
            for name in dict.fromkeys(kernels)
        ]
        return number_field(10, 1) + number_field(13, _STATE_CLEARED) + message_field(12, b"".join(entries))

    def _begin(self, event: Event) -> bytes:
        named = number_field(3, self._categories[event["cat"]]) + number_field(10, self._names[event["name"]])
        named += b"".join(message_field(4, _annotation(key, value)) for key, value in event["args"].items())
        correlation = event["args"].get("correlation")
        if correlation in self._event_ids:
            named += message_field(3000, number_field(1, self._event_ids[correlation]))
        return self._slice(_BEGIN, _start_ns(event), event, named, number_field(13, _NEEDS_STATE))

    def _slice(self, kind: int, at_ns: int, event: Event, named: bytes, flags: bytes) -> bytes:
        track = number_field(9, kind) + number_field(11, _uuid(event["pid"], event["tid"]))
        return number_field(8, at_ns) + number_field(10, 1) + flags + message_field(11, track + named)

    def _stage(self, event: Event) -> bytes:
        lane = f"[{event['tid']:02d}] stream {event['tid']}"
        extra = {"process_name": "python", **_descriptor(event["args"])}
        if "bytes" in event["args"]:
            extra["bytes"] = str(event["args"]["bytes"])
        stage = b"".join(
            [
                number_field(1, self._event_ids[event["args"]["correlation"]]),
                number_field(2, _end_ns(event) - _start_ns(event)),
                *(
                    message_field(6, message_field(1, key.encode()) + message_field(2, value.encode()))
                    for key, value in extra.items()
                ),
                number_field(11, event["args"]["device"]),
                number_field(13, self._specifications[lane]),
                number_field(14, self._specifications[_STAGES[event["cat"]]]),
                number_field(20, self._names[event["name"]]),
            ]
        )
        return (
            number_field(8, _start_ns(event))
            + number_field(10, 1)
            + number_field(13, _NEEDS_STATE)
            + message_field(53, stage)
        )


def choice_of(size_bytes: int) -> tuple[str, str, int]:
    """Algorithm, protocol and channels of a collective of a size in a generated job."""
    return ("RING", "SIMPLE", _CHANNELS) if size_bytes >= _LARGE_BYTES else ("TREE", "LL", _CHANNELS // 2)


def _descriptor(args: Mapping[str, Any]) -> dict[str, str]:
    """NCCL's words for a collective; nothing of other kernels."""
    function = _FUNCTIONS.get(args.get("Collective name", ""))
    if function is None:
        return {}
    count = max(args["In msg nelems"], args["Out msg nelems"])
    algorithm, protocol, channels = choice_of(2 * count)
    said = {
        "func": function, "datatype": "ncclBfloat16", "algo": algorithm, "proto": protocol, "count": count, "root": 0,
        "n_channels": channels, "n_warps": 16, "seq": args["Seq"], "rank": 0,
    }  # fmt: skip
    return {key: str(value) for key, value in said.items()}


def _numbered(texts: Iterable[str]) -> dict[str, int]:
    return {text: number for number, text in enumerate(dict.fromkeys(texts), start=1)}


def _uuid(pid: int, tid: int | None) -> int:
    return (pid << 24) + (0 if tid is None else tid + 1) + 1


def _start_ns(event: Event) -> int:
    return int(event["ts"] * 1000) + _BASE_NS


def _end_ns(event: Event) -> int:
    return _start_ns(event) + int(event["dur"] * 1000)


def _annotation(key: str, value: object) -> bytes:
    """A DebugAnnotation: a name and a typed value."""
    return message_field(10, key.encode()) + _value(value)


def _value(value: object) -> bytes:
    if isinstance(value, bool):
        return number_field(2, int(value))
    if isinstance(value, int):
        return number_field(4, value)
    if isinstance(value, list):
        return b"".join(message_field(12, _value(item)) for item in value)
    return message_field(6, str(value).encode())
