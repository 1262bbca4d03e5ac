"""XPlane files as JAX on GPUs writes them. In: a job that was run. Out: the bytes of `rankR.xplane.pb`, a file a rank.

By xplane.proto of OpenXLA: a plane a device with a line a stream, and a plane of the host's threads; a launch and its
work share a correlation. A file is that of one process of `jax.distributed` that drives one device. Steps are what
`StepTraceAnnotation` leaves, events with a `step_num`. Not written: groups and sizes of collectives, HLO modules.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from traceforge.synth.kineto import trace_text
from traceforge.synth.scenario import SimulatedJob
from traceforge.synth.wire import message_field, number_field

_START_NS = 1_735_689_600_000_000_000
_PS = 1000
_CORRELATION, _PROFILE_START, _STEP_NUMBER = 1, 2, 3
_STATS = {"correlation_id": _CORRELATION, "profile_start_time": _PROFILE_START, "step_num": _STEP_NUMBER}
_STEP = "ProfilerStep#"
_DRIVER_CALLS = {"cudaLaunchKernelExC": "cuLaunchKernelEx", "cudaFree": "cuMemFree_v2"}
_PYTORCH_CALLS = ("record_param_comms", "c10d::")
_DIRECTIONS = {"HtoD": "MemcpyH2D", "DtoH": "MemcpyD2H", "DtoD": "MemcpyD2D"}

Event = Mapping[str, Any]


def xplane_bytes(job: SimulatedJob, rank: int) -> bytes:
    """The file of one rank, not compressed."""
    trace = json.loads(trace_text(job, rank), parse_float=Decimal)
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    on_device = [event for event in events if "stream" in event["args"]]
    # Nothing of JAX says on the host what a collective is.
    on_host = [one for one in events if "stream" not in one["args"] and not one["name"].startswith(_PYTORCH_CALLS)]
    device = rank % job.scenario.cluster.devices
    planes = [
        _plane(f"/device:GPU:{device}", _streams(on_device)),
        # Devices of the node that this process leaves alone have planes without lines.
        *(_plane(f"/device:GPU:{one}", {}) for one in range(job.scenario.cluster.devices) if one != device),
        _plane("/host:CPU", {"python": on_host}),
        message_field(1, _text(2, "Task Environment") + _stat_names() + _stat(6, _PROFILE_START, _START_NS)),
    ]
    return b"".join(planes) + _text(4, job.scenario.cluster.host_of(rank))


def _streams(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Events by the name of their line."""
    found: dict[str, list[Event]] = {}
    for event in events:
        what = "Kernel"
        if event["cat"] == "gpu_memcpy":
            what = next(said for word, said in _DIRECTIONS.items() if word in event["name"])
        found.setdefault(f"Stream #{event['args']['stream']}({what})", []).append(event)
    return found


def _plane(name: str, lines: Mapping[str, Sequence[Event]]) -> bytes:
    names = dict.fromkeys(_name(event) for events in lines.values() for event in events)
    numbers = {text: number for number, text in enumerate(names, start=1)}
    data = _text(2, name)
    for number, (line, events) in enumerate(lines.items(), start=1):
        start = min(_start_ns(event) for event in events)
        said = b"".join(message_field(4, _event(event, numbers[_name(event)], start)) for event in events)
        data += message_field(3, number_field(1, number) + _text(2, line) + number_field(3, start) + said)
    entries = (number_field(1, number) + _text(2, text) for text, number in numbers.items())
    tables = (message_field(4, number_field(1, n) + message_field(2, one)) for n, one in enumerate(entries, start=1))
    return message_field(1, data + b"".join(tables) + _stat_names())


def _event(event: Event, name: int, line_start_ns: int) -> bytes:
    offset, lasts = (_start_ns(event) - line_start_ns) * _PS, int(event["dur"] * 1000) * _PS
    # As proto3 writes it: zeros are left out.
    times = (number_field(2, offset) if offset else b"") + (number_field(3, lasts) if lasts else b"")
    data = number_field(1, name) + times
    if "correlation" in event["args"]:
        data += _stat(4, _CORRELATION, event["args"]["correlation"])
    if event["name"].startswith(_STEP):
        data += _stat(4, _STEP_NUMBER, int(event["name"].removeprefix(_STEP)))
    return data


def _name(event: Event) -> str:
    """What XPlane calls an event: all steps have one name, and calls are those of the driver."""
    name = str(event["name"])
    if event["cat"] == "cuda_runtime":
        return _DRIVER_CALLS.get(name, f"cu{name.removeprefix('cuda')}")
    return "train" if name.startswith(_STEP) else name


def _start_ns(event: Event) -> int:
    """Since the start of the profile."""
    return int(event["ts"] * 1000)


def _stat_names() -> bytes:
    entries = ((number, number_field(1, number) + _text(2, name)) for name, number in _STATS.items())
    return b"".join(message_field(5, number_field(1, number) + message_field(2, one)) for number, one in entries)


def _stat(field: int, name: int, value: int) -> bytes:
    """A statistic: a signed number, as TraceMe and CUPTI's collector write them."""
    return message_field(field, number_field(1, name) + number_field(4, value))


def _text(field: int, text: str) -> bytes:
    return message_field(field, text.encode())
