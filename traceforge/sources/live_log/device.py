"""What a recording read of its rank's device. In: rows of a file. Out: raw.telemetry_series and _sample rows.

Idea: the rows are evidence like the readings of nvidia-smi, on the clock of the recording itself.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from traceforge.reading.telemetry_series import SeriesRows
from traceforge.records import Batch
from traceforge.sources.live_log.events import LiveRow
from traceforge.sources.live_log.frames import Table
from traceforge.sources.live_log.opening import RecorderFacts
from traceforge.sources.live_log.signs import Signs

_IN_OUR_UNIT = {"power_mw": ("power_w", 0.001), "power_limit_mw": ("power_limit_w", 0.001)}


class DeviceSeries:
    """Hands readings over."""

    def __init__(self, emit: Callable[[Batch], None]) -> None:
        self._rows = SeriesRows(emit, "utc")

    def add(self, table: Table, signs: Signs, opening: RecorderFacts) -> None:
        """Hand over the readings among rows kind, name, start, end, a, b, c."""
        name, _, at_ns, value, sample, _ = table[1:, table[0] == LiveRow.DEVICE]
        for number in np.unique(name).tolist():
            written, own = signs.quantities[number], name == number
            metric, factor = _IN_OUR_UNIT.get(written, (written, 1.0))
            series = pl.lit(self._rows.number(metric, written, opening.device), dtype=pl.Int32)
            rows = {"sample": sample[own], "raw_at_ns": at_ns[own] + opening.ahead_ns, "value": value[own] * factor}
            self._rows.add(pl.DataFrame(rows, schema_overrides={"value": pl.Float64}).with_columns(series_id=series))

    def finish(self) -> None:
        """Say what the series are, if there are any."""
        if self._rows.count:
            self._rows.finish()
