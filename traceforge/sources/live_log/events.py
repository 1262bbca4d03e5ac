"""Events of complete steps. In: a table of rows. Out: a frame of events as profilers write them, in order of time.

A step is `ProfilerStep#N`; the training thread's innermost stretch at each instant is an annotation of its name, or the
call of a collective, `c10d::OP`; the collective itself, from its call to its result, is `gloo:OP` on a track of its
own (a message on the thread's), or `live:OP` where another backend does the work: it tells what the host saw.
"""

import json
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.reading.timeline_rows import COMPLETE
from traceforge.sources.live_log.frames import Table
from traceforge.sources.live_log.innermost import innermost
from traceforge.sources.live_log.opening import RecorderFacts
from traceforge.sources.live_log.signs import Signs

_LARGEST_STEP = 2**31
_MESSAGES = ("send", "recv")
DELAY = -2
"""Number of the name of a delay that a pacing hook kept."""


class LiveRow(IntEnum):
    """Kinds of rows in the file."""

    STEP = 0
    PHASE = 1
    COLLECTIVE = 2
    PACE = 3
    DEVICE = 4
    DEVICE_COLLECTIVE = 5
    DEVICE_MARK = 6


@dataclass(frozen=True, slots=True)
class ShownEvents:
    """ShownEvents, and which of them are collectives.

    Attributes:
        frame: as `TimelineRows.add` takes it.
        meeting: number of the kind of collective, by event; -1 where it is none.
        sequence: of the collective in its group, by event.
        is_asynchronous: by event.
    """

    frame: pl.DataFrame
    meeting: NDArray[np.int64]
    sequence: NDArray[np.int64]
    is_asynchronous: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _EventPart:
    """ShownEvents of one kind; `name` is a place in a list of names."""

    category: str
    thread: NDArray[np.int64]
    name: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    meeting: NDArray[np.int64]
    sequence: NDArray[np.int64]
    is_asynchronous: NDArray[np.bool_]
    record: NDArray[np.int64]


def events_of(table: Table, signs: Signs, opening: RecorderFacts, *, since_ns: int, calls: int) -> ShownEvents:
    """ShownEvents of rows.

    Args:
        table: rows kind, name, start, end, a, b, c.
        since_ns: what a stretch of the training thread did before was reported already.
        calls: collectives reported before, for their numbers.
    """
    step, phase, meeting = (table[1:, table[0] == kind] for kind in (LiveRow.STEP, LiveRow.PHASE, LiveRow.COLLECTIVE))
    pace = table[1:, table[0] == LiveRow.PACE]
    nobody = np.zeros(pace.shape[1], dtype=np.int64)
    phase = np.concatenate([phase, np.stack([nobody + DELAY, pace[1], pace[2], nobody, nobody, nobody])], axis=1)
    phases = {**signs.phases, DELAY: "pacing_delay"}
    names: dict[str, int] = {}
    other = phase[:, phase[3] != 0]
    parts = [
        _steps(step, names),
        *_thread(phase[:, phase[3] == 0], phases, meeting, signs, names, since_ns, calls),
        _plain("user_annotation", other, _named(other[0], phases, names), 10 + other[3]),
        _works(meeting, signs, names, calls, opening.prefix),
    ]
    category = np.repeat([part.category for part in parts], [len(part.name) for part in parts])
    columns = {
        field: np.concatenate([getattr(part, field) for part in parts])
        for field in _EventPart.__slots__
        if field != "category"
    }
    order = np.lexsort((-columns["end_ns"], columns["start_ns"]))
    columns = {field: values[order] for field, values in columns.items()}
    known = pl.Series(list(names), dtype=pl.String)
    record = pl.Series(columns["record"])
    frame = pl.DataFrame(
        {
            "phase": pl.Series([COMPLETE]).new_from_index(0, len(order)),
            "category": pl.Series(category[order].tolist(), dtype=pl.String),
            "name": known.gather(columns["name"]) if len(known) else pl.Series([], dtype=pl.String),
            "process": pl.Series([opening.process]).new_from_index(0, len(order)),
            "thread": pl.Series(columns["thread"]).cast(pl.String),
            "raw_start_ns": columns["start_ns"] + opening.ahead_ns,
            "duration_ns": columns["end_ns"] - columns["start_ns"],
            "record_function_id": record.to_frame("r").select(pl.when(pl.col("r") >= 0).then("r"))["r"],
        }
    )
    return ShownEvents(frame, columns["meeting"], columns["sequence"], columns["is_asynchronous"])


def collective_rows(events: ShownEvents, signs: Signs, first_event: int) -> pl.DataFrame:
    """Rows of raw.collective, of events numbered from `first_event` on."""
    places = np.flatnonzero(events.meeting >= 0)
    own = events.meeting[places]
    numbers = np.unique(own).tolist()
    kinds = pl.DataFrame(
        [
            (number, one.op, one.group, None if one.ranks is None else len(one.ranks), one.sent_elements,
             one.received_elements, one.dtype)
            for number in numbers
            for one in (signs.meetings[number],)
        ],
        schema={
            "meeting": pl.Int64, "collective_name": pl.String, "process_group_name": pl.String, "group_size": pl.Int32,
            "in_elements": pl.Int64, "out_elements": pl.Int64, "dtype": pl.String,
        },
        orient="row",
    )  # fmt: skip
    rows = pl.DataFrame(
        {
            "event_id": first_event + places,
            "meeting": own,
            "sequence": events.sequence[places],
            "is_asynchronous": events.is_asynchronous[places],
        }
    )
    return rows.join(kinds, on="meeting", how="left", maintain_order="left").drop("meeting")


