"""One device of an XPlane file. In: a path, perhaps the name of a device. Out: rows of raw.profile and raw.event.

Idea: one process of JAX or TensorFlow drives all devices of its host; each device is what a rank is elsewhere. Lines of
streams (GPU) and of XLA operations (TPU) are device time; lines that the profiler derived from them are not. Host calls
go to the device whose work they launched, steps (`StepTraceAnnotation`) to every device of the process, and all other
host events to the first one.
A TPU's `barrier-cores`, in which it waits for the other chips, is a barrier that all of them meet in.
Not handled: a file above 512 MiB, as it is read whole; operations inside fused kernels.
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
from traceforge.sources.xplane.space import Line, Plane, planes_of

KIND = "xplane"
_MOST_BYTES = 512 * 1024**2
_DEVICE = re.compile(r"^/device:(?P<kind>[A-Z]+):(?P<number>\d{1,6})")
_STREAM = re.compile(r"^Stream #(?P<number>\d{1,9})\b.*\((?P<what>\w+)\)")
_COPY = re.compile(r"Mem(?:cpy|ory)(?P<from>[HD])(?:2|to)(?P<to>[HD])", re.IGNORECASE)
_LAUNCH = re.compile(r"^(?:cu(?:da)?|hip)[A-Z]")
_OPERATION = re.compile(r"^%?([^\s=]+) = ")
# The end of an asynchronous copy is the time that the core waits for it.
_XLA_COPY = re.compile(r"^(?:async-)?copy(?:-start|-done)?(?:\.\d+)?$")
_TPU_LINES = {"XLA Ops": "kernel", "XLA Modules": "user_annotation", "Steps": "user_annotation"}
# What a core does beside operations; in the barrier it waits for the other chips.
_TPU_WAITS, _BARRIER, _WAIT_STREAM = "XLA TraceMe", "barrier-cores", 1
_MEANINGS = {
    "no_events": ("warning", "the file holds no work of a device"),
    "derived_lines": ("info", "lines that the profiler derived from others, or that nothing here reads"),
    "sums": ("info", "events that stand for many occurrences have no time of their own and are not kept"),
    "no_profile_start": ("info", "the file states no start of the profile: times count from an unknown moment"),
    "negative_duration": ("warning", "an event that ends before it starts was given the duration 0"),
}


def part_names(path: Path) -> list[str]:
    """Names of the devices that did something, as `read_part` takes them.

    Raises:
        InputUnusableError: the file is damaged or too large.
    """
    planes, _ = _planes(path, lambda _count: None)
    try:
        return [plane.name for plane in _devices(planes)]
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


def _devices(planes: list[Plane]) -> list[Plane]:
    return [plane for plane in planes if _DEVICE.match(plane.name) and plane.line_names()]


class _Reading:
    """What is gathered while one device is read."""

    def __init__(self, planes: list[Plane], name: str | None, emit: Callable[[Batch], None]) -> None:
        devices = _devices(planes)
        self._planes = planes
        self._device = next((plane for plane in devices if name in (None, plane.name)), None)
        self._is_first = self._device is None or self._device is devices[0]
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
        base_ns = start if isinstance(start, int) else 0
        self._issues.add("no_profile_start", int(not base_ns))
        derived: Counter[str] = Counter()
        for line in self._device.lines() if self._device else ():
            self._issues.add("sums", line.sums, lost_events=line.sums)
            if line.name == _TPU_WAITS:
                waits = np.array([name == _BARRIER for name in line.names], np.bool_)
                self._add_waits(_taken(line, waits), base_ns)
                line = _taken(line, ~waits)  # noqa: PLW2901 - the rest is counted as a line of its own
            if not self._add_device_line(line, base_ns) and line.names:
                derived[line.name] += len(line.names)
        self._issues.add("derived_lines", derived.total(), because=", ".join(f"{n} {c}" for n, c in derived.items()))
        for plane in self._planes:
            if plane.name.startswith("/host:CPU"):
                self._add_host(plane, base_ns)
        self._rows.finish()
        self._issues.add("no_events", int(not self._rows.count))
        self._emit(Batch("raw.profile", self._profile(host, base_ns)))
        count, lost = self._rows.count, self._issues.lost_events
        return SourceSummary(KIND, None, host, None, count + lost, count, tuple(self._issues))

    def _add_device_line(self, line: Line, base_ns: int) -> bool:
        """Hand over a line of a device; whether it is one that says what the device did."""
        stream = _STREAM.match(line.name)
        if stream is None and line.name not in _TPU_LINES:
            return False
        copy = _COPY.search(stream["what"]) if stream else None
        category: str | list[str] = "gpu_memcpy" if copy else _TPU_LINES.get(line.name, "kernel")
        prefix = "step " if line.name == "Steps" else ""
        names = [f"{prefix}{_short(name)}" for name in line.names]
        if copy:
            names = [f"Memcpy {copy['from']}to{copy['to']}".replace("D2", "Dto")] * len(names)
        on_device = category != "user_annotation"
        if line.name == "XLA Ops":
            category = ["gpu_memcpy" if _XLA_COPY.match(name) else "kernel" for name in names]
        self._correlation.update(line.correlation[line.correlation > 0].tolist())
        frame = self._frame(line, names, category, str(self._number), line.name, base_ns)
        number = int(stream["number"]) if stream else 0
        places = [pl.lit(value if on_device else None, dtype=pl.Int32) for value in (self._number, number)]
        self._rows.add(frame.with_columns(places[0].alias("device"), places[1].alias("stream")))
        return True

    def _add_waits(self, line: Line, base_ns: int) -> None:
        """Hand over what a TPU waits for other chips, as communication of the device."""
        frame = self._frame(line, line.names, "kernel", str(self._number), line.name, base_ns)
        places = [pl.lit(value, dtype=pl.Int32) for value in (self._number, _WAIT_STREAM)]
        self._rows.add(frame.with_columns(places[0].alias("device"), places[1].alias("stream")))

    def _add_host(self, plane: Plane, base_ns: int) -> None:
        """Hand over launches of this device's work; steps; and all else if the process is counted here."""
        for number, line in enumerate(plane.lines()):
            if self._is_first:
                self._issues.add("sums", line.sums, lost_events=line.sums)
            is_launch = np.array([bool(_LAUNCH.match(name)) for name in line.names], np.bool_)
            own = np.isin(line.correlation, list(self._correlation)) & (line.correlation > 0)
            is_step = line.steps >= 0
            kept = own | is_step | (self._is_first & ~(is_launch & (line.correlation > 0)))
            kinds = np.select([is_step, is_launch], ["user_annotation", "cuda_runtime"], "cpu_op")
            chosen = _taken(line, kept)
            names = [
                f"step {step}" if step >= 0 else name
                for name, step in zip(chosen.names, chosen.steps.tolist(), strict=True)
            ]
            frame = self._frame(chosen, names, kinds[kept].tolist(), "host", str(number), base_ns)
            self._rows.name_thread("host", str(number), line.name)
            self._rows.add(frame)

    def _frame(
        self, line: Line, names: list[str], category: str | list[str], process: str, thread: str, base_ns: int
    ) -> pl.DataFrame:
        lasts = line.ends_ns - line.starts_ns
        self._issues.add("negative_duration", int((lasts < 0).sum()))
        count = len(names)
        return pl.DataFrame(
            {
                "phase": pl.Series([COMPLETE] * count, dtype=pl.String),
                "category": pl.Series([category] * count if isinstance(category, str) else category, dtype=pl.String),
                "name": pl.Series(names, dtype=pl.String),
                "process": pl.Series([process] * count, dtype=pl.String),
                "thread": pl.Series([thread] * count, dtype=pl.String),
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
