"""What one rank did, piece by piece. Reads raw events by class; gives kernels, or innermost host operations.

A piece of the program is a name and its ordinal within the rank's iteration. Where a name does not occur as often as
in most iterations its ordinals are in doubt, so that its pieces in that iteration are left out.
"""

import numpy as np
import polars as pl

from traceforge.align.clock_course import read_courses
from traceforge.operation.nesting import Spans, longest_inside_ns
from traceforge.store.database import Store
from traceforge.thresholds import replay as thresholds
from traceforge.vocabulary import vocabulary

# Names as their place among all names of the database: a large rank has millions of events, and few names.
_EVENTS = """
WITH named AS (
  SELECT category, name, class, CAST(DENSE_RANK() OVER (ORDER BY name) AS INTEGER) AS number FROM align.name_class
)
SELECT c.number AS name, o.raw_start_ns AS start_ns, o.raw_start_ns + o.duration_ns AS end_ns {columns}
FROM raw.occurrence AS o
JOIN raw.event_kind AS k USING (source_id, kind_id)
JOIN named AS c ON c.category IS NOT DISTINCT FROM k.category AND c.name = k.name
WHERE o.source_id = ? AND k.phase = 'X' AND o.raw_start_ns IS NOT NULL AND o.duration_ns > 0
  AND LIST_CONTAINS(?, c.class)
ORDER BY {order}
"""
_OF_HOST = """
, c.class = 'operation' AS is_operation, c.class = 'annotation' AS is_annotation, c.name = 'pacing_delay' AS is_pacing,
COALESCE(k.track_id, -1) AS track_id
"""
_WINDOWS = """
SELECT w.iteration, w.start_ns, w.end_ns
FROM timeline.window AS w
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE w.run_id = ? AND w.rank = ? AND NOT i.is_partial AND NOT i.is_warmup
ORDER BY w.start_ns
"""

_KERNELS = ["compute"]
_MOST_PLACES = 60
"""Pieces an iteration that are looked at, those that take most of the time."""


def kernels(store: Store, run_id: int, rank: int, source_id: int) -> pl.DataFrame:
    """Compute kernels of a rank: name (a number), iteration, ordinal, start_ns, end_ns on the aligned clock."""
    return _numbered(store, run_id, rank, _events(store, source_id, _KERNELS, order="start_ns, end_ns, c.number"))


def host_operations(store: Store, run_id: int, rank: int, source_id: int) -> pl.DataFrame:
    """Host operations of a rank that do their work themselves, or its annotations where it has none; as `kernels`.

    Nothing within them, be it an operation or a driver call, takes more than a fifth of them.
    """
    inside = [one.name for one in vocabulary().activities]
    order = "track_id, start_ns, end_ns DESC"
    events = _events(store, source_id, [*inside, "communication_call"], columns=_OF_HOST, order=order)
    has_operations = events["is_operation"].any()
    work = "is_operation" if has_operations else "is_annotation"
    # What a pacing hook asked for takes as long as it asked for, whatever runs beside it.
    events = events.filter(~pl.col("is_annotation" if has_operations else "is_pacing"))
    longest = longest_inside_ns(
        Spans.between(*(events[name].to_numpy() for name in ("track_id", "start_ns", "end_ns")))
    )
    own = pl.Series(longest) <= thresholds.MOST_WITHIN_SHARE * (events["end_ns"] - events["start_ns"])
    return _numbered(store, run_id, rank, events.filter(own & events[work]))


def _events(store: Store, source_id: int, classes: list[str], *, order: str, columns: str = "") -> pl.DataFrame:
    with store.narrowed(source_id, source_id):
        return store.query(_EVENTS.format(columns=columns, order=order), [source_id, classes])


def _windows(store: Store, run_id: int, rank: int) -> pl.DataFrame:
    return store.query(_WINDOWS, [run_id, rank])


def _numbered(store: Store, run_id: int, rank: int, events: pl.DataFrame) -> pl.DataFrame:
    windows = store.once(_windows, run_id, rank)
    clock = store.once(read_courses, run_id)[rank]
    start, end = (clock.aligned(events[name].to_numpy()) for name in ("start_ns", "end_ns"))
    window = np.searchsorted(windows["start_ns"].to_numpy(), start, side="right") - 1
    inside = window >= 0
    inside[inside] = start[inside] < windows["end_ns"].to_numpy()[window[inside]]
    placed = pl.DataFrame(
        {
            "name": events["name"].filter(inside),
            "iteration": windows["iteration"].gather(window[inside]),
            "start_ns": start[inside],
            "end_ns": end[inside],
        }
    ).sort("start_ns", maintain_order=True)
    often = pl.len().over("name", "iteration")
    placed = placed.with_columns(ordinal=pl.int_range(pl.len()).over("name", "iteration"), often=often)
    usual = placed.group_by("name").agg(usual=pl.col("often").median())
    return _longest(placed.join(usual, on="name").filter(pl.col("often") == pl.col("usual")))


def _longest(placed: pl.DataFrame) -> pl.DataFrame:
    spent = placed.group_by("name", "ordinal").agg(spent=(pl.col("end_ns") - pl.col("start_ns")).sum())
    chosen = spent.sort("spent", "name", "ordinal", descending=[True, False, False]).head(_MOST_PLACES)
    return placed.join(
        chosen.select("name", "ordinal"), on=["name", "ordinal"], how="semi", maintain_order="left"
    ).select("name", "iteration", "ordinal", "start_ns", "end_ns")
