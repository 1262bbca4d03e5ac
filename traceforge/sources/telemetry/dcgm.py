"""Tables of `dcgmi dmon -e …`. In: a path. Out: raw.telemetry_* rows.

Idea: a header names the quantities by DCGM's short names and is repeated now and then; a row begins with its entity.
The tool prints no times: readings are numbered only, and nothing is said of when they were taken.
Not handled: instances of MIG and switches, which are counted; rows of quantities whose values hold spaces.
"""

import math
from collections.abc import Callable
from pathlib import Path

import polars as pl

from traceforge.reading.encoding import Utf8Stream
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.lines import bounded_lines
from traceforge.reading.stream import ByteStream
from traceforge.reading.telemetry_series import SAMPLE_SCHEMA, MeasuredThing, SeriesRows
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.telemetry.metrics import TelemetryMetric, dmon_metric

_BATCH_ROWS = 100_000
_LONGEST_LINE_BYTES = 64 * 1024
_HEADER, _OLD_HEADER = "#Entity", ["#", "Entity"]
_NOTHING = frozenset({"N/A", "-"})
_ISSUES = {
    "unreadable_line": ("warning", "rows that do not fit their header were left out"),
    "too_long_line": ("warning", "lines above 64 KiB were left out"),
    "columns_not_read": ("info", "columns that nothing here reads"),
    "no_value": ("info", "values that the device does not give (N/A)"),
    "no_time": ("info", "the tool prints no times: readings cannot be placed in the run"),
    "other_entities": ("info", "rows of entities that are no whole GPU were left out"),
    "too_many_series": ("warning", "readings of more series than any job has were left out"),
    "damaged_compression": ("warning", "the compressed data is damaged; what precedes it is read"),
}


def read_dmon(path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read a whole file."""
    reading = _DmonReading(emit)
    with ByteStream(path, options.report_progress) as stream:
        for line in bounded_lines(Utf8Stream(stream), _LONGEST_LINE_BYTES):
            reading.take(None if line is None else line.decode(errors="replace").split())
        if stream.damage:
            reading.issues.add("damaged_compression", because=stream.damage)
    reading.flush()
    reading.rows.finish()
    reading.issues.add("no_time", int(reading.rows.count > 0))
    lost = reading.issues.lost_events
    return SourceSummary("telemetry", None, None, None, reading.seen, reading.seen - lost, tuple(reading.issues))


class _DmonReading:
    """What is gathered while a file is read."""

    def __init__(self, emit: Callable[[Batch], None]) -> None:
        self.rows = SeriesRows(emit, "none")
        self.issues = IssueLog(_ISSUES, "telemetry_")
        self.seen = 0
        self._names: list[str] = []
        self._metrics: list[TelemetryMetric | None] = []
        self._readings: dict[int, int] = {}
        self._waiting: list[tuple[int, int, None, float]] = []

    def take(self, words: list[str] | None) -> None:
        """The next line, as words; None for one that is too long."""
        if words is None:
            self.seen += 1
            self.issues.add("too_long_line", lost_events=1)
        elif words and words[0] == _HEADER:
            self._take_header(words[1:])
        elif words[:2] == _OLD_HEADER:
            self._take_header(words[2:])
        elif words and words[0].upper() != "ID":
            self.seen += 1
            self._take_row(words)

    def _take_header(self, names: list[str]) -> None:
        if names == self._names:
            return
        self._names, self._metrics = names, [dmon_metric(name) for name in names]
        best: dict[str, int] = {}
        for metric in filter(None, self._metrics):
            best[metric.name] = min(metric.place, best.get(metric.name, metric.place))
        self._metrics = [one if one and one.place == best[one.name] else None for one in self._metrics]
        left = [name for name, metric in zip(names, self._metrics, strict=True) if metric is None]
        self.issues.add("columns_not_read", len(left), because=", ".join(left[:12]))

    def _take_row(self, words: list[str]) -> None:
        if words[0] != "GPU":
            is_entity = words[0].startswith(("GPU-", "vGPU", "Switch", "CPU", "Link"))
            self.issues.add("other_entities" if is_entity else "unreadable_line", lost_events=1)
            return
        number, values = words[1] if len(words) > 1 else "", words[2:]
        if not (number.isdecimal() and len(number) < 6 and self._names and len(values) == len(self._names)):
            self.issues.add("unreadable_line", lost_events=1)
            return
        device = int(number)
        sample = self._readings.get(device, 0)
        self._readings[device] = sample + 1
        for name, metric, text in zip(self._names, self._metrics, values, strict=True):
            if metric is not None:
                self._take_value(name, metric, device, sample, text)
        if len(self._waiting) >= _BATCH_ROWS:
            self.flush()

    def _take_value(self, name: str, metric: TelemetryMetric, device: int, sample: int, text: str) -> None:
        value = _number(text)
        if value is None:
            self.issues.add("no_value")
            return
        series = self.rows.number(metric.name, name, MeasuredThing(device=device))
        if series is None:
            self.issues.add("too_many_series")
            return
        self._waiting.append((series, sample, None, value * metric.factor))

    def flush(self) -> None:
        """Hand over what waits."""
        self.rows.add(pl.DataFrame(self._waiting, schema=SAMPLE_SCHEMA, orient="row"))
        self._waiting = []


def _number(text: str) -> float | None:
    if text in _NOTHING or len(text) > 40:
        return None
    try:
        value = float(int(text, 16)) if text.startswith("0x") else float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
