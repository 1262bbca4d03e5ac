"""CSV of `nvidia-smi --query-gpu=… --format=csv`. In: a path. Out: raw.telemetry_* rows.

Idea: a line is one reading of one device; lines are taken apart column by column, some ten thousand at a time. The
time is the host's local time without its zone, and is kept as if it were UTC (`time_basis` local). Where somebody wrote
the zone of each line, as the first one tells, times are UTC.
Not handled: files without the header (`noheader`), as their columns are then unknown.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.encoding import Utf8Stream
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.lines import bounded_lines
from traceforge.reading.stream import ByteStream
from traceforge.reading.telemetry_series import MeasuredThing, SeriesRows
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.telemetry.metrics import TelemetryMetric, smi_columns, smi_metric, smi_reason_bit, smi_separator

_PIECE_LINES = 40_000
_LONGEST_LINE_BYTES = 64 * 1024
_MOST_COLUMNS = 256
_DEVICES = {"index": "device", "uuid": "uuid", "gpu_uuid": "uuid", "pci.bus_id": "pci_address"}
_DEVICES |= {"gpu_bus_id": "pci_address", "name": "device_name", "gpu_name": "device_name"}
_THING = ("device", "uuid", "pci_address", "device_name")
# As the tool writes it, and as those who store its output often do.
_TIMES = ("%Y/%m/%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f")
_ZONE = r"\s?(?:Z|[+-]\d{2}:?\d{2})$"
_REASONS = "clocks_event_reasons.*"
_ISSUES = {
    "unreadable_line": ("warning", "lines without a value for every column, or without a time, were left out"),
    "too_long_line": ("warning", "lines above 64 KiB were left out"),
    "columns_not_read": ("info", "columns that nothing here reads"),
    "no_value": ("info", "values that the device does not give, such as [N/A]"),
    "no_device": ("warning", "no column says which device a line is of: record index, uuid or pci.bus_id"),
    "no_time": ("warning", "no column says when a line was read: record timestamp"),
    "too_many_series": ("warning", "readings of more series than any job has were left out"),
    "damaged_compression": ("warning", "the compressed data is damaged; what precedes it is read"),
}


def read_query(path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read a whole file.

    Raises:
        InputUnusableError: it has more columns than the tool knows quantities.
    """
    with ByteStream(path, options.report_progress) as stream:
        lines = bounded_lines(Utf8Stream(stream), _LONGEST_LINE_BYTES)
        header = (next(lines, b"") or b"").decode(errors="replace")
        columns = smi_columns(header)
        if len(columns) > _MOST_COLUMNS:
            raise InputUnusableError(f"the header names {len(columns)} columns", where=str(path))
        reading = _QueryReading(columns, header, emit)
        while piece := list(islice(lines, _PIECE_LINES)):
            reading.add(piece)
        if stream.damage:
            reading.issues.add("damaged_compression", because=stream.damage)
    reading.rows.finish()
    return SourceSummary(
        "telemetry", None, None, None, reading.seen, reading.seen - reading.issues.lost_events, tuple(reading.issues)
    )


