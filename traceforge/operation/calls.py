"""Every call of a device with what launched it. In: raw events of ranks. Out: `Calls`, columns of one row a call.

One scan of the events: device work, launches, and the spans around these (operations, annotations, modules), read for
some ranks at a time. On a rank without a device its host operations are the calls, with
the time that is their own. Not handled: device work that another process launched.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import read_courses
from traceforge.align.rank_batches import RankBatch, RankFile
from traceforge.operation.nesting import NONE, Spans, innermost, own_duration_ns
from traceforge.store.database import Store

Integers = NDArray[np.int64]

_KINDS = """
WITH step AS (
SELECT DISTINCT r.source_id, s.annotation FROM align.step AS s JOIN align.rank AS r USING (run_id, rank)
),
classed AS (
SELECT k.source_id, k.kind_id, COALESCE(k.track_id, -1) AS track, k.name, c.class,
  CASE
    WHEN c.canonical_category IN ('kernel', 'gpu_memcpy', 'gpu_memset') THEN 'device'
    WHEN c.canonical_category IN ('cuda_runtime', 'cuda_driver') THEN 'launch'
    WHEN c.class = 'iteration' OR s.annotation IN (k.name, REGEXP_REPLACE(k.name, '[0-9]+', '#')) THEN 'step'
    WHEN c.canonical_category = 'cpu_op' THEN 'operation'
    WHEN c.canonical_category = 'user_annotation' THEN 'annotation'
    WHEN c.canonical_category = 'python_function' AND k.name LIKE 'nn.Module: %' THEN 'module'
  END AS role
FROM raw.event_kind AS k
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM k.category AND c.name = k.name
LEFT JOIN step AS s ON s.source_id = k.source_id AND c.canonical_category = 'user_annotation'
WHERE k.source_id IN (SELECT UNNEST($1)) AND k.source_id BETWEEN $2 AND $3 AND k.phase = 'X'
)
SELECT source_id, kind_id, track, name, class, role FROM classed WHERE role IS NOT NULL ORDER BY source_id, kind_id
"""

_EVENTS = """
SELECT source_id, event_id, kind_id, COALESCE(raw_start_ns, -1) AS start_ns, COALESCE(duration_ns, -1) AS duration_ns,
  COALESCE(correlation, -1) AS correlation
