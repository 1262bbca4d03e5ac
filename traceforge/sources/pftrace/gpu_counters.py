"""Clocks, power and load of devices that a trace sampled. In: its packets. Out: raw.telemetry_series and _sample rows.

Idea: with `enable_environment_counters` or sampled metrics, the writer adds one packet a sample, which names a counter
of a descriptor, and the descriptor its device. What tells of a slow device is kept, as means over 10 ms, so that it is
evidence like the readings of nvidia-smi. Not handled: other counters (counted); descriptors inside of samples.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from traceforge.reading.telemetry_series import SAMPLE_SCHEMA, MeasuredThing, SeriesRows
from traceforge.reading.wire import FIXED64, LENGTH, VARINT, read_fields
from traceforge.records import Batch
from traceforge.sources.pftrace.packets import COUNTER, INTERNED, Packets, numbers, sound_fields

_BIN_NS = 10_000_000
_INT32, _UINT32 = 2**31, 2**32
# Fields of interned data, a descriptor, a counter's description, a packet of counters and a value.
_DESCRIPTORS = 47
_IID, _DESCRIBED, _DEVICE = 1, 2, 3
_SPECIFICATIONS, _ID, _NAME = 1, 1, 2
_SAMPLES, _DESCRIPTOR_IID = 2, 4
_INTEGER, _DOUBLE = 2, 3
# The writer's names, ours, and the factor to our unit.
_METRICS = {
    "SM Clock (MHz)": ("sm_clock_mhz", 1.0),
    "Memory Clock (MHz)": ("memory_clock_mhz", 1.0),
    "Power (W)": ("power_w", 1.0),
    "Temperature (C)": ("temperature_c", 1.0),
    "SM Active (%)": ("sm_active_share", 0.01),
}


def emit_gpu_counters(packets: Packets, emit: Callable[[Batch], None]) -> int:
    """Hand over what is sampled of clocks, power, heat and load; return how many samples were not read."""
    samples = _samples(packets)
    described = pl.DataFrame(
        [(iid, counter, name, device) for (iid, counter), (name, device) in _described(packets).items()],
        schema={"iid": pl.Int64, "counter": pl.Int64, "name": pl.String, "device": pl.Int32},
        orient="row",
    )
    known = samples.join(described, on=["iid", "counter"]).filter(pl.col("name").is_in(list(_METRICS)))
    known = known.filter((pl.col("at_ns") > 0) & pl.col("value").is_finite())
    series = SeriesRows(emit, "utc")
    things = known.select("name", "device").unique(maintain_order=True).rows()
    ids = [series.number(_METRICS[name][0], name, MeasuredThing(device=device)) for name, device in things]
    factors = {name: factor for name, (_, factor) in _METRICS.items()}
    if things:
        places = pl.DataFrame(
            [(*thing, number) for thing, number in zip(things, ids, strict=True)],
            schema={"name": pl.String, "device": pl.Int32, "series_id": pl.Int32},
            orient="row",
        )
        scaled = pl.col("value") * pl.col("name").replace_strict(factors, return_dtype=pl.Float64)
        binned = (
            known.join(places, on=["name", "device"], nulls_equal=True)
            .group_by("series_id", sample=pl.col("at_ns") // _BIN_NS)
            .agg(value=scaled.mean())
            .with_columns(raw_at_ns=(pl.col("sample") + 1) * _BIN_NS)
            .sort("sample", "series_id")
        )
        series.add(binned.select(pl.col(name).cast(kind) for name, kind in SAMPLE_SCHEMA.items()))
        series.finish()
    return samples.height - known.height


def _samples(packets: Packets) -> pl.DataFrame:
    """Time, descriptor, counter and value of each sample."""
    owners, starts, ends = packets.payloads(COUNTER)
    events = read_fields(packets.buffer, starts, ends)
    iids = numbers(events, _DESCRIPTOR_IID, len(owners))
    chosen = (events.number == _SAMPLES) & (events.wire == LENGTH)
    event = events.owner[chosen]
    values = read_fields(packets.buffer, events.start[chosen], events.end[chosen])
    found = numbers(values, _INTEGER, len(event)).astype(np.float64)
    doubles = (values.number == _DOUBLE) & (values.wire == FIXED64)
    places = values.start[doubles][:, None] + np.arange(8)
    found[values.owner[doubles]] = np.ascontiguousarray(packets.buffer[places]).view("<f8").ravel()
    return pl.DataFrame(
        {
            "at_ns": packets.times_ns()[owners[event]],
            "iid": iids[event],
            "counter": numbers(values, _ID, len(event)),
            "value": found,
        },
        schema={"at_ns": pl.Int64, "iid": pl.Int64, "counter": pl.Int64, "value": pl.Float64},
    )


def _described(packets: Packets) -> dict[tuple[int, int], tuple[str, int | None]]:
    """Name and device of each counter, by the numbers of its descriptor and its own."""
    found: dict[tuple[int, int], tuple[str, int | None]] = {}
    for _, start, end in zip(*packets.payloads(INTERNED), strict=True):
        for number, wire, _, first, last in sound_fields(packets.data, int(start), int(end)):
            if number == _DESCRIPTORS and wire == LENGTH:
                iid, device, names = _descriptor(packets.data, first, last)
                found |= {(iid, counter): (name, device) for counter, name in names.items()}
    return found


def _descriptor(data: bytes, start: int, end: int) -> tuple[int, int | None, dict[int, str]]:
    """Number and device of a descriptor, and its counters' names."""
    # A device 0 is written all the same: the field is optional, not one whose zero is left out.
    iid, device = 0, 0
    names: dict[int, str] = {}
    for number, wire, value, first, last in sound_fields(data, start, end):
        if number == _IID and wire == VARINT:
            iid = value
        elif number == _DEVICE and wire == VARINT:
            device = value
        elif number == _DESCRIBED and wire == LENGTH:
            for inner, kind, _, begin, behind in sound_fields(data, first, last):
                if inner == _SPECIFICATIONS and kind == LENGTH:
                    said = {field: (one, a, b) for field, _, one, a, b in sound_fields(data, begin, behind)}
                    counter, name = said.get(_ID, (0, 0, 0))[0], said.get(_NAME, (0, 0, 0))
                    if counter < _UINT32:
                        names[counter] = data[name[1] : name[2]].decode("utf-8", "replace")
    return (iid if iid < 2**63 else 0), (device if device < _INT32 else None), names
