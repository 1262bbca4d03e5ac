"""One process of a rocprofv3 file. In: its decoded records. Out: rows of raw.profile, raw.event and raw.track.

Idea: each list of records is decoded when its turn comes, and handed over in bounded pieces under the names of the
file's own tables. Not handled: allocations, scratch memory, page migration (counted as not read).
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

import msgspec
import polars as pl

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_repair import MEANINGS as REPAIRS
from traceforge.reading.range_names import range_said
from traceforge.reading.timeline_rows import TimelineRows
from traceforge.records import Batch, SourceSummary
from traceforge.sources.rocprof.layout import Agent, BufferRecord, DispatchInfo, ProfiledProcess

KIND = "rocprof"
_PIECE_ROWS = 122_880
_INT64 = 2**63
_COPY = {"HOST_TO_HOST": "HtoH", "HOST_TO_DEVICE": "HtoD", "DEVICE_TO_HOST": "DtoH", "DEVICE_TO_DEVICE": "DtoD"}
# Lists of records, and the category of what they hold.
_CALLS = {"hip_api": "cuda_runtime", "hsa_api": "cuda_driver", "rccl_api": "cpu_op", "marker_api": "user_annotation"}
_READ = frozenset({"kernel_dispatch", "memory_copy", *_CALLS})
_GPU = 2
_DESCRIPTOR_SUFFIX = re.compile(r"\.kd$")
_MEANINGS = {
    "no_events": ("warning", "the file holds no dispatch, copy or call"),
    "event_without_timestamp": ("warning", "a record without readable start and end is not kept"),
    "negative_duration": ("warning", "a record that ends before it starts was given the duration 0"),
    "no_launches": ("info", "the file holds no HIP calls: what the host did is not recorded (rocprofv3 --hip-trace)"),
    "not_read": ("info", "records of the file that nothing here reads"),
    **REPAIRS,
}
Said = tuple[str, str, str, str, int | None, int | None]
"""Category, name, process, thread, device and stream of an event."""


class ProcessReading:
    """What is gathered while one process is read.

    Args:
        repairs: number of repairs of the whole file, by code.
    """

    def __init__(self, process: ProfiledProcess, emit: Callable[[Batch], None], repairs: Mapping[str, int]) -> None:
        self._process = process
        self._emit = emit
        self._rows = TimelineRows(emit)
        self._issues = IssueLog(_MEANINGS, f"{KIND}_")
        for code, count in repairs.items():
            self._issues.add(code, count)
        gpus = [agent for agent in process.agents if agent.type == _GPU]
        self._gpus = {agent.id.handle: number for number, agent in enumerate(gpus)}
        self._agents = {agent.id.handle: agent for agent in gpus}
        self._kernels = {one.kernel_id: one.formatted_kernel_name or one.kernel_name for one in process.kernel_symbols}
        self._messages = {one.key: one.value for one in process.strings.marker_api}
        self._used: Counter[int] = Counter()

    def run(self) -> SourceSummary:
        """Hand over all rows, and say what was lost."""
        for name in ("hip_api", "hsa_api", "rccl_api", "marker_api"):
            self._add(name, partial(self._called, name))
        self._issues.add("no_launches", int(not self._rows.count))
        self._add("kernel_dispatch", self._dispatch)
        self._add("memory_copy", self._copy)
        self._rows.finish()
        left = {name: len(_list_of(raw)) for name, raw in self._process.buffer_records.items() if name not in _READ}
        held = [f"{name} {count}" for name, count in left.items() if count]
        self._issues.add("not_read", sum(left.values()), because=", ".join(held))
        self._emit(Batch("raw.profile", self._profile()))
        self._issues.add("no_events", int(not self._rows.count))
        count, host = self._rows.count, self._process.metadata.node.hostname
        lost = self._issues.lost_events
        return SourceSummary(KIND, None, host, None, count + lost, count, tuple(self._issues))

    def _add(self, name: str, said: Callable[[BufferRecord], Said]) -> None:
        """Hand over the records of one list. `said` gives category, name, process, thread, device and stream."""
        found = self._records(name)
        while records := list(islice(found, _PIECE_ROWS)):
            rows = [
                ("X", *said(one), one.start_timestamp, max(one.end_timestamp - one.start_timestamp, 0),
                 one.correlation_id.internal or None, one.bytes)
                for one in records
            ]  # fmt: skip
            texts = dict.fromkeys(("phase", "category", "name", "process", "thread"), pl.String)
            numbers = ("device", "stream", "raw_start_ns", "duration_ns", "correlation", "size_bytes")
            self._rows.add(pl.DataFrame(rows, schema={**texts, **dict.fromkeys(numbers, pl.Int64)}, orient="row"))

    def _records(self, name: str) -> Iterator[BufferRecord]:
        """Records of a list that have times."""
        for record in self._decoded(self._process.buffer_records.get(name, msgspec.Raw(b"[]"))):
            within = all(abs(value) < _INT64 for value in (record.correlation_id.internal, record.bytes or 0))
            if not (0 <= record.start_timestamp < _INT64 and 0 <= record.end_timestamp < _INT64 and within):
                self._issues.add("event_without_timestamp", lost_events=1)
                continue
            self._issues.add("negative_duration", int(record.end_timestamp < record.start_timestamp))
            yield record

    def _decoded(self, listed: msgspec.Raw) -> Iterator[BufferRecord]:
        """Records of a list; those of another form are counted, one by one."""
        try:
            yield from _RECORDS.decode(listed)
            return
        except msgspec.ValidationError:
            pass
        for one in _list_of(listed):
            try:
                yield _RECORD.decode(one)
            except msgspec.ValidationError:
                self._issues.add("event_without_timestamp", lost_events=1)

    def _called(self, name: str, record: BufferRecord) -> Said:
        category, said = _CALLS[name], self._operation(record)
        if name == "marker_api" and (text := self._messages.get(record.correlation_id.internal)):
            category, said, *_ = range_said(text)
        return category, said, str(self._process.metadata.pid), str(record.thread_id), None, None

    def _operation(self, record: BufferRecord) -> str:
        """Name of what a record is of, by the file's own table."""
        kinds = self._process.strings.buffer_records
        operations = kinds[record.kind].operations if 0 <= record.kind < len(kinds) else []
        return operations[record.operation] if 0 <= record.operation < len(operations) else "call"

    def _dispatch(self, record: BufferRecord) -> Said:
        info = record.dispatch_info or DispatchInfo()
        name = _DESCRIPTOR_SUFFIX.sub("", self._kernels.get(info.kernel_id, "")) or "kernel"
        # Streams are 0 where HIP was not traced; then queues tell what runs at once.
        stream = (record.stream_id.handle if record.stream_id else 0) or info.queue_id.handle
        return ("kernel", name, *self._place(info.agent_id.handle, stream))

    def _copy(self, record: BufferRecord) -> Said:
        direction = _COPY.get(self._operation(record).removeprefix("MEMORY_COPY_"), "unknown")
        ends = [one.handle for one in (record.dst_agent_id, record.src_agent_id) if one is not None]
        agent = next((handle for handle in ends if handle in self._gpus), ends[0] if ends else 0)
        stream = record.stream_id.handle if record.stream_id else 0
        return ("gpu_memcpy", f"Memcpy {direction}", *self._place(agent, stream))

    def _place(self, agent: int, stream: int) -> tuple[str, str, int | None, int | None]:
        device = self._gpus.get(agent)
        if device is not None:
            self._used[agent] += 1
        fits = stream if 0 <= stream < 2**31 else None
        return ("device" if device is None else str(device), f"stream {stream}", device, fits)

    def _profile(self) -> pl.DataFrame:
        own = [self._agents[handle] for handle, _ in self._used.most_common(1)]
        device = [
            {"id": self._gpus[agent.id.handle], "name": agent.product_name, "numSms": agent.cu_count} | _memory(agent)
            for agent in own
        ]
        row = {
            "base_time_ns": 0,
            "host_name": self._process.metadata.node.hostname,
            "device_name": own[0].product_name if own else None,
            "metadata": json.dumps({"deviceProperties": device, "process": self._process.metadata.pid}),
        }
        texts = dict.fromkeys(("host_name", "device_name", "metadata"), pl.String)
        return pl.DataFrame([row], schema={"base_time_ns": pl.Int64, **texts})


_RECORD = msgspec.json.Decoder(BufferRecord)
_RECORDS = msgspec.json.Decoder(list[BufferRecord])
_ANY_LIST = msgspec.json.Decoder(list[msgspec.Raw])


def _list_of(raw: msgspec.Raw) -> Sequence[msgspec.Raw]:
    try:
        return _ANY_LIST.decode(raw)
    except msgspec.MsgspecError:
        return []


def _memory(agent: Agent) -> dict[str, int]:
    sizes = [size for bank in agent.mem_banks if isinstance(size := bank.get("size_in_bytes"), int)]
    return {"totalGlobalMem": sum(sizes)} if sizes else {}
