"""One live recording. In: a path. Out: raw.profile, .process_group, .event, .collective, .telemetry_* rows.

Idea: frames are gathered until a step ends; what lies before that is laid flat and handed over, so that memory does
not grow with the file. Steps in which rows were lost are left out, for they would look like idle time. Times are
monotonic ns plus the first reading of the epoch. Not handled: a wall clock that was set meanwhile; it is reported only.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.stream import ByteStream
from traceforge.reading.timeline_rows import TimelineRows
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.live_log.device import DeviceSeries
from traceforge.sources.live_log.device_track import DeviceTrack
from traceforge.sources.live_log.events import (
    LiveRow,
    ShownEvents,
    collective_rows,
    events_of,
    message_rows,
    pacing_rows,
)
from traceforge.sources.live_log.frames import Facts, FrameReader, RowBlock, Table
from traceforge.sources.live_log.opening import RecorderFacts, read_opening
from traceforge.sources.live_log.policy import policy_row
from traceforge.sources.live_log.signs import Signs

KIND = "live_log"
_FIRST_LINE_BYTES = 256
_GATHERED_ROWS = 100_000
_MOST_CLOCK_CHANGE_NS = 1_000_000
_MEANINGS = {
    "truncated": ("info", "the recording was not ended: it is whole up to its last flush"),
    "damaged_frame": ("warning", "frames whose bytes do not add up were left out"),
    "skipped_bytes": ("warning", "bytes that are no frame were skipped"),
    "rows_dropped": ("warning", "rows were not recorded, as the recorder's queue was full"),
    "incomplete_step": ("warning", "steps during which rows were lost were left out"),
    "unknown_row": ("warning", "rows of an unknown kind, without a name or at an impossible time were left out"),
    "empty_stretch": ("info", "stretches without a duration of their own were left out"),
    "clock_set": ("info", "the wall clock was set against the monotonic one meanwhile; times follow the monotonic one"),
    "hook_failed": ("info", "hooks of the recorder failed, and part of what they watch is missing"),
}


def read_log(path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read a whole file.

    Raises:
        InputUnusableError: it is of another version, or its first frame is damaged.
    """
    issues = IssueLog(_MEANINGS, f"{KIND}_")
    with ByteStream(path, options.report_progress) as stream:
        line, found, rest = stream.read(_FIRST_LINE_BYTES).partition(b"\n")
        if not found or line != b"traceforge live 1":
            hint = "install the version of traceforge that recorded it, or a later one"
            raise InputUnusableError("a live recording of an unknown version", where=str(path), hint=hint)
        frames = iter(reader := FrameReader(stream, issues, rest))
        first = next(frames, None)
        if not isinstance(first, Mapping) or (opening := read_opening(first)) is None:
            raise InputUnusableError("the first frame of the live recording is damaged", where=str(path))
        reading = _LiveReading(opening, emit, issues)
        damaged = issues.count("damaged_frame")
        for frame in frames:
            reading.lost |= issues.count("damaged_frame") > damaged
            damaged = issues.count("damaged_frame")
            reading.take_facts(frame) if isinstance(frame, Mapping) else reading.take_rows(frame)
        issues.add("truncated", int(not reading.has_ended or not reader.is_whole))
    return reading.finish()


