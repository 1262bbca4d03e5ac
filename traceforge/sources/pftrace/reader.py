"""One trace of PyTorch's Perfetto writer. In: a path. Out: rows of raw.profile, raw.event, raw.collective and more.

Idea: slices become events of host threads, render stages those of device streams; a slice that names the stages it
submitted gives them its correlation. Stages of collectives carry NCCL's own words (algorithm, protocol, channels).
Times are UTC ns. The writer ends a stage where the next of its lane begins, so graph replays are shorter than in JSON.
Not handled: a file above 1 GiB unpacked, as it is read whole.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.communication_args import CommunicationArgs
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.operation_inputs import OperationInputs
from traceforge.reading.stream import ByteStream
from traceforge.reading.timeline_rows import COMPLETE, INSTANT, TimelineRows
from traceforge.reading.wire import Fields, read_fields
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.pftrace.annotations import Arguments, annotations_of, extra_data_of
from traceforge.sources.pftrace.gpu_counters import emit_gpu_counters
from traceforge.sources.pftrace.packets import (
    RENDER_STAGE,
    TRACK_EVENT,
    Int64s,
    NamedTrack,
    Packets,
    TraceNames,
    names_of,
    numbers,
    packets_of,
)
from traceforge.sources.pftrace.slices import BEGIN, END, ends_ns
from traceforge.sources.pftrace.slices import INSTANT as INSTANT_TYPE

KIND = "pftrace"
_MOST_BYTES = 1024**3
_PIECE_BYTES = 1024 * 1024
_PIECE_ROWS = 122_880
_CATEGORY, _ANNOTATIONS, _TYPE, _NAME_IID, _TRACK, _SUBMITTED = 3, 4, 9, 10, 11, 3000
_EVENT_ID, _DURATION, _EXTRA = 1, 2, 6
_STAGE_NUMBERS = {"device": 11, "queue": 13, "stage": 14, "kernel": 19, "name": 20}
_STREAM = re.compile(r"stream (-?\d{1,9})\b")
_STAGES = {"Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Annotation": "gpu_user_annotation"}
_INTEGERS = {
    "correlation": "correlation", "External id": "external_id", "Record function id": "record_function_id",
    "bytes": "size_bytes", "Bytes": "size_bytes",
}  # fmt: skip
# NCCL's descriptor of a collective, in the words of the arguments of a call; its seq counts by operation, not by group.
_DESCRIPTOR = {"func": "Collective name", "datatype": "dtype", "count": "In msg nelems"}
_INT64, _INT32 = 2**63, 2**31
_ISSUES = {
    "no_events": ("warning", "the file holds no slice and no stage"),
    "truncated": ("warning", "bytes behind damage, or behind a packet that is cut off, are lost"),
    "damaged_packet": ("warning", "packets that are no sound messages were left out"),
    "damaged_compression": ("warning", "the compressed data is damaged; what precedes it is read"),
    "unended_slice": ("warning", "slices that begin and do not end were left out"),
    "event_without_timestamp": ("warning", "events without a time were left out"),
    "names_given_anew": ("warning", "numbers that the trace gives to several names: what bears them has none"),
    "out_of_range": ("warning", "a number does not fit its column and became NULL"),
    "wrong_type": ("warning", "a value of an unexpected type became NULL"),
    "counters_not_read": ("info", "samples of GPU counters other than clocks, power, heat and load are not read"),
}
_CHOICE = {"event_id": pl.Int64, "algorithm": pl.String, "protocol": pl.String, "channel_count": pl.Int32,
           "sequence": pl.Int64}  # fmt: skip


def read_trace(path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read a whole file.

    Raises:
        InputUnusableError: it cannot be opened, or is too large.
    """
    issues = IssueLog(_ISSUES, f"{KIND}_")
    pieces: list[bytes] = []
    with ByteStream(path, options.report_progress) as stream:
        while stream.position <= _MOST_BYTES and (piece := stream.read(_PIECE_BYTES)):
            pieces.append(piece)
        if stream.position > _MOST_BYTES:
            raise InputUnusableError("a file of this kind above 1 GiB is not read", where=str(path))
        if stream.damage:
            issues.add("damaged_compression", because=stream.damage)
    packets = packets_of(b"".join(pieces))
    pieces.clear()
    reading = _TraceReading(packets, emit, issues, keep_all_args=options.keep_all_args)
    return reading.run()


