"""One device of an XPlane file. In: a path, perhaps the name of a device. Out: rows of raw.profile and raw.event.

Idea: one process of JAX or TensorFlow drives all devices of its host; each device is what a rank is elsewhere. Lines of
streams (GPU) and of XLA operations (TPU) are device time; lines that the profiler derived from them are not. A stream
may hold kernels, copies and memory sets in turn, which their statistics tell apart. Host calls go to the device whose
work they launched, steps (`StepTraceAnnotation`) to every device of the process, and all other host events to the first
one.
A TPU's `barrier-cores`, in which it waits for the other chips, is a barrier that all of them meet in.
Not handled: a file above 512 MiB, as it is read whole; operations inside fused kernels; SparseCores (counted).
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.errors import InputUnusableError
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.stream import read_whole
from traceforge.reading.timeline_rows import COMPLETE, TimelineRows
from traceforge.reading.wire import WireDamageError
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.xplane.nesting import innermost
from traceforge.sources.xplane.space import Line, Plane, is_time, planes_of
from traceforge.sources.xplane.streams import stream_of, work_of

KIND = "xplane"
_MOST_BYTES = 512 * 1024**2
_DEVICE = re.compile(r"^/device:(?P<kind>[A-Z]+):(?P<number>\d{1,6})$")
_PART_OF_DEVICE = re.compile(r"^(?P<device>/device:[A-Z]+:\d{1,6}) \w")  # such as `/device:TPU:0 SparseCore 1`
_HOSTS = ("/host:CPU", "/host:CUPTI", "/host:ROCTRACER")
_LAUNCH = re.compile(r"^(?:cu(?:da)?|hip)[A-Z]")
# Python's own functions, as JAX's tracer names them, and those of them that are the profiler's: no work of the program.
_PYTHON, _PROFILER = "$", re.compile(r"^\$profiler(?:_v2)?\.py:\d+ (?:start|stop)(?:_trace)?$")
_OPERATION = re.compile(r"^%?([^\s=]+) = ")
# The end of an asynchronous copy is the time that the core waits for it.
_XLA_COPY = re.compile(r"^(?:async-)?copy(?:-start|-done)?(?:\.\d+)?$")
_OPERATIONS = "XLA Ops"
_TPU_LINES = {_OPERATIONS: "kernel", "XLA Modules": "user_annotation", "Steps": "user_annotation"}
# What a core does beside operations; in the barrier it waits for the other chips.
_TPU_WAITS, _BARRIER, _WAIT_STREAM = "XLA TraceMe", "barrier-cores", 1
_MEANINGS = {
    "no_events": ("warning", "the file holds no work of a device"),
    "derived_lines": ("info", "lines that the profiler derived from others, or that nothing here reads"),
    "profilers_own": ("info", "calls that start and stop the profiler are not kept: they are no work of the program"),
    "loops": (
        "info",
        "loops, branches and calls contain other operations: what runs in them counts as itself, the rest as theirs",
    ),
    "sums": ("info", "events that stand for many occurrences have no time of their own and are not kept"),
    "no_profile_start": ("info", "the file states no start of the profile: times count from an unknown moment"),
    "out_of_range": ("warning", "a line whose start is no time counts from the start of the profile"),
    "no_host": (
        "info",
        "the file states no host: only a rank in its name or folder (rank0, rank1, ...) joins it to files of others",
    ),
    "negative_duration": ("warning", "an event that ends before it starts was given the duration 0"),
}


def part_names(path: Path) -> list[str]:
    """Names of the devices that did something, as `read_part` takes them.

    Raises:
        InputUnusableError: the file is damaged or too large.
    """
    planes, _ = _planes(path, lambda _count: None)
    try:
        return list(_devices(planes))
    except WireDamageError as error:
        raise _damaged(path, error) from error


def read_part(path: Path, name: str | None, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read one device, or the only one.

    Raises:
        InputUnusableError: the file is damaged or too large.
    """
    planes, host = _planes(path, options.report_progress)
    try:
        return _Reading(planes, name, emit).run(host)
    except WireDamageError as error:
        raise _damaged(path, error) from error


def _planes(path: Path, report_progress: Callable[[int], None]) -> tuple[list[Plane], str | None]:
    try:
        return planes_of(read_whole(path, _MOST_BYTES, report_progress))
    except WireDamageError as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: WireDamageError) -> InputUnusableError:
    hint = "copy the file again as binary: a text encoding on its way destroys it"
    return InputUnusableError(f"the file is no sound protobuf: {error}", where=str(path), hint=hint)


