"""Series of measurements as rows. In: identities and frames of values. Out: raw.telemetry_series and _sample rows.

Idea: a series is known by its metric and by whatever names its device; it gets a number where it first appears.
"""

from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from traceforge.records import Batch

MOST_SERIES = 100_000
"""More devices than any job has; the rest of a file that names more is counted and left out."""
_LONGEST_NAME = 256
_SERIES = {
    "series_id": pl.Int32, "metric": pl.String, "written_name": pl.String, "host": pl.String, "device": pl.Int32,
    "uuid": pl.String, "pci_address": pl.String, "device_name": pl.String, "nic": pl.String, "time_basis": pl.String,
}  # fmt: skip
SAMPLE_SCHEMA = {"series_id": pl.Int32, "sample": pl.Int64, "raw_at_ns": pl.Int64, "value": pl.Float64}


class MeasuredThing(NamedTuple):
    """A device or a NIC, as far as a file names it."""

    host: str | None = None
    device: int | None = None
    uuid: str | None = None
    pci_address: str | None = None
    device_name: str | None = None
    nic: str | None = None


class SeriesRows:
    """Numbers series and hands their samples over.

    Attributes:
        count: samples handed over so far.
        time_basis: what the times of all of them count from: `utc`, `local`, or `none`.
    """

    def __init__(self, emit: Callable[[Batch], None], time_basis: str) -> None:
        self._emit = emit
        self.time_basis = time_basis
        self._known: dict[tuple[str, str, MeasuredThing], int] = {}
        self.count = 0

    def number(self, metric: str, written_name: str, thing: MeasuredThing) -> int | None:
        """The number of a series; None where there are too many."""
        key = (metric, written_name, thing)
        if key not in self._known and len(self._known) >= MOST_SERIES:
            return None
        return self._known.setdefault(key, len(self._known))

    def add(self, samples: pl.DataFrame) -> None:
        """Hand over samples, columns as in `SAMPLE_SCHEMA`; those without a finite value are left out."""
        whole = samples.filter(pl.col("value").is_finite() & pl.col("series_id").is_not_null())
        if whole.height:
            self._emit(Batch("raw.telemetry_sample", whole.select(*SAMPLE_SCHEMA)))
            self.count += whole.height

    def finish(self) -> None:
        """Hand over what the series are."""
        rows = [
            (number, metric, written, *_short(thing), self.time_basis)
            for (metric, written, thing), number in self._known.items()
        ]
        self._emit(Batch("raw.telemetry_series", pl.DataFrame(rows, schema=_SERIES, orient="row")))


def _short(thing: MeasuredThing) -> tuple[str | int | None, ...]:
    return tuple(value[:_LONGEST_NAME] if isinstance(value, str) else value for value in thing)
