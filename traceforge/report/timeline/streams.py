"""What an opened rank did, operation by operation. In: raw events, arrivals, gaps. Out: rows of named blocks.

On a device each call is named after the host operation around its launch, and its kernel stands in the details. On a
rank without a device the innermost host operation names each instant. Not handled: work launched more than one
iteration ahead, which keeps the kernel's name.
"""

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import ClockCourse
from traceforge.operation.kernel_name import short_name
from traceforge.operation.nesting import NONE, Spans, innermost
from traceforge.report.formatting import clean, duration, spaced

Integers = NDArray[np.int64]

_MOST_STREAMS = 3
_MOST_BLOCKS = 1_200
_NAME_LETTERS = 80


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of one row, in order of time, ns on the aligned clock.

    Attributes:
        title: what the row is.
        labels: what a block is called, what its details add, and the phase that colours it, one entry a block.
        left_out: blocks that are not here, as there were too many; the shortest.
        link: number of the linked collective of each block, -1 where there is none; empty where none has one.
        until: instant at which waiting ends in each block; empty where none waits.
    """

    title: str
    labels: list[tuple[str, str, str]]
    start_ns: Integers
    end_ns: Integers
    left_out: int = 0
    link: list[int] = field(default_factory=list)
    until_ns: list[int] = field(default_factory=list)


def host_row(rows: pl.DataFrame) -> list[Blocks]:
    """What the host of one rank did in one iteration while nothing ran.

    A block has the name of the call that fills most of it; else that of its cause, and a shorter call stands in the
    details with its duration.

    Args:
        rows: its rows of sections/timeline_host for that iteration.
    """
    if rows.is_empty():
        return []
    labels = [_host_label(*row) for row in rows.select("cause", "call", "call_ns", "duration_ns").iter_rows()]
    start_ns = rows["start_ns"].to_numpy()
    return [Blocks("host", labels, start_ns, start_ns + rows["duration_ns"].to_numpy())]


def _host_label(cause: str | None, call: str | None, call_ns: int | None, lasting_ns: int) -> tuple[str, str, str]:
    phase = "input" if cause in ("input", "data_loading") else "runtime"
    doing = spaced(cause or "idle")
    name = clean(call or "", _NAME_LETTERS)
    if name and 2 * (call_ns or 0) > lasting_ns:
        return name, doing, phase
    # Whether that is because the host is slow or because it stalls, the ledger says and not the gap.
    doing = "nothing launched" if cause == "late_launch" else doing
    return doing, f"{name} for {duration(call_ns)} of it" if name and call_ns is not None else "", phase


def work_rows(
    events: pl.DataFrame, names: pl.DataFrame, window: tuple[int, int], clock: ClockCourse, *, has_device: bool
) -> list[Blocks]:
    """Rows of what one rank worked on in one iteration.

    Args:
        events: its rows of sections/timeline_events for that iteration.
        names: its rows of sections/timeline_names.
        window: start and end of the iteration on the aligned clock, ns.
    """
    if events.is_empty():
        return []
    timed = events.join(names.select("kind_id", "track_id", "name", "class", "role"), on="kind_id", how="inner")
    start_ns = clock.aligned(timed["raw_start_ns"].to_numpy())
    timed = timed.with_columns(start_ns=pl.Series(start_ns), end_ns=pl.Series(start_ns) + timed["duration_ns"])
    return _device_rows(timed, window) if has_device else _host_rows(timed, window)


def _device_rows(events: pl.DataFrame, window: tuple[int, int]) -> list[Blocks]:
    device = events.filter(
        (pl.col("role") == "device") & (pl.col("start_ns") < window[1]) & (pl.col("end_ns") > window[0])
    ).with_columns(operation=pl.lit(None, pl.String))
    device = device.with_columns(operation=pl.Series(_operations(device, events), dtype=pl.String))
    work = device.filter(pl.col("class").is_in(["compute", "copy"]))
    streams = _busiest(work, "stream")
    return [
        _row("computation" if len(streams) == 1 else f"stream {stream}", work.filter(pl.col("stream") == stream))
        for stream in streams
    ]


def _operations(device: pl.DataFrame, events: pl.DataFrame) -> list[str | None]:
    """Name of the host operation around each call's launch; None where there is none."""
    launches = events.filter((pl.col("role") == "launch") & (pl.col("correlation") >= 0))
    first = launches.unique("correlation", keep="first", maintain_order=True).select(
        "correlation", pl.col("track_id").alias("launch_track"), pl.col("start_ns").alias("launch_ns")
    )
    joined = device.join(first, on="correlation", how="left", maintain_order="left")
    operations = events.filter(pl.col("role") == "operation")
    names = operations["name"].to_list()
    track = joined["launch_track"].fill_null(NONE - 1).to_numpy().astype(np.int64)
    at_ns = joined["launch_ns"].fill_null(0).to_numpy().astype(np.int64)
    found = innermost(_spans(operations), track, at_ns)
    return [None if place == NONE else names[place] for place in found.tolist()]


