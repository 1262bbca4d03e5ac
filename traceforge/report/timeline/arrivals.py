"""Collectives: the lines that link their arrivals across ranks, and the rows of one rank. In: arrivals. Out: lists.

Where there are too many for lines, those whose ranks arrive furthest apart are kept. Calls of a rank that are under way
at once stand in rows of their own, up to three.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.report.formatting import clean, size
from traceforge.report.timeline.axis import TimeAxis
from traceforge.report.timeline.streams import Blocks

_MOST_ARRIVALS = 40_000
_LEAST_COLLECTIVES = 4
_MOST_ROWS = 3


@dataclass(frozen=True, slots=True)
class LinkedCollectives:
    """Collectives whose arrivals are drawn as one line over all ranks.

    Attributes:
        entries: label, step of the last end, the rank that came last, ranks, steps of their arrivals.
        place: of a collective among them, by its identifier.
        left_out: collectives of the same iterations without a line.
    """

    entries: list[list[object]]
    place: dict[int, int]
    left_out: int


def linked_collectives(arrivals: pl.DataFrame, axis: TimeAxis) -> LinkedCollectives:
    """The collectives of the detailed iterations, those whose ranks arrive furthest apart where there are too many."""
    if arrivals.is_empty():
        return LinkedCollectives([], {}, 0)
    sizes = arrivals.group_by("collective_id").agg(
        pl.len().alias("members"), pl.col("late_ns").max().alias("skew_ns"), pl.col("iteration").first()
    )
    ordered = sizes.filter(pl.col("members") > 1).sort("skew_ns", "collective_id", descending=[True, False])
    most = ordered.with_columns(
        pl.col("members").cum_sum().alias("reached"), pl.int_range(pl.len()).over("iteration").alias("place")
    ).filter((pl.col("reached") <= _MOST_ARRIVALS) | (pl.col("place") < _LEAST_COLLECTIVES))
    kept = set(most["collective_id"].to_list())
    entries: list[list[object]] = []
    place: dict[int, int] = {}
    for frame in arrivals.filter(pl.col("collective_id").is_in(list(kept))).partition_by(
        "collective_id", maintain_order=True
    ):
        place[int(frame["collective_id"][0])] = len(entries)
        entries.append(_entry(frame, axis))
    return LinkedCollectives(entries, place, ordered.height - len(entries))


def label_of(row: dict[str, object]) -> str:
    """What a collective is called: operation and size."""
    operation = clean(row["op"] or "collective", 40)
    amount = row["size_bytes"]
    return operation if amount is None else f"{operation} {size(int(str(amount)))}"


def _entry(frame: pl.DataFrame, axis: TimeAxis) -> list[object]:
    first = frame.row(0, named=True)
    number = first["iteration"]
    at = [axis.step_at(number, rank, ns) for rank, ns in frame.select("rank", "arrival_ns").iter_rows()]
    ends = [axis.step_at(number, rank, ns) for rank, ns in frame.select("rank", "end_ns").iter_rows()]
    group = f"{clean(first['group_name'], 60)} ({frame.height} ranks)"
    resolved = frame.filter((pl.col("rank") == pl.col("last_rank")) & ~pl.col("below_resolution"))
    last = None if resolved.is_empty() else first["last_rank"]
    return [label_of(first), group, max(ends), last, frame["rank"].to_list(), at]


def communication_rows(arrivals: pl.DataFrame, linked: LinkedCollectives) -> list[Blocks]:
    """Rows of one rank's collectives, from its arrival to its end, with the part in which it waits for others."""
    rows: list[list[dict[str, object]]] = []
    reached: list[int] = []
    for call in arrivals.sort("arrival_ns", "end_ns").iter_rows(named=True):
        place = next((row for row, end_ns in enumerate(reached) if end_ns <= call["arrival_ns"]), len(rows))
        place = min(place, _MOST_ROWS - 1)
        if place == len(rows):
            rows.append([])
            reached.append(0)
        rows[place].append(call)
        reached[place] = max(reached[place], call["end_ns"])
    titles = ["communication", *(f"communication {number}" for number in range(2, len(rows) + 1))]
    return [_communication_row(title, calls, linked) for title, calls in zip(titles, rows, strict=False)]


def _communication_row(title: str, calls: list[dict[str, object]], linked: LinkedCollectives) -> Blocks:
    labels = [(label_of(call), clean(call["group_name"], 60), "transfer") for call in calls]
    start_ns, end_ns, last_ns = (
        np.array([call[name] for call in calls], dtype=np.int64) for name in ("arrival_ns", "end_ns", "last_arrival_ns")
    )
    link = [linked.place.get(int(str(call["collective_id"])), -1) for call in calls]
    until_ns = np.maximum(start_ns, np.minimum(last_ns, end_ns)).tolist()
    return Blocks(title, labels, start_ns, end_ns, 0, link, until_ns)