def _devices(planes: list[Plane]) -> dict[str, Plane]:
    """Devices that did something, by name; a name that comes again is numbered."""
    found: dict[str, Plane] = {}
    for plane in planes:
        if _DEVICE.match(plane.name) and plane.line_names():
            times = sum(other.name == plane.name for other in found.values())
            found[f"{plane.name}, plane {times + 1}" if times else plane.name] = plane
    return found


class _Reading:
    """What is gathered while one device is read."""

    def __init__(self, planes: list[Plane], name: str | None, emit: Callable[[Batch], None]) -> None:
        devices = _devices(planes)
        self._planes = planes
        self._device = next((plane for own, plane in devices.items() if name in (None, own)), None)
        self._is_first = self._device is None or self._device is next(iter(devices.values()))
        match = _DEVICE.match(self._device.name) if self._device else None
        self._number = int(match["number"]) if match else 0
        self._kind = match["kind"] if match else ""
        self._emit = emit
        self._rows = TimelineRows(emit)
        self._issues = IssueLog(_MEANINGS, f"{KIND}_")
        self._correlation: set[int] = set()

    def run(self, host: str | None) -> SourceSummary:
        """Hand over all rows, and say what was lost."""
        environment = next((plane.stats() for plane in self._planes if plane.name == "Task Environment"), {})
        start = environment.get("profile_start_time", 0)
        base_ns = start if isinstance(start, int) and is_time(start) else 0
        self._issues.add("no_profile_start", int(not base_ns))
        self._issues.add("no_host", int(host is None))
        derived: Counter[str] = Counter()
        # What lines of operations say of a device with streams, its streams say themselves.
        has_streams = self._device is not None and any(map(stream_of, self._device.line_names()))
        for line in self._device.lines() if self._device else ():
            self._issues.add("sums", line.sums, lost_events=line.sums)
            if line.name == _TPU_WAITS and not has_streams:
                waits = np.array([name == _BARRIER for name in line.names], np.bool_)
                self._add_waits(_taken(line, waits), base_ns)
                line = _taken(line, ~waits)  # noqa: PLW2901 - the rest is counted as a line of its own
            is_read = has_streams and self._add_stream(line, base_ns)
            if not (is_read or (not has_streams and self._add_operations(line, base_ns))) and line.names:
                derived[line.name] += len(line.names)
        for plane in self._parts_of_device():
            derived |= {f"{plane.name} {line.name}": len(line.names) for line in plane.lines() if line.names}
        self._issues.add("derived_lines", derived.total(), because=", ".join(f"{n} {c}" for n, c in derived.items()))
        for plane in self._planes:
            if plane.name.startswith(_HOSTS):
                self._add_host(plane, base_ns)
        self._issues.add("out_of_range", sum(plane.odd_starts for plane in self._planes))
        self._rows.finish()
        self._issues.add("no_events", int(not self._rows.count))
        self._emit(Batch("raw.profile", self._profile(host, base_ns)))
        count, lost = self._rows.count, self._issues.lost_events
        return SourceSummary(KIND, None, host, None, count + lost, count, tuple(self._issues))

    def _parts_of_device(self) -> list[Plane]:
        """Planes of what else is on the device."""
        name = self._device.name if self._device else None
        found = [(plane, _PART_OF_DEVICE.match(plane.name)) for plane in self._planes]
        return [plane for plane, match in found if match and match["device"] == name]

    def _add_stream(self, line: Line, base_ns: int) -> bool:
        """Hand over a stream of a GPU; whether the line is one."""
        stream = stream_of(line.name)
        if stream is None:
            return False
        said = [work_of(name, line.details.get(place), stream) for place, name in enumerate(line.names)]
        self._correlation.update(line.correlation[line.correlation > 0].tolist())
        names, categories = [one.name for one in said], [one.category for one in said]
        frame = self._frame(line, names, categories, str(self._number), base_ns)
        sizes = pl.Series([one.size_bytes for one in said], dtype=pl.Int64)
        self._rows.add(self._on_device(frame, stream.number).with_columns(size_bytes=sizes))
        return True

    def _add_operations(self, line: Line, base_ns: int) -> bool:
        """Hand over operations, modules or steps of a TPU; whether the line is one of these."""
        category: str | list[str] | None = _TPU_LINES.get(line.name)
        if category is None:
            return False
        prefix = "step " if line.name == "Steps" else ""
        if line.name == _OPERATIONS:
            line, loops = innermost(line)
            self._issues.add("loops", loops)
        names = [f"{prefix}{_short(name)}" for name in line.names]
        if line.name == _OPERATIONS:
            category = ["gpu_memcpy" if _XLA_COPY.match(name) else "kernel" for name in names]
        frame = self._frame(line, names, category, str(self._number), base_ns)
        self._rows.add(self._on_device(frame, 0) if line.name == _OPERATIONS else frame)
        return True

    def _on_device(self, frame: pl.DataFrame, stream: int) -> pl.DataFrame:
        return frame.with_columns(device=pl.lit(self._number, dtype=pl.Int32), stream=pl.lit(stream, dtype=pl.Int32))

    def _add_waits(self, line: Line, base_ns: int) -> None:
        """Hand over what a TPU waits for other chips, as communication of the device."""
        frame = self._frame(line, line.names, "kernel", str(self._number), base_ns)
        self._rows.add(self._on_device(frame, _WAIT_STREAM))

    def _add_host(self, plane: Plane, base_ns: int) -> None:
        """Hand over launches of this device's work; steps; and all else if the process is counted here."""
        for number, line in enumerate(plane.lines()):
            if self._is_first:
                self._issues.add("sums", line.sums, lost_events=line.sums)
            is_launch = np.array([bool(_LAUNCH.match(name)) for name in line.names], np.bool_)
            is_python = np.array([name.startswith(_PYTHON) for name in line.names], np.bool_)
            is_profilers = np.array([bool(_PROFILER.match(name)) for name in line.names], np.bool_)
            own = np.isin(line.correlation, list(self._correlation)) & (line.correlation > 0)
            is_step = line.steps >= 0
            count = int(is_profilers.sum()) if self._is_first else 0
            self._issues.add("profilers_own", count, lost_events=count)
            kept = own | is_step | (self._is_first & ~(is_launch & (line.correlation > 0)) & ~is_profilers)
            categories = ["user_annotation", "cuda_runtime", "python_function"]
            kinds = np.select([is_step, is_launch, is_python], categories, "cpu_op")
            chosen = _taken(line, kept)
            names = [
                f"step {step}" if step >= 0 else name
                for name, step in zip(chosen.names, chosen.steps.tolist(), strict=True)
            ]
            thread = str(number) if plane.name == _HOSTS[0] else f"{plane.name} {number}"
            frame = self._frame(chosen, names, kinds[kept].tolist(), "host", base_ns, thread)
            self._rows.name_thread("host", thread, line.name)
            self._rows.add(frame)

    def _frame(
        self,
        line: Line,
        names: list[str],
        category: str | list[str],
        process: str,
        base_ns: int,
        thread: str | None = None,
    ) -> pl.DataFrame:
        """Events of a line; its name stands for the thread where that is not given."""
        lasts = line.ends_ns - line.starts_ns
        self._issues.add("negative_duration", int((lasts < 0).sum()))
        count = len(names)
        return pl.DataFrame(
            {
                "phase": pl.Series([COMPLETE] * count, dtype=pl.String),
                "category": pl.Series([category] * count if isinstance(category, str) else category, dtype=pl.String),
                "name": pl.Series(names, dtype=pl.String),
                "process": pl.Series([process] * count, dtype=pl.String),
                "thread": pl.Series([thread or line.name] * count, dtype=pl.String),
                "raw_start_ns": pl.Series(line.starts_ns + base_ns, dtype=pl.Int64),
                "duration_ns": pl.Series(np.maximum(lasts, 0), dtype=pl.Int64),
                "correlation": pl.Series(line.correlation, dtype=pl.Int64).replace(0, None),
            }
        )

    def _profile(self, host: str | None, base_ns: int) -> pl.DataFrame:
        said = self._device.stats() if self._device else {}
        name = " ".join(str(said[key]) for key in ("device_vendor", "device_type_string") if key in said) or self._kind
        device: dict[str, int | str] = {"id": self._number, "name": name}
        for ours, theirs in (("totalGlobalMem", "memory_size"), ("numSms", "core_count")):
            if isinstance(value := said.get(theirs), int):
                device[ours] = value
        row = {
            "base_time_ns": base_ns,
            "host_name": host,
            "device_name": name or None,
            "metadata": json.dumps({"deviceProperties": [device] if self._device else []}),
        }
        texts = dict.fromkeys(("host_name", "device_name", "metadata"), pl.String)
        return pl.DataFrame([row], schema={"base_time_ns": pl.Int64, **texts})


def _taken(line: Line, kept: NDArray[np.bool_]) -> Line:
    names = [name for name, keep in zip(line.names, kept.tolist(), strict=True) if keep]
    return Line(line.name, names, line.starts_ns[kept], line.ends_ns[kept], line.correlation[kept], line.steps[kept])


def _short(name: str) -> str:
    """An XLA operation by its own name, without its text."""
    found = _OPERATION.match(name)
    return (found[1] if found else name.removesuffix(".kd")) or "operation"