def _spans(events: pl.DataFrame) -> Spans:
    return Spans.between(*(events[name].to_numpy().astype(np.int64) for name in ("track_id", "start_ns", "end_ns")))


def _row(title: str, work: pl.DataFrame) -> Blocks:
    kept = work.sort("duration_ns", descending=True, maintain_order=True).head(_MOST_BLOCKS).sort("start_ns", "end_ns")
    labels = [_label(*row) for row in kept.select("name", "operation", "class").iter_rows()]
    return Blocks(title, labels, kept["start_ns"].to_numpy(), kept["end_ns"].to_numpy(), work.height - kept.height)


def _label(name: str, operation: str | None, klass: str) -> tuple[str, str, str]:
    if klass == "operation":
        return clean(name, _NAME_LETTERS), "", "compute"
    kernel = clean(short_name(name), _NAME_LETTERS)
    phase = "copy" if klass == "copy" else "compute"
    return (clean(operation, _NAME_LETTERS), kernel, phase) if operation else (kernel, "", phase)


def _host_rows(events: pl.DataFrame, window: tuple[int, int]) -> list[Blocks]:
    """Innermost operations, a row a thread; what starts and awaits communication is shown by the row of collectives."""
    operations = events.filter(
        (pl.col("role") == "operation") & (pl.col("start_ns") < window[1]) & (pl.col("end_ns") > window[0])
    )
    training = set(events.filter(pl.col("role") == "step")["track_id"].to_list())
    tracks = sorted(_busiest(operations, "track_id"), key=lambda track: track not in training)
    own = [operations.filter(pl.col("track_id") == track) for track in tracks]
    titles = ["training thread" if track in training else "other thread" for track in tracks]
    others = [place for place, title in enumerate(titles) if title == "other thread"]
    for number, place in enumerate(others if len(others) > 1 else [], start=1):
        titles[place] = f"other thread {number}"
    rows = [_innermost_row(title, frame, window) for title, frame in zip(titles, own, strict=True)]
    return [row for row in rows if len(row.labels)]


def _busiest(events: pl.DataFrame, column: str) -> list[int]:
    """Streams or threads by the time of their events."""
    busy = (
        events.group_by(column).agg(pl.col("duration_ns").sum()).sort("duration_ns", column, descending=[True, False])
    )
    return busy[column].to_list()[:_MOST_STREAMS]


def _innermost_row(title: str, operations: pl.DataFrame, window: tuple[int, int]) -> Blocks:
    spans = _spans(operations)
    edges = np.unique(np.clip(np.concatenate([spans.start_ns, spans.start_ns + spans.duration_ns]), *window))
    inside = innermost(spans, np.full(len(edges), spans.track[0]), edges)[:-1]
    changes = np.flatnonzero(np.diff(inside, prepend=NONE - 1))
    owner = inside[changes]
    start_ns, end_ns = edges[changes], np.append(edges[changes[1:]], edges[-1])
    kept = owner != NONE
    pieces = pl.DataFrame({"owner": owner[kept], "start_ns": start_ns[kept], "end_ns": end_ns[kept]})
    pieces = pieces.with_columns(
        duration_ns=pl.col("end_ns") - pl.col("start_ns"),
        name=operations["name"].gather(pieces["owner"]),
        operation=pl.lit(None, pl.String),
    ).with_columns(pl.lit("operation").alias("class"))
    return _row(title, pieces)
