"""Every call of a device with what launched it. In: raw events of ranks. Out: `Calls`, columns of one row a call.

Device work and launches are read for some ranks at a time, then the spans around these (operations, annotations,
modules), those of a large rank stretch by stretch, so that it fits in little memory. On a rank without a
device its host operations are the calls, with the time that is their own. Not handled: device work that another process
launched.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import ClockCourse, read_courses
from traceforge.align.rank_batches import RankBatch, RankFile
from traceforge.operation.nesting import NONE, in_parts, innermost, narrow, own_duration_ns
from traceforge.operation.rank_rows import RoleKinds, Rows
from traceforge.store.database import Store

# Whole numbers, names as narrow as these allow: there are millions of them.
Integers = NDArray[Any]

_WINDOWS = """
SELECT w.rank, w.start_ns, w.end_ns
FROM timeline.window AS w
JOIN operation.judged_iteration AS i USING (run_id, iteration)
WHERE w.run_id = $1 AND w.rank BETWEEN $2 AND $3
ORDER BY w.rank, w.start_ns
"""

_AROUND = ("operation", "annotation", "module")
_MOST_AT_ONCE = 32_768
JOINED = ("operation", "graph_launch", "no_operation", "no_launch", "no_correlation", "host")
"""How a call is joined to an operation, or why not."""
_OPERATION, _GRAPH, _NO_OPERATION, _NO_LAUNCH, _NO_CORRELATION, _HOST = range(len(JOINED))


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
    kinds, windows = RoleKinds.of(store, batch), batch.by_rank(store, _WINDOWS)
    courses = store.once(read_courses, batch.run_id)
    for one, found in _found(kinds):
        inside = _inside(windows.of(one.rank), courses[one.rank], found.start_ns)
        has_time = (found.start_ns >= 0) & (found.duration_ns >= 0)
        calls = Calls(
            kinds.names, found.name, found.joined, found.operation, found.operation_id, found.annotation, found.module,
            np.maximum(found.duration_ns, 0), has_time, inside & has_time,
        )  # fmt: skip
        del found, inside, has_time
        given = [(one, calls)]
        del calls
        yield given.pop()  # nothing here holds it while it is looked at


def _inside(windows: pl.DataFrame, clock: ClockCourse, raw_ns: Integers) -> NDArray[np.bool_]:
    """Whether instants of a rank's own clock lie in one of its windows, some at a time: there are millions of them."""
    starts, ends = (windows[name].to_numpy() for name in ("start_ns", "end_ns"))
    inside = np.zeros(len(raw_ns), dtype=np.bool_)
    for some in in_parts(len(raw_ns)) if len(starts) else ():
        at = clock.aligned(raw_ns[some])
        window = np.searchsorted(starts, at, side="right") - 1
        inside[some] = (window >= 0) & (at < ends[window])
    return inside


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


@dataclass(frozen=True, slots=True)
class _DeviceCalls:
    """Device work with its launch; shapes (calls,).

    Attributes:
        launch_track, launch_ns: of the launch; `NONE` and the call's own start where it is not known.
        joined: index into `JOINED`, as far as the launch tells.
    """

    name: Integers
    start_ns: Integers
    duration_ns: Integers
    launch_track: Integers
    launch_ns: Integers
    joined: Integers


def _found(kinds: RoleKinds) -> Iterator[tuple[RankFile, _Found]]:
    """Calls of each rank; the spans around those of a large rank are read and looked at one stretch after the other."""
    ranks = kinds.batch.ranks
    launched = _launched(kinds) if any(one.has_device for one in ranks) else {}
    training = kinds.tracks("operation") | kinds.tracks("step") if launched else {}
    if len(ranks) == 1 and launched:
        yield ranks[0], _in_stretches(kinds, launched, training.get(ranks[0].source_id, NONE))
        return
    if len(ranks) == 1:
        yield ranks[0], _on_host({role: kinds.only(role) for role in _AROUND})
        return
    around = {role: kinds.read(role) for role in _AROUND}
    for one in ranks:
        by_role = {role: events.rows(one.source_id) for role, events in around.items()}
        if one.has_device:
            whole = [(slice(None), by_role)]
            yield one, _on_device(launched.pop(one.source_id), whole, training.get(one.source_id, NONE))
        else:
            yield one, _on_host(by_role)


@dataclass(frozen=True, slots=True)
class _Launches:
    """Launches of a file by their correlation, ascending, the earliest of equals first; shapes (launches,)."""

    correlation: Integers
    track: Integers
    start_ns: Integers
    is_graph: NDArray[np.bool_]

    def places(self, correlation: Integers) -> Integers:
        """The earliest launch of each device event; `NONE` where it was not recorded."""
        if not len(self.correlation):
            return np.full(len(correlation), NONE)
        place = np.minimum(np.searchsorted(self.correlation, correlation), len(self.correlation) - 1)
        place[(self.correlation[place] != correlation) | (correlation < 0)] = NONE
        return place