def message_rows(events: ShownEvents, signs: Signs, first_event: int) -> pl.DataFrame:
    """Rows of raw.argument: who is at the other end of a send or receive."""
    told = {
        number: json.dumps({"Src Rank" if "recv" in one.op else "Dst Rank": one.peer})
        for number, one in signs.meetings.items()
        if one.peer is not None
    }
    places = np.flatnonzero(np.isin(events.meeting, list(told)))
    args = [told[number] for number in events.meeting[places].tolist()]
    return pl.DataFrame(
        {"event_id": first_event + places, "args": args}, schema={"event_id": pl.Int64, "args": pl.String}
    )


def pacing_rows(table: Table, signs: Signs) -> pl.DataFrame:
    """Rows of raw.pacing."""
    name, start, end, asked, wait, step = table[1:, table[0] == LiveRow.PACE]
    told = [signs.arms[number] for number in name.tolist()]
    fits = (step >= 0) & (step < _LARGEST_STEP)
    return pl.DataFrame(
        {
            "iteration": np.where(fits, step, 0),
            "arm": [arm for arm, _ in told],
            "state": [state for _, state in told],
            "asked_delay_ns": asked,
            "delay_ns": end - start,
            "wait_ns": wait,
        },
        schema_overrides={"iteration": pl.Int32, "arm": pl.String, "state": pl.String},
    )


def _steps(step: Table, names: dict[str, int]) -> _EventPart:
    numbers = np.where((step[3] >= 0) & (step[3] < _LARGEST_STEP), step[3], 0)
    named = np.array([names.setdefault(f"ProfilerStep#{number}", len(names)) for number in numbers.tolist()], np.int64)
    return _plain("user_annotation", step, named, np.zeros_like(numbers))


def _thread(
    phase: Table,
    phases: dict[int, str],
    meeting: Table,
    signs: Signs,
    names: dict[str, int],
    since_ns: int,
    calls: int,
) -> tuple[_EventPart, _EventPart]:
    """What the training thread did at each instant: annotations, and calls of collectives."""
    own = np.flatnonzero(meeting[5] == 0)
    starts = np.concatenate([np.maximum(phase[1], since_ns), meeting[1, own]])
    held = np.clip(meeting[4, own], 1, np.maximum(meeting[2, own] - meeting[1, own], 1))
    owner, since, until = innermost(starts, np.concatenate([phase[2], meeting[1, own] + held]))
    is_call = owner >= phase.shape[1]
    pieces = np.stack([owner, since, until])
    annotated, called = pieces[:, ~is_call], pieces[:, is_call]
    place = own[called[0] - phase.shape[1]]
    _, first = np.unique(place, return_index=True)
    record = np.full(len(place), -1)
    record[first] = 2 * (calls + place[first])
    named = _named(phase[0], phases, names)
    calls_named = _named(meeting[0], {n: f"c10d::{one.op}" for n, one in signs.meetings.items()}, names)
    zeros = [np.zeros(some.shape[1], dtype=np.int64) for some in (annotated, called)]
    return (
        _plain("user_annotation", annotated, named[annotated[0]], zeros[0]),
        _plain("cpu_op", called, calls_named[place], zeros[1], record),
    )


def _works(meeting: Table, signs: Signs, names: dict[str, int], calls: int, prefix: str) -> _EventPart:
    count = meeting.shape[1]
    named = _named(meeting[0], {n: f"{prefix}:{one.op}" for n, one in signs.meetings.items()}, names)
    is_asynchronous = meeting[4] < meeting[2] - meeting[1]
    record = 2 * (calls + np.arange(count)) + 1
    # A message begins within its call, on the thread that issues it, as profilers show it.
    messages = [number for number, one in signs.meetings.items() if one.op in _MESSAGES]
    track = np.where(np.isin(meeting[0], messages), 0, 1)
    return _EventPart(
        "user_annotation", track, named, meeting[1], meeting[2], meeting[0], meeting[3], is_asynchronous, record
    )


def _plain(
    category: str,
    stretches: Table,
    named: NDArray[np.int64],
    thread: NDArray[np.int64],
    record: NDArray[np.int64] | None = None,
) -> _EventPart:
    """ShownEvents that are no collectives, from columns of which the second and third are start and end."""
    none = np.full(len(named), -1)
    is_asynchronous = np.zeros(len(named), dtype=np.bool_)
    return _EventPart(
        category, thread, named, stretches[1], stretches[2], none, none, is_asynchronous,
        none if record is None else record,
    )  # fmt: skip


def _named(numbers: NDArray[np.int64], known: dict[int, str], names: dict[str, int]) -> NDArray[np.int64]:
    """Place of each number's name among the names."""
    if not len(numbers):
        return np.zeros(0, dtype=np.int64)
    distinct, place = np.unique(numbers, return_inverse=True)
    return np.array([names.setdefault(known[n], len(names)) for n in distinct.tolist()], dtype=np.int64)[place]