class _QueryReading:
    """What is gathered while a file is read."""

    def __init__(self, columns: list[str], header: str, emit: Callable[[Batch], None]) -> None:
        self._columns = columns
        self._header = header.strip()
        self._separator = smi_separator(header)
        self._has_times = "timestamp" in columns
        self.rows = SeriesRows(emit, "local" if self._has_times else "none")
        self._has_zones: bool | None = None
        self.issues = IssueLog(_ISSUES, "telemetry_")
        self.seen = 0
        self._readings: dict[MeasuredThing, int] = {}
        self._chosen = dict(_chosen(columns))
        bits = {n: bit for n, name in enumerate(columns) if (bit := smi_reason_bit(name))}
        self._bits = {} if "throttle_reasons" in {one.name for _, one in self._chosen.values()} else bits
        known = {"timestamp", *_DEVICES, *(columns[n] for n in bits)}
        left = [name for name in columns if name not in self._chosen and name not in known]
        self.issues.add("columns_not_read", len(left), because=", ".join(left[:12]))
        self.issues.add("no_device", int(not set(columns) & _DEVICES.keys()))
        self.issues.add("no_time", int(not self._has_times))

    def add(self, lines: list[bytes | None]) -> None:
        """Hand over the readings of some lines."""
        long = sum(line is None for line in lines)
        texts = [line.decode(errors="replace").strip() for line in lines if line]
        # A second header is that of a tool that was started anew and appends.
        texts = [text for text in texts if text and text != self._header]
        self.seen += len(texts) + long
        self.issues.add("too_long_line", long, lost_events=long)
        said = pl.Series("line", texts, dtype=pl.String)
        whole = said.filter(said.str.count_matches(self._separator, literal=True) == len(self._columns) - 1)
        fields = whole.str.split_exact(self._separator, len(self._columns) - 1).struct.unnest()
        if self._separator != ",":
            fields = fields.with_columns(pl.all().str.replace(",", ".", literal=True))
        fields = fields.rename({f"field_{n}": f"{n}" for n in range(len(self._columns))})
        fields = fields.with_columns(pl.all().str.strip_chars())
        if self._has_times and self._has_zones is None and fields.height:
            self._has_zones = re.search(_ZONE, fields[str(self._columns.index("timestamp"))][0]) is not None
            self.rows.time_basis = "utc" if self._has_zones else "local"
        timed = fields.with_columns(raw_at_ns=self._time())
        if self._has_times:
            timed = timed.filter(pl.col("raw_at_ns").is_not_null())
        lost = len(texts) - timed.height
        self.issues.add("unreadable_line", lost, lost_events=lost)
        self._hand_over(timed)

    def _time(self) -> pl.Expr:
        if not self._has_times:
            return pl.lit(None, dtype=pl.Int64)
        written = pl.col(str(self._columns.index("timestamp")))
        zone = written.str.extract(f"({_ZONE})", 1).str.strip_chars().str.replace("Z", "+0000").str.replace(":", "")
        text = pl.concat_str(written.str.replace(_ZONE, ""), zone) if self._has_zones else written
        forms = [f"{form}%z" for form in _TIMES] if self._has_zones else _TIMES
        return pl.coalesce([text.str.to_datetime(form, time_unit="ns", strict=False) for form in forms]).cast(pl.Int64)

    def _hand_over(self, fields: pl.DataFrame) -> None:
        """Samples of all metrics of some lines."""
        named = {_DEVICES[name]: str(n) for n, name in reversed(list(enumerate(self._columns))) if name in _DEVICES}
        texts = [
            (pl.col(named[name]) if name in named else pl.lit(None, dtype=pl.String)).alias(name) for name in _THING
        ]
        values = {name: (metric.name, _value(n, metric)) for name, (n, metric) in self._chosen.items()}
        if self._bits:
            values[_REASONS] = ("throttle_reasons", _reasons(self._bits))
        read = fields.select(*texts, "raw_at_ns", **{name: value for name, (_, value) in values.items()})
        known = read.select(_THING).unique(maintain_order=True)
        things = [_thing(*row) for row in known.rows()]
        before = [self._readings.get(thing, 0) for thing in things]
        numbered = read.join(
            known.with_columns(before=pl.Series(before, dtype=pl.Int64)),
            on=_THING,
            nulls_equal=True,
            maintain_order="left",
        ).with_columns(sample=pl.col("before") + pl.int_range(pl.len(), dtype=pl.Int64).over(_THING))
        counts = known.join(read.group_by(_THING).len(), on=_THING, nulls_equal=True, maintain_order="left")["len"]
        self._readings.update(zip(things, (pl.Series(before, dtype=pl.Int64) + counts).to_list(), strict=True))
        for name, (metric, _) in values.items():
            numbers = pl.Series([self.rows.number(metric, name, thing) for thing in things], dtype=pl.Int32)
            samples = numbered.join(
                known.with_columns(series_id=numbers), on=_THING, nulls_equal=True, maintain_order="left"
            ).select("series_id", "sample", "raw_at_ns", value=pl.col(name))
            self.issues.add("no_value", samples["value"].null_count())
            self.issues.add("too_many_series", samples["series_id"].null_count())
            self.rows.add(samples)


def _chosen(columns: list[str]) -> Iterator[tuple[str, tuple[int, TelemetryMetric]]]:
    """Columns that are read, with their place: of those of one metric the best."""
    found = [(name, n, metric) for n, name in enumerate(columns) if (metric := smi_metric(name))]
    best: dict[str, tuple[str, int, TelemetryMetric]] = {}
    for name, n, metric in sorted(found, key=lambda one: one[2].place):
        best.setdefault(metric.name, (name, n, metric))
    for name, n, metric in best.values():
        yield name, (n, metric)


def _value(place: int, metric: TelemetryMetric) -> pl.Expr:
    """The number of a column such as `1410 MHz`, `0x0000000000000004` or `98`; NULL where there is none."""
    text = pl.col(str(place))
    if metric.name == "throttle_reasons":
        bits = text.str.extract(r"^0x0{4}([0-9a-fA-F]{12})$", 1).str.to_integer(base=16, strict=False)
        return bits.cast(pl.Float64)
    return (
        text.str.extract(r"^([-+]?\d{1,15}(?:\.\d{1,9})?)(?:\s.*)?$", 1).cast(pl.Float64, strict=False) * metric.factor
    )


def _reasons(bits: Mapping[int, int]) -> pl.Expr:
    """The bits of the reasons that hold, of columns that say of one each; NULL where none says anything."""
    said = [
        pl.when(pl.col(str(n)) == "Active").then(bit).when(pl.col(str(n)) == "Not Active").then(0)
        for n, bit in bits.items()
    ]
    is_said = pl.any_horizontal(one.is_not_null() for one in said)
    return pl.when(is_said).then(pl.sum_horizontal(said)).cast(pl.Float64)


def _thing(index: str | None, uuid: str | None, pci_address: str | None, device_name: str | None) -> MeasuredThing:
    number = int(index) if index and index.isdecimal() and len(index) < 6 else None
    return MeasuredThing(None, number, uuid, pci_address, device_name)