class _LiveReading:
    """What is gathered while one file is read.

    Attributes:
        lost: whether rows are missing before the next ones.
        has_ended: whether the recorder said that nothing follows.
    """

    def __init__(self, opening: RecorderFacts, emit: Callable[[Batch], None], issues: IssueLog) -> None:
        self.lost = False
        self.has_ended = False
        self._opening = opening
        self._emit = emit
        self._issues = issues
        self._rows = TimelineRows(emit)
        self._rows.name_process(opening.process, "training")
        self._names = Signs()
        self._device = DeviceSeries(emit)
        self._track = DeviceTrack()
        self._waiting: list[Table] = []
        self._count = 0
        self._until_ns = 0
        self._reached_ns = 0
        self._losses: list[tuple[int, int]] = []
        self._dropped = 0
        self._calls = 0

    def take_facts(self, facts: Facts) -> None:
        """Names, clock readings and losses."""
        self._names.add(facts.get("names"))
        self._opening = self._opening.with_later(facts)
        self.has_ended |= facts.get("ended") is True
        dropped = facts.get("dropped")
        if isinstance(dropped, int) and 0 < dropped - self._dropped < 2**62:
            self._issues.add("rows_dropped", dropped - self._dropped, lost_events=dropped - self._dropped)
            self._dropped = dropped
            self.lost = True
        if (policy := policy_row(facts.get("pacing"))) is not None:
            self._emit(Batch("raw.pacing_policy", policy))
        failures = facts.get("failures")
        for name, what in failures.items() if isinstance(failures, Mapping) else ():
            self._issues.add("hook_failed", because=f"{name}: {what}"[:300])
        if self._opening.clock_change_ns(facts.get("clock")) > _MOST_CLOCK_CHANGE_NS:
            self._issues.add("clock_set")

    def take_rows(self, blocks: list[RowBlock]) -> None:
        """Rows of one frame; those of complete steps are handed over once there are enough."""
        tables = [self._sound(block) for block in blocks]
        table = np.concatenate(tables, axis=1) if tables else np.zeros((7, 0), dtype=np.int64)
        if not table.shape[1]:
            return
        if self.lost:
            self._losses.append((self._reached_ns, int(table[3].min())))
            self.lost = False
        self._reached_ns = max(self._reached_ns, int(table[3].max()))
        self._waiting.append(table)
        self._count += table.shape[1]
        if self._count >= _GATHERED_ROWS:
            self._hand_over(is_last=False)

    def _sound(self, block: RowBlock) -> Table:
        """Rows with their kind in front: kind, name, start, end, a, b, c."""
        table = np.concatenate([np.full((1, block.rows.shape[1]), block.kind), block.rows])
        known = self._names.known(block.kind, table[1])
        known &= (table[2] >= 0) & (table[3] >= table[2]) & (table[3] < 2**61) & (np.abs(table[4:]) < 2**61).all(axis=0)
        lost = int((~known).sum())
        self._issues.add("unknown_row", lost, lost_events=lost)
        return table[:, known]

    def _hand_over(self, *, is_last: bool) -> None:
        if not self._waiting:
            return
        table = np.concatenate(self._waiting, axis=1)
        ended = table[3, table[0] == LiveRow.STEP]
        if is_last:
            until = int(table[3].max())
        elif len(ended):
            until = int(ended.max())
        else:
            return
        complete = table[3] <= until
        self._waiting = [table[:, ~complete]]
        self._count = self._waiting[0].shape[1]
        self._add(table[:, complete])
        self._until_ns = until

    def _add(self, table: Table) -> None:
        own = self._without_incomplete(table)
        events = events_of(own, self._names, self._opening, since_ns=self._until_ns, calls=self._calls)
        empty = int(((own[0] == LiveRow.PHASE) & (own[4] == 0) & (own[2] == own[3])).sum())
        self._issues.add("empty_stretch", empty, lost_events=empty)
        self._calls += int((own[0] == LiveRow.COLLECTIVE).sum())
        self._device.add(own, self._names, self._opening)
        self._hand_rows("pacing", pacing_rows(own, self._names))
        self._hand_events(events)
        on_device = self._track.add(own, self._names, self._opening)
        if on_device is not None:
            self._hand_events(on_device)

    def _hand_events(self, events: ShownEvents) -> None:
        first = self._rows.count
        self._rows.add(events.frame)
        self._hand_rows("collective", collective_rows(events, self._names, first))
        self._hand_rows("argument", message_rows(events, self._names, first))

    def _hand_rows(self, name: str, rows: pl.DataFrame) -> None:
        if rows.height:
            self._emit(Batch(f"raw.{name}", rows))

    def _without_incomplete(self, table: Table) -> Table:
        steps = np.flatnonzero(table[0] == LiveRow.STEP)
        bad = np.zeros(len(steps), dtype=np.bool_)
        for since, until in self._losses:
            bad |= (table[2, steps] < until) & (table[3, steps] > since)
        self._issues.add("incomplete_step", int(bad.sum()), lost_events=int(bad.sum()))
        kept = np.ones(table.shape[1], dtype=np.bool_)
        kept[steps[bad]] = False
        return table[:, kept]

    def finish(self) -> SourceSummary:
        """Hand over what is left, and say what was lost."""
        self._hand_over(is_last=True)
        self._rows.finish()
        self._device.finish()
        opening = self._opening
        groups = self._names.groups(opening.world_size)
        if groups:
            schema = dict.fromkeys(("process_group_name", "ranks"), pl.String)
            frame = pl.DataFrame(groups, schema={**schema, "size": pl.Int32}, orient="row")
            self._emit(Batch("raw.process_group", frame))
        row = {
            "schema_version": 1, "base_time_ns": opening.ahead_ns, "rank": opening.rank,
            "world_size": opening.world_size, "backend": opening.backend, "host_name": opening.host,
            "metadata": json.dumps({"live": opening.facts}),
        }  # fmt: skip
        numbers = {"schema_version": pl.Int32, "base_time_ns": pl.Int64, "rank": pl.Int32, "world_size": pl.Int32}
        texts = dict.fromkeys(("backend", "host_name", "metadata"), pl.String)
        self._emit(Batch("raw.profile", pl.DataFrame([row], schema={**numbers, **texts})))
        count, lost = self._rows.count, self._issues.lost_events
        return SourceSummary(
            KIND, opening.rank, opening.host, opening.world_size, count + lost, count, tuple(self._issues)
        )