class _TraceReading:
    """What is gathered while a trace is read."""

    def __init__(
        self, packets: Packets, emit: Callable[[Batch], None], issues: IssueLog, *, keep_all_args: bool
    ) -> None:
        self._packets = packets
        self._names = names_of(packets)
        self._times_ns = packets.times_ns()
        self._emit = emit
        self._issues = issues
        self._rows = TimelineRows(emit)
        self._communication = CommunicationArgs(keep_all_args, issues)
        self._inputs = OperationInputs()
        self._submitted: dict[int, int] = {}
        self._choices: list[tuple[int, str | None, str | None, int | None, int | None]] = []

    def run(self) -> SourceSummary:
        """Hand over all rows, and say what was lost."""
        self._issues.add("truncated", self._packets.lost_bytes)
        self._issues.add("damaged_packet", self._packets.damaged)
        self._issues.add("names_given_anew", self._names.renamed)
        self._add_slices()
        self._add_stages()
        self._issues.add("counters_not_read", emit_gpu_counters(self._packets, self._emit))
        for batch in [*self._communication.flush(), *self._inputs.flush()]:
            self._emit(batch)
        if self._choices:
            self._emit(Batch("raw.collective_choice", pl.DataFrame(self._choices, schema=_CHOICE, orient="row")))
        for track in self._names.tracks.values():
            if track.tid is None:
                self._rows.name_process(str(track.pid), track.name)
            else:
                self._rows.name_thread(str(track.pid), str(track.tid), track.name)
        self._rows.finish()
        self._issues.add("no_events", int(not self._rows.count))
        beside = {"base_time_ns": pl.Series([0], dtype=pl.Int64), "metadata": pl.Series(["{}"])}
        self._emit(Batch("raw.profile", pl.DataFrame(beside)))
        count = self._rows.count
        lost = self._issues.lost_events
        return SourceSummary(KIND, None, None, None, count + lost, count, tuple(self._issues))

    def _messages(self, number: int) -> tuple[Fields, Int64s, int]:
        """Fields of all payloads of a kind, the time of each, and their number."""
        owners, starts, ends = self._packets.payloads(number)
        return read_fields(self._packets.buffer, starts, ends), self._times_ns[owners], len(owners)

    def _add_slices(self) -> None:
        fields, times_ns, count = self._messages(TRACK_EVENT)
        kinds = numbers(fields, _TYPE, count)
        tracks = numbers(fields, _TRACK, count)
        until_ns, has_end = ends_ns(kinds, tracks, times_ns)
        is_known = (times_ns > 0) & (until_ns >= 0)
        kept = ((kinds == BEGIN) & has_end | (kinds == INSTANT_TYPE)) & is_known
        self._count_lost(int(((kinds == BEGIN) & ~has_end).sum()), "unended_slice")
        self._count_lost(int((((kinds == BEGIN) & has_end | (kinds == INSTANT_TYPE)) & ~is_known).sum()),
                         "event_without_timestamp")  # fmt: skip
        self._count_lost(int((~np.isin(kinds, (BEGIN, END, INSTANT_TYPE))).sum()), "damaged_packet")
        args = annotations_of(self._packets, fields, _ANNOTATIONS, count)
        own_names = numbers(fields, _NAME_IID, count).tolist()
        categories = numbers(fields, _CATEGORY, count).tolist()
        self._note_submitted(fields, args)
        places = np.flatnonzero(kept).tolist()
        for first in range(0, len(places), _PIECE_ROWS):
            some = places[first : first + _PIECE_ROWS]
            known = [self._names.tracks.get(track, NamedTrack()) for track in tracks[some].tolist()]
            said: dict[str, list[Any]] = {
                "phase": [COMPLETE if kinds[one] == BEGIN else INSTANT for one in some],
                "category": [self._names.categories.get(categories[one]) for one in some],
                "name": [self._names.events.get(own_names[one], "slice") for one in some],
                "process": [str(track.pid) for track in known],
                "thread": ["main" if track.tid is None else str(track.tid) for track in known],
            }
            lasts = np.where(kinds[some] == BEGIN, np.maximum(until_ns[some] - times_ns[some], 0), 0)
            self._hand_over(said, times_ns[some], lasts, [args[one] for one in some])

    def _count_lost(self, count: int, code: str) -> None:
        self._issues.add(code, count, lost_events=count)

    def _note_submitted(self, fields: Fields, args: Sequence[Arguments | None]) -> None:
        """Which correlation the stages have that a slice submitted."""
        chosen = fields.number == _SUBMITTED
        owners, starts, ends = fields.owner[chosen], fields.start[chosen], fields.end[chosen]
        listed = read_fields(self._packets.buffer, starts, ends)
        for place, stage in zip(listed.owner.tolist(), listed.value.tolist(), strict=True):
            own = args[int(owners[place])] or {}
            correlation = own.get("correlation")
            self._submitted[stage] = correlation if isinstance(correlation, int) else stage

    def _add_stages(self) -> None:
        fields, times_ns, count = self._messages(RENDER_STAGE)
        extra = extra_data_of(self._packets, fields, _EXTRA, count)
        known = {name: numbers(fields, number, count) for name, number in _STAGE_NUMBERS.items()}
        event_ids, lasts_ns = numbers(fields, _EVENT_ID, count), numbers(fields, _DURATION, count)
        is_known = (times_ns > 0) & (lasts_ns >= 0)
        self._count_lost(int((~is_known).sum()), "event_without_timestamp")
        places = np.flatnonzero(is_known).tolist()
        for first in range(0, len(places), _PIECE_ROWS):
            some = places[first : first + _PIECE_ROWS]
            rows = [_stage(self._names, extra[one] or {}, **{k: int(v[one]) for k, v in known.items()}) for one in some]
            said = {name: [row[n] for row in rows] for n, name in enumerate(_STAGE_SAID)}
            arguments = [extra[one] or {} for one in some]
            ids = event_ids[some].tolist()
            correlations = [
                own["correlation"] if "correlation" in own else self._submitted.get(stage)
                for own, stage in zip(arguments, ids, strict=True)
            ]
            for own, correlation in zip(arguments, correlations, strict=True):
                own["correlation"] = correlation
            self._hand_over(said, times_ns[some], lasts_ns[some], arguments)

    def _hand_over(
        self, said: dict[str, list[Any]], starts_ns: Int64s, lasts_ns: Int64s, args: Sequence[Arguments | None]
    ) -> None:
        """Events with their numbers, and what their arguments say of communication and inputs."""
        first = self._rows.count
        columns: dict[str, list[int | None]] = {column: [None] * len(args) for column in _INTEGERS.values()}
        for place, own in enumerate(args):
            if not own:
                continue
            for key, column in _INTEGERS.items():
                if key in own:
                    columns[column][place] = self._integer(own[key])
            self._take_args(first + place, said["category"][place], said["name"][place], own)
        texts = {
            name: pl.Series(said[name], dtype=pl.String) for name in ("phase", "category", "name", "process", "thread")
        }
        places = {name: pl.Series(said[name], dtype=pl.Int32) for name in ("device", "stream") if name in said}
        measured = {name: pl.Series(values, dtype=pl.Int64) for name, values in columns.items()}
        times: dict[str, pl.Series] = {"raw_start_ns": pl.Series(starts_ns), "duration_ns": pl.Series(lasts_ns)}
        frame = pl.DataFrame(texts | places | measured | times)
        instants = pl.col("phase") == INSTANT
        self._rows.add(frame.with_columns(duration_ns=pl.when(~instants).then(pl.col("duration_ns"))))
        for batch in [*self._communication.flush(), *self._inputs.flush()]:
            self._emit(batch)

    def _integer(self, value: object) -> int | None:
        try:
            number = int(value) if isinstance(value, int | str) else None
        except ValueError:
            number = None
        if number is None:
            self._issues.add("wrong_type", int(value is not None))
        elif not -_INT64 <= number < _INT64:
            self._issues.add("out_of_range")
            return None
        return number

    def _take_args(self, event_id: int, category: str | None, name: str, own: Arguments) -> None:
        if "func" in own:
            channels, sequence = self._integer(own.get("n_channels")), self._integer(own.get("seq"))
            fits = channels if channels is not None and abs(channels) < _INT32 else None
            self._choices.append((event_id, _word(own.get("algo")), _word(own.get("proto")), fits, sequence))
            own = own | {key: own[word] for word, key in _DESCRIPTOR.items() if word in own and key not in own}
        is_input = "Input Dims" in own
        if is_input or self._communication.is_wanted(name, own):
            text = msgspec.json.encode(own)
            self._communication.add_text(event_id, text, is_communication=self._communication.is_named(name))
            if is_input and self._inputs.is_wanted("X", category, name):
                self._inputs.add_text(event_id, text)


_STAGE_SAID = ("phase", "category", "name", "process", "thread", "device", "stream")


def _stage(
    names: TraceNames, own: Arguments, *, device: int, queue: int, stage: int, kernel: int, name: int
) -> tuple[str, str, str, str, str, int | None, int | None]:
    """What a render stage is: the columns of `_STAGE_SAID`."""
    kind = names.specifications.get(stage, "Kernel")
    lane = names.specifications.get(queue, "")
    found = _STREAM.search(lane)
    stream = int(found[1]) if found else None
    text = names.events.get(name) or names.kernels.get(kernel) or kind
    if text == "Memcpy" and own.get("copy kind"):
        text = f"Memcpy {own['copy kind']}"
    number = device if abs(device) < _INT32 else None
    category = _STAGES.get(kind, "kernel")
    return COMPLETE, category, text, str(device), lane.partition("] ")[2] or lane or "stream", number, stream


def _word(value: object) -> str | None:
    """NCCL's word in lower case, as its logs are read; None where it is empty."""
    return str(value).lower() or None if value else None
