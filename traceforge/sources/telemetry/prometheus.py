"""Answers of Prometheus' HTTP interface. In: JSON of `/api/v1/query_range` or `query`. Out: raw.telemetry_* rows.

Idea: each element of the answer is one series; its labels name the quantity, the host and the device or NIC.
Times are UTC with ms. Not handled: answers to expressions, which carry no name; histograms; a file above 256 MiB.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.encoding import utf8_of
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import UNDECODABLE
from traceforge.reading.stream import read_whole
from traceforge.reading.telemetry_series import MeasuredThing, SeriesRows
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.telemetry.metrics import exported_metric

_MOST_BYTES = 256 * 1024**2
_MS_NS = 1_000_000
_LATEST_S = 2**33
# In Kubernetes the exporter's `Hostname` is that of its pod, and a label beside it names the node.
_HOSTS = ("node", "kubernetes_node", "nodename", "Hostname", "hostname", "instance")
_ISSUES = {
    "metrics_not_read": ("info", "measurements of metrics that nothing here reads"),
    "unreadable_sample": ("warning", "measurements without a time or a number were left out"),
    "no_value": ("info", "measurements that are no number (NaN) were left out"),
    "unreadable_series": ("warning", "elements of the answer that are no series were left out"),
    "too_many_series": ("warning", "series beyond what any job has were left out"),
}


class _Data(msgspec.Struct):
    result: list[msgspec.Raw] = []


class _Answer(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)


class _Series(msgspec.Struct):
    metric: dict[str, str]
    values: list[list[float | str | None]] = []
    value: list[float | str | None] | None = None


def read_answer(path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read a whole file.

    Raises:
        InputUnusableError: it is damaged or too large.
    """
    text = utf8_of(read_whole(path, _MOST_BYTES, options.report_progress))
    try:
        found = msgspec.json.decode(text, type=_Answer).data.result
    except UNDECODABLE as error:
        raise InputUnusableError(f"the file is damaged: {error}", where=str(path)) from error
    rows, issues = SeriesRows(emit, "utc"), IssueLog(_ISSUES, "telemetry_")
    others: Counter[str] = Counter()
    seen = 0
    for element in found:
        try:
            series = _SERIES.decode(element)
        except UNDECODABLE:
            issues.add("unreadable_series", lost_events=1)
            seen += 1
            continue
        seen += _add(series, rows, issues, others)
    named = ", ".join(f"{name[:80]} {count}" for name, count in others.most_common(12))
    issues.add("metrics_not_read", others.total(), because=named)
    rows.finish()
    return SourceSummary("telemetry", None, None, None, seen, seen - issues.lost_events, tuple(issues))


_SERIES = msgspec.json.Decoder(_Series)


def _add(series: _Series, rows: SeriesRows, issues: IssueLog, others: Counter[str]) -> int:
    """Hand over a series; how many measurements of it count as seen."""
    values = [*series.values, *([series.value] if series.value else [])]
    name = series.metric.get("__name__", "")
    metric = exported_metric(name)
    if metric is None:
        others[name or "(without a name)"] += len(values)
        return 0
    number = rows.number(metric.name, name, _thing(series.metric, is_nic=metric.name.startswith("nic_")))
    if number is None:
        issues.add("too_many_series", lost_events=len(values))
        return len(values)
    samples = [
        (number, place, at_ns, value * metric.factor)
        for place, pair in enumerate(values)
        if (at_ns := _time_ns(pair)) is not None and (value := _number(pair[1])) is not None
    ]
    lost = len(values) - len(samples)
    issues.add("unreadable_sample", lost, lost_events=lost)
    frame = pl.DataFrame(
        samples,
        schema={"series_id": pl.Int32, "sample": pl.Int64, "raw_at_ns": pl.Int64, "value": pl.Float64},
        orient="row",
    )
    finite = frame.filter(pl.col("value").is_finite())
    issues.add("no_value", frame.height - finite.height, lost_events=frame.height - finite.height)
    rows.add(finite)
    return len(values)


def _time_ns(pair: list[float | str | None]) -> int | None:
    """When a measurement was taken: Prometheus counts whole ms, written as seconds."""
    if len(pair) != 2 or not isinstance(pair[0], float) or not 0 <= pair[0] < _LATEST_S:
        return None
    return round(pair[0] * 1000) * _MS_NS


def _number(value: float | str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def _thing(labels: dict[str, str], *, is_nic: bool) -> MeasuredThing:
    host = next((labels[name] for name in _HOSTS if labels.get(name)), None)
    if host is not None and labels.get("instance") == host:
        host = host.rpartition(":")[0] or host
    if is_nic:
        port = labels.get("port")
        return MeasuredThing(host, nic=labels.get("device", "") + (f" port {port}" if port else ""))
    index = labels.get("gpu", "")
    device = int(index) if index.isdecimal() and len(index) < 6 else None
    uuid, pci = labels.get("UUID") or labels.get("uuid"), labels.get("pci_bus_id")
    return MeasuredThing(host, device, uuid, pci, labels.get("modelName"))
