"""What devices can do at most. Reads raw.profile, align.extent, meta.stated_rate, `peaks.toml`; fills operation.device.

A device is recognised by the name in deviceProperties; one that the file does not know has no peaks but those that the
user states, which go before the file's.
"""

import re
from functools import cache
from pathlib import Path

import msgspec
import polars as pl

from traceforge.operation.stated_rates import stated_rates
from traceforge.reading.json_values import UNDECODABLE
from traceforge.store.database import Store

_FILES = """
SELECT r.run_id, r.rank, f.metadata, e.stream_device
FROM align.rank AS r
JOIN raw.profile AS f USING (source_id)
JOIN align.extent AS e USING (source_id)
WHERE r.has_device
ORDER BY r.run_id, r.rank
"""

_SCHEMA = {
    "run_id": pl.Int32,
    "rank": pl.Int32,
    "device": pl.String,
    "bf16_flops_per_s": pl.Float64,
    "tf32_flops_per_s": pl.Float64,
    "fp32_flops_per_s": pl.Float64,
    "fp8_flops_per_s": pl.Float64,
    "memory_bytes_per_s": pl.Float64,
    "link_bytes_per_s": pl.Float64,
    "link_devices": pl.Int32,
    "records_stacks": pl.Boolean,
    "source": pl.String,
}

_PEAKS = ("bf16", "tf32", "fp32", "fp8", "memory")
_LINK = ("link", "link_devices")
_STATED = "as stated with --peak"


class Peaks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `peaks.toml`, which explains the fields."""

    pattern: str
    memory: float
    source: str
    below_bytes: int | None = None
    bf16: float | None = None
    tf32: float | None = None
    fp32: float | None = None
    fp8: float | None = None
    link: float | None = None
    link_devices: int | None = None


class _Device(msgspec.Struct):
    id: int | None = None
    name: str | None = None
    memory_bytes: int | None = msgspec.field(default=None, name="totalGlobalMem")


class _Properties(msgspec.Struct):
    devices: list[_Device] = msgspec.field(default_factory=list, name="deviceProperties")
    with_stack: int = 0


class _File(msgspec.Struct, forbid_unknown_fields=True):
    device: tuple[Peaks, ...]


def rows(store: Store) -> pl.DataFrame:
    """One row a rank with a device."""
    found, stated = [], stated_rates(store)
    for run_id, rank, metadata, number in store.rows(_FILES):
        properties = _properties(metadata)
        device = _device(properties.devices, number)
        peaks = peaks_of(device.name, device.memory_bytes)
        own = [stated.get(name, getattr(peaks, name, None)) for name in _PEAKS]
        links = [getattr(peaks, name, None) for name in _LINK]
        sources = [_STATED] if stated.keys() & set(_PEAKS) else []
        sources += [peaks.source] if peaks else []
        source = ", else ".join(sources) or None
        found.append((run_id, rank, device.name, *own, *links, properties.with_stack > 0, source))
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def peaks_of(name: str | None, memory_bytes: int | None = None) -> Peaks | None:
    """Peaks of a device by its name; None where it is not known."""
    for peaks in _known():
        if name and re.search(peaks.pattern, name):
            is_small = memory_bytes is not None and memory_bytes < (peaks.below_bytes or 0)
            if peaks.below_bytes is None or is_small:
                return peaks
    return None


@cache
def _known() -> tuple[Peaks, ...]:
    text = (Path(__file__).with_name("peaks.toml")).read_bytes()
    return msgspec.toml.decode(text, type=_File).device


def _properties(metadata: str) -> _Properties:
    """What stands beside the events; nothing where it has another form."""
    try:
        return msgspec.json.decode(metadata, type=_Properties)
    except UNDECODABLE:
        return _Properties()


def _device(devices: list[_Device], number: int | None) -> _Device:
    """The properties of a device by its number; of the first where none has it."""
    first = devices[0] if devices else _Device()
    return next((one for one in devices if one.id == number), first)