FROM raw.occurrence
WHERE source_id IN (SELECT UNNEST($1)) AND source_id BETWEEN $2 AND $3
"""

_WINDOWS = """
SELECT w.rank, w.start_ns, w.end_ns
FROM timeline.window AS w
JOIN operation.judged_iteration AS i USING (run_id, iteration)
WHERE w.run_id = $1 AND w.rank BETWEEN $2 AND $3
ORDER BY w.rank, w.start_ns
"""

_ROLES = ("device", "launch", "step", "operation", "annotation", "module")
JOINED = ("operation", "graph_launch", "no_operation", "no_launch", "no_correlation", "host")
"""How a call is joined to an operation, or why not."""
_OPERATION, _GRAPH, _NO_OPERATION, _NO_LAUNCH, _NO_CORRELATION, _HOST = range(len(JOINED))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Events of one role, or of all; shapes (events,)."""

    event_id: Integers
    name: Integers
    track: Integers
    start_ns: Integers
    duration_ns: Integers
    correlation: Integers

    def take(self, places: Integers | NDArray[np.bool_]) -> "_Rows":
        return _Rows(*(getattr(self, field)[places] for field in self.__slots__))

    def spans(self) -> Spans:
        return Spans(self.track, self.start_ns, self.start_ns + self.duration_ns)


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one rank; arrays of shape (calls,), names as indices into `names`, `NONE` where there is none.

    Attributes:
        names: text and class of every name, those of other ranks among them.
        name: of the kernel; of the operation on a rank without a device.
        joined: index into `JOINED`.
        operation: name of the operation around the launch.
        operation_id: its event.
        annotation, module: names of what is around the launch.
        has_time: whether start and duration were recorded.
        is_judged: whether the call starts in a judged iteration.
    """

    names: pl.DataFrame
    name: Integers
    joined: Integers
    operation: Integers
    operation_id: Integers
    annotation: Integers
    module: Integers
    duration_ns: Integers
    has_time: NDArray[np.bool_]
    is_judged: NDArray[np.bool_]


def read_calls(store: Store, batch: RankBatch) -> Iterator[tuple[RankFile, Calls]]:
    """All calls of each rank of a batch, judged or not, in the order of its file."""
    kinds, events, windows = batch.by_file(store, _KINDS), batch.by_file(store, _EVENTS), batch.by_rank(store, _WINDOWS)
    names = kinds.frame.select("name", "class").unique(maintain_order=True).with_row_index("number")
    numbers = kinds.frame.join(names, on=["name", "class"], how="left", maintain_order="left")["number"].to_numpy()
    roles = kinds.frame["role"].replace_strict(_ROLES, range(len(_ROLES)), return_dtype=pl.Int64).to_numpy()
    is_graph = names["name"].str.contains("GraphLaunch", literal=True).to_numpy()
    courses = read_courses(store, batch.run_id)
    for one in batch.ranks:
        first, count = kinds.place(one.source_id)
        own = slice(first, first + count)
        role, rows = _read_events(
            events.of(one.source_id), kinds.of(one.source_id), roles[own], numbers[own].astype(np.int64)
        )
        by_role = {name: rows.take(role == number) for number, name in enumerate(_ROLES)}
        del role, rows  # each as large as the rank
        found = _on_device(by_role, is_graph) if one.has_device else _on_host(by_role)
        del by_role
        starts, ends = (windows.of(one.rank)[name].to_numpy() for name in ("start_ns", "end_ns"))
        at = courses[one.rank].aligned(found.start_ns)
        window = np.searchsorted(starts, at, side="right") - 1
        inside = (window >= 0) & (at < ends[window]) if len(starts) else np.zeros(len(at), dtype=np.bool_)
        has_time = (found.start_ns >= 0) & (found.duration_ns >= 0)
        calls = Calls(
            names, found.name, found.joined, found.operation, found.operation_id, found.annotation, found.module,
            np.maximum(found.duration_ns, 0), has_time, inside & has_time,
        )  # fmt: skip
        del found, at, window, inside, has_time
        yield one, calls


def _read_events(
    events: pl.DataFrame, kinds: pl.DataFrame, roles: Integers, numbers: Integers
) -> tuple[Integers, _Rows]:
    """Role of every event of a file that has one, and the events."""
    raw = {name: events[name].to_numpy() for name in events.columns}
    kind_ids = kinds["kind_id"].to_numpy().astype(np.int64)
    # Kinds without a role share the last place.
    place_of = np.full(int(kind_ids.max(initial=-1)) + 2, NONE)
    place_of[kind_ids] = np.arange(len(kind_ids))
    place = place_of[np.minimum(raw["kind_id"], len(place_of) - 1)]
    kept = np.flatnonzero(place != NONE)
    place, tracks = place[kept], kinds["track"].to_numpy().astype(np.int64)
    times = (raw[name][kept].astype(np.int64) for name in ("start_ns", "duration_ns", "correlation"))
    return roles[place], _Rows(raw["event_id"][kept].astype(np.int64), numbers[place], tracks[place], *times)


@dataclass(frozen=True, slots=True)
class _Found:
    start_ns: Integers
    duration_ns: Integers
    name: Integers
    joined: Integers
    operation: Integers
    operation_id: Integers
    annotation: Integers
    module: Integers


def _on_device(by_role: dict[str, _Rows], is_graph_launch: NDArray[np.bool_]) -> _Found:
    device, operations = by_role["device"], by_role["operation"]
    launch, known = _launches(device, by_role["launch"])
    track, at = np.where(known, launch.track, NONE), launch.start_ns
    around = innermost(operations.spans(), track, at)
    is_graph = is_graph_launch[launch.name] & known
    joined = np.select(
        [device.correlation < 0, ~known, is_graph, around == NONE],
        [_NO_CORRELATION, _NO_LAUNCH, _GRAPH, _NO_OPERATION],
        _OPERATION,
    )
    around = np.where(joined == _OPERATION, around, NONE)
    annotation = _named(by_role, "annotation", track, at)
    elsewhere = (annotation == NONE) & known
    training = np.full(int(elsewhere.sum()), _training_track(by_role))
    annotation[elsewhere] = _named(by_role, "annotation", training, at[elsewhere])
    return _Found(
        device.start_ns, device.duration_ns, device.name, joined, _at(operations.name, around),
        _at(operations.event_id, around), annotation, _named(by_role, "module", track, at),
    )  # fmt: skip


def _on_host(by_role: dict[str, _Rows]) -> _Found:
    """Operations with the time of their own; annotations where there are no operations."""
    spans = by_role["operation"] if len(by_role["operation"].name) else by_role["annotation"]
    untimed = (spans.duration_ns < 0) | (spans.start_ns < 0)
    lasting = np.where(untimed, NONE, own_duration_ns(spans.spans()))
    joined = np.full(len(spans.name), _HOST)
    module = _named(by_role, "module", spans.track, spans.start_ns)
    annotation = _named(by_role, "annotation", spans.track, spans.start_ns)
    if spans is by_role["annotation"]:
        annotation = np.full(len(spans.name), NONE)
    return _Found(spans.start_ns, lasting, spans.name, joined, spans.name, spans.event_id, annotation, module)


def _launches(device: _Rows, launches: _Rows) -> tuple[_Rows, NDArray[np.bool_]]:
    """The earliest launch of each device event, and whether it was recorded."""
    own = launches.take(launches.correlation >= 0)
    own = own.take(np.lexsort((own.start_ns, own.correlation)))
    if not len(own.name):
        # No launch at all: the event itself stands in, known to be none.
        return device, np.zeros(len(device.name), dtype=np.bool_)
    place = np.minimum(np.searchsorted(own.correlation, device.correlation), len(own.name) - 1)
    known = (own.correlation[place] == device.correlation) & (device.correlation >= 0)
    return own.take(place), known


def _training_track(by_role: dict[str, _Rows]) -> int:
    """The thread that marks steps; the one with most operations where none does."""
    for role in ("step", "operation"):
        tracks, counts = np.unique(by_role[role].track, return_counts=True)
        if len(tracks):
            return int(tracks[np.argmax(counts)])
    return NONE


def _named(by_role: dict[str, _Rows], role: str, track: Integers, at_ns: Integers) -> Integers:
    events = by_role[role]
    return _at(events.name, innermost(events.spans(), track, at_ns))


def _at(values: Integers, places: Integers) -> Integers:
    """Values at places, `NONE` where there is none."""
    if not len(values):
        return np.full(len(places), NONE)
    result: Integers = np.where(places == NONE, NONE, values[places])
    return result
