"""What a recording knows of its device. In: rows with device times. Out: kernels: collectives, and stretches of work.

Idea: the host's order is that of the stream. Between two readings a device that got to the second one long after the
host had asked was at work all the time; one that was there at once waited for its host, and how much of the stretch it
worked is not known: it counts as idle. Where it was given nothing, or waited for a collective, it was idle.
A collective starts when the one before on its group's stream has ended. Not handled: single kernels.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from traceforge.reading.timeline_rows import COMPLETE
from traceforge.sources.live_log.events import LiveRow, ShownEvents
from traceforge.sources.live_log.frames import Table
from traceforge.sources.live_log.opening import RecorderFacts
from traceforge.sources.live_log.signs import Signs

BEHIND_NS = 100_000
"""A device that is so late was busy; launching alone takes some ten microseconds."""
WORK = "device_work"
_CALL_NS = 1_000
_WORK_STREAM, _FIRST_GROUP_STREAM = 7, 100


class DeviceTrack:
    """Readings of one device, in the order in which the host asked for them."""

    def __init__(self) -> None:
        self._free_ns = self._asked_ns = -1
        self._ended_ns: dict[str, int] = {}
        self._streams: dict[str, int] = {}
        self._launched = 0

    def add(self, table: Table, signs: Signs, opening: RecorderFacts) -> ShownEvents | None:
        """Events of rows kind, name, start, end, a, b, c; None where there are none."""
        is_mark, is_collective = table[0] == LiveRow.DEVICE_MARK, table[0] == LiveRow.DEVICE_COLLECTIVE
        rows = table[:, is_mark | is_collective]
        if not rows.shape[1]:
            return None
        asked = np.where(rows[0] == LiveRow.DEVICE_MARK, rows[2], rows[2] - rows[5])
        order = np.argsort(asked, kind="stable")
        rows, asked = rows[:, order], asked[order]
        frames = [self._work(rows, asked), *self._collectives(rows, asked, signs)]
        frame = pl.concat(frames).with_columns(
            phase=pl.lit(COMPLETE),
            process=pl.when("on_device").then(pl.lit("device")).otherwise(pl.lit(opening.process)),
            thread=pl.when("on_device").then(pl.format("stream {}", "stream")).otherwise(pl.lit("0")),
            stream=pl.when("on_device").then("stream"),
            device=pl.when("on_device").then(pl.lit(0, pl.Int32)),
            raw_start_ns=pl.col("start_ns") + opening.ahead_ns,
        )
        return ShownEvents(
            frame.drop("start_ns", "on_device", "meeting", "sequence", "is_asynchronous"),
            frame["meeting"].to_numpy(),
            frame["sequence"].to_numpy(),
            frame["is_asynchronous"].to_numpy(),
        )

    def _work(self, rows: Table, asked: Table) -> pl.DataFrame:
        """Stretches in which the device was at work, each launched when the host had asked for what came before."""
        is_mark = rows[0] == LiveRow.DEVICE_MARK
        reached = np.where(is_mark, rows[3], rows[2])
        free = np.where(~is_mark & (rows[6] == 1), rows[3], reached)
        # One that nobody waited for until later comes with what was asked for later.
        free = np.maximum(np.maximum.accumulate(free), self._free_ns)
        since, before = np.append(self._free_ns, free[:-1]), np.append(self._asked_ns, asked[:-1])
        self._free_ns, self._asked_ns = int(free[-1]), max(self._asked_ns, int(asked[-1]))
        was_given = ~is_mark | (rows[4] == 0)
        works = np.flatnonzero(was_given & (reached - asked > BEHIND_NS) & (since >= 0) & (reached > since))
        stream = np.full(len(works), _WORK_STREAM)
        return self._launches(before[works], since[works], reached[works], [WORK] * len(works), stream)

    def _collectives(self, rows: Table, asked: Table, signs: Signs) -> list[pl.DataFrame]:
        own = rows[0] == LiveRow.DEVICE_COLLECTIVE
        name, start, end, sequence, _, is_awaited = rows[1:, own]
        start, asked = start.copy(), asked[own]
        groups = [signs.meetings[number].group for number in name.tolist()]
        stream = np.zeros(len(name), dtype=np.int64)
        for group in dict.fromkeys(groups):
            of_group = np.flatnonzero([one == group for one in groups])
            before = np.append(self._ended_ns.get(group, -1), end[of_group[:-1]])
            start[of_group] = np.minimum(np.maximum(start[of_group], before), end[of_group])
            self._ended_ns[group] = int(end[of_group[-1]])
            stream[of_group] = self._streams.setdefault(group, _FIRST_GROUP_STREAM + len(self._streams))
        kernels = [f"ncclKernel_{signs.meetings[number].op}" for number in name.tolist()]
        calls = _events("cpu_op", ["record_param_comms"] * len(name), asked, asked + _CALL_NS).with_columns(
            meeting=pl.Series(name, dtype=pl.Int64),
            sequence=pl.Series(sequence, dtype=pl.Int64),
            is_asynchronous=pl.Series(is_awaited == 0, dtype=pl.Boolean),
        )
        return [calls, self._launches(asked, start, end, kernels, stream)]

    def _launches(self, asked: Table, start: Table, end: Table, names: Sequence[str], stream: Table) -> pl.DataFrame:
        """Kernels, and the calls that launched them."""
        numbers = pl.Series(self._launched + np.arange(len(asked)), dtype=pl.Int64)
        self._launched += len(asked)
        calls = _events("cuda_runtime", ["cudaLaunchKernel"] * len(asked), asked, asked + _CALL_NS)
        kernels = _events("kernel", names, start, end).with_columns(
            on_device=pl.lit(value=True), stream=pl.Series(stream, dtype=pl.Int32)
        )
        return pl.concat([one.with_columns(correlation=numbers) for one in (calls, kernels)])


def _events(category: str, names: Sequence[str], start: Table, end: Table) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "category": pl.Series([category], dtype=pl.String).new_from_index(0, len(names)),
            "name": pl.Series(names, dtype=pl.String),
            "start_ns": pl.Series(start, dtype=pl.Int64),
            "duration_ns": pl.Series(end - start, dtype=pl.Int64),
        }
    ).with_columns(
        on_device=pl.lit(value=False),
        stream=pl.lit(0, pl.Int32),
        correlation=pl.lit(None, pl.Int64),
        meeting=pl.lit(-1, pl.Int64),
        sequence=pl.lit(-1, pl.Int64),
        is_asynchronous=pl.lit(value=False),
    )