def _launched(kinds: RoleKinds) -> dict[int, _DeviceCalls]:
    """Device work of each file of a batch that has a device."""
    launches, found = _launches(kinds), dict[int, _DeviceCalls]()
    devices = kinds.of_files("device")
    for source_id, own in launches.items():
        device = devices(source_id)
        place = own.places(device.correlation)
        is_known = place != NONE
        is_graph = is_known & own.is_graph[place] if len(own.is_graph) else is_known
        joined = np.full(len(place), _OPERATION, dtype=np.int8)
        joined[is_graph], joined[~is_known], joined[device.correlation < 0] = _GRAPH, _NO_LAUNCH, _NO_CORRELATION
        at = _at(own.start_ns, place)
        at[~is_known] = device.start_ns[~is_known]
        track = _at(own.track, place)
        found[source_id] = _DeviceCalls(device.name, device.start_ns, device.duration_ns, track, at, joined)
    return found


def _launches(kinds: RoleKinds) -> dict[int, _Launches]:
    """Of each file of a batch that has a device."""
    launches, found = kinds.of_files("launch"), dict[int, _Launches]()
    is_graph = kinds.names["name"].str.contains("GraphLaunch", literal=True).to_numpy()
    for one in kinds.batch.ranks:
        if one.has_device:
            rows = launches(one.source_id)
            order = np.flatnonzero(rows.correlation >= 0)
            order = order[np.lexsort((rows.start_ns[order], rows.correlation[order]))]
            found[one.source_id] = _Launches(
                rows.correlation[order], rows.track[order], rows.start_ns[order], is_graph[rows.name[order]]
            )
    return found


def _in_stretches(kinds: RoleKinds, launched: dict[int, _DeviceCalls], training_track: int) -> _Found:
    """Calls of the only rank of a batch, taken out of `launched`."""
    device = launched.popitem()[1]
    return _on_device(device, _by_stretch(kinds, device), training_track)


def _by_stretch(kinds: RoleKinds, device: _DeviceCalls) -> Iterator[tuple[Integers, dict[str, Rows]]]:
    """Some calls of the only rank of a batch, and the spans that may be around them."""
    open_rows = dict[str, Rows]()
    for since, until in pairwise(_cuts(device.launch_ns)):
        by_role = {}
        for role in _AROUND:
            rows = kinds.only(role, (since, until))
            by_role[role] = rows.beside(open_rows[role]) if role in open_rows else rows
        yield np.flatnonzero((device.launch_ns >= since) & (device.launch_ns < until)), by_role
        # What is open at the end of a stretch is around what the next one begins with.
        open_rows = {role: rows.take(rows.start_ns + rows.duration_ns > until) for role, rows in by_role.items()}


def _cuts(launch_ns: Integers) -> list[int]:
    """Times that divide launches into stretches of as many as are looked at together."""
    inside = np.sort(launch_ns)[_MOST_AT_ONCE::_MOST_AT_ONCE]
    first, last = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    return [first, *np.unique(inside).tolist(), last]


def _on_device(
    device: _DeviceCalls, stretches: Iterable[tuple[Integers | slice, dict[str, Rows]]], training_track: int
) -> _Found:
    count = len(device.name)
    operation, annotation, module = (np.full(count, NONE, dtype=np.int32) for _ in range(3))
    operation_id, joined = np.full(count, NONE), device.joined.copy()
    for own, by_role in stretches:
        operations, track, at = by_role["operation"], device.launch_track[own], device.launch_ns[own]
        around = np.where(joined[own] == _OPERATION, innermost(operations.spans(), track, at), NONE)
        joined[own] = np.where((joined[own] == _OPERATION) & (around == NONE), _NO_OPERATION, joined[own])
        operation[own], operation_id[own] = _at(operations.name, around), _at(operations.event_id, around)
        module[own] = _named(by_role, "module", track, at)
        named = _named(by_role, "annotation", track, at)
        elsewhere = (named == NONE) & (track != NONE)
        training = np.full(int(elsewhere.sum()), training_track)
        named[elsewhere] = _named(by_role, "annotation", training, at[elsewhere])
        annotation[own] = named
    return _Found(device.start_ns, device.duration_ns, device.name, joined, operation, operation_id, annotation, module)


def _on_host(by_role: dict[str, Rows]) -> _Found:
    """Operations with the time of their own; annotations where there are no operations."""
    spans = by_role["operation"] if len(by_role["operation"].name) else by_role["annotation"]
    has_no_time = (spans.duration_ns < 0) | (spans.start_ns < 0)
    lasting = narrow(own_duration_ns(spans.spans()))
    lasting[has_no_time] = NONE
    joined = np.full(len(spans.name), _HOST, dtype=np.int8)
    module = _named(by_role, "module", spans.track, spans.start_ns)
    annotation = _named(by_role, "annotation", spans.track, spans.start_ns)
    if spans is by_role["annotation"]:
        annotation = np.full(len(spans.name), NONE, dtype=np.int32)
    return _Found(spans.start_ns, lasting, spans.name, joined, spans.name, spans.event_id, annotation, module)


def _named(by_role: dict[str, Rows], role: str, track: Integers, at_ns: Integers) -> Integers:
    events = by_role[role]
    if not len(events.name):
        return np.full(len(track), NONE, dtype=np.int32)
    return _at(events.name, innermost(events.spans(), track, at_ns))


def _at(values: Integers, places: Integers) -> Integers:
    """Values at places, `NONE` where there is none."""
    if not len(values):
        return np.full(len(places), NONE)
    result: Integers = np.where(places == NONE, NONE, values[places])
    return result
