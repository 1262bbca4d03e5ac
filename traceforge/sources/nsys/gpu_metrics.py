"""Clocks and load of devices that Nsight Systems sampled. In: GPU_METRICS. Out: raw.telemetry_series and _sample rows.

Idea: with --gpu-metrics-devices a report holds samples of each device, 10,000 a second and more. What tells of a slow
device is kept, as means over 10 ms, so that it is evidence like the readings of nvidia-smi. The clock's name says MHz,
and its values are Hz in the versions seen. Not handled: other metrics (counted), and what they say of single kernels.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import polars as pl

from traceforge.reading.table_file import TableFile
from traceforge.reading.telemetry_series import SAMPLE_SCHEMA, MeasuredThing, SeriesRows
from traceforge.records import Batch

TABLE = "GPU_METRICS"
_NAMES = "TARGET_INFO_GPU_METRICS"
_BIN_NS = 10_000_000
_PIECE_ROWS = 122_880
_DEVICE_MASK = 0xFF
_MOST_MHZ = 100_000  # beyond, a clock is given in Hz
_HZ_A_MHZ = 1e6


class _Metric(NamedTuple):
    begins: str
    name: str
    factor: float


_METRICS = (
    _Metric("GPC Clock Frequency", "sm_clock_mhz", 1.0),
    _Metric("SMs Active [Throughput", "sm_active_share", 0.01),
    _Metric("SM Active [Throughput", "sm_active_share", 0.01),
    _Metric("GR Active [Throughput", "busy_share", 0.01),
)


def emit_gpu_metrics(
    database: TableFile,
    emit: Callable[[Batch], None],
    *,
    host: str | None,
    base_ns: int,
    devices: Mapping[int, Mapping[str, Any]],
) -> int:
    """Hand over what is sampled of clocks and load; return how many samples were read for it.

    Args:
        base_ns: start of the session, UTC ns since the epoch.
        devices: what the export says of each device, by its number.
    """
    wanted = _wanted(database)
    if not wanted or not database.has(TABLE, "timestamp", "typeId", "metricId", "value"):
        return 0
    series = SeriesRows(emit, "utc")
    kind, metric, at, value = (database.integer(TABLE, name) for name in ("typeId", "metricId", "timestamp", "value"))
    listed = ", ".join(str(number) for _, number in wanted)
    query = (
        f"SELECT {kind}, {metric}, {at} - {at} % {_BIN_NS}, AVG({value}), COUNT(*) FROM {TABLE}"
        f" WHERE {metric} IN ({listed}) GROUP BY 1, 2, 3 ORDER BY 3, 1, 2"
    )
    read = 0
    for rows in database.pieces(query, [], _PIECE_ROWS):
        samples = []
        for type_id, metric_id, bin_ns, mean, count in rows:
            said = wanted.get((type_id, metric_id))
            if said is None or bin_ns is None or mean is None:
                continue
            read += count
            scale = 1 / _HZ_A_MHZ if said.name == "sm_clock_mhz" and mean > _MOST_MHZ else said.factor
            thing = _thing(type_id & _DEVICE_MASK, host, devices)
            number = series.number(said.name, said.begins, thing)
            samples.append((number, bin_ns // _BIN_NS, base_ns + bin_ns + _BIN_NS, mean * scale))
        series.add(pl.DataFrame(samples, schema=SAMPLE_SCHEMA, orient="row"))
    if read:
        series.finish()
    return read


def _wanted(database: TableFile) -> dict[tuple[int, int], _Metric]:
    """The metrics that are kept, by the numbers of their type and their own."""
    if not database.has(_NAMES, "typeId", "metricId", "metricName"):
        return {}
    kind, metric = database.integer(_NAMES, "typeId"), database.integer(_NAMES, "metricId")
    name = database.text(_NAMES, "metricName")
    return {
        (type_id, metric_id): one
        for type_id, metric_id, text in database.rows(f"SELECT {kind}, {metric}, {name} FROM {_NAMES}")
        for one in _METRICS
        if None not in (type_id, metric_id, text) and text.startswith(one.begins)
    }


def _thing(number: int, host: str | None, devices: Mapping[int, Mapping[str, Any]]) -> MeasuredThing:
    known = devices.get(number, {})
    return MeasuredThing(host, number, known.get("uuid"), known.get("pciBusId"), known.get("name"))
