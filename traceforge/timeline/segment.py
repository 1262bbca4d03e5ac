"""What each rank did when. Reads raw events by class and matched arrivals; fills timeline.segment.

Each rank's intervals become layers in the order compute, transfer, wait, communication, copy, input, runtime, idle; the
first that is active at an instant names its phase. Waiting and transfer can be told apart only where every member's
arrival is known: what remains is communication. A rank without device events uses what its training thread does in
place of kernels (`host_compute`). Times of unaligned ranks stay on their own clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.rank_batches import RankBatch, rank_batches
from traceforge.store.database import Store
from traceforge.timeline.host_compute import host_compute
from traceforge.timeline.host_stall import stalls
from traceforge.timeline.layers import Intervals, Times, join, subtract, sweep, union
from traceforge.timeline.rank_events import NO_EVENTS, Events, RankEvents, read_events
from traceforge.vocabulary import UNNAMED, vocabulary

_WINDOWS = """
SELECT rank, iteration, start_ns, end_ns
FROM timeline.window
WHERE run_id = $1 AND rank BETWEEN $2 AND $3
ORDER BY rank, start_ns
"""

_COMMUNICATION = """
WITH lacking AS (
  SELECT DISTINCT rank, call_id
  FROM align.unmatched_endpoint
  WHERE run_id = $1 AND rank BETWEEN $2 AND $3 AND call_id IS NOT NULL
)
SELECT a.rank, a.arrival_ns AS start_ns, a.end_ns, a.recorded_end_ns, MAX(c.last_arrival_ns) AS last_arrival_ns,
  BOOL_AND(c.complete AND l.call_id IS NULL) AS complete
FROM timeline.arrival AS a
JOIN timeline.collective AS c USING (run_id, collective_id)
LEFT JOIN lacking AS l USING (rank, call_id)
WHERE a.run_id = $1 AND a.rank BETWEEN $2 AND $3
GROUP BY a.rank, a.call_id, a.arrival_ns, a.end_ns, a.recorded_end_ns
ORDER BY a.rank, a.arrival_ns, a.call_id
"""

_MOST_SEGMENTS = 131_072  # handed over together; a rank with more is divided in time
_SAMPLES = 1024  # of the starts of a part
_BUSY = ("compute", "copy")

_SCHEMA = {
    "run_id": pl.Int32,
    "iteration": pl.Int32,
    "rank": pl.Int32,
    "phase": pl.String,
    "activity": pl.String,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "hidden_communication_ns": pl.Int64,
}


Integers = NDArray[np.int64]
Phases = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class RankLayers:
    """A rank's intervals.

    Attributes:
        layers: intervals by name; those of an activity under its name.
        phases: phases by precedence, each with the layers that cause it; a phase may come twice.
        remainder: phase of the instants that no layer covers.
    """

    layers: Mapping[str, Intervals]
    phases: Phases
    remainder: str


@dataclass(frozen=True, slots=True)
class Segments:
    """Consecutive segments of one rank or several; shapes (segments,), names as numbers.

    Attributes:
        window: which of the windows.
        phase: place in `phase_names()`.
        activity: place in `activity_names()`.
        start_ns, duration_ns, hidden_ns: see timeline.segment.
    """

    window: Integers
    phase: Integers
    activity: Integers
    start_ns: Times
    duration_ns: Times
    hidden_ns: Times

    def frame(self) -> pl.DataFrame:
        """With the names of the columns of timeline.segment, in place of iterations `window`."""
        phases, activities = pl.Series(phase_names()), pl.Series(activity_names(), dtype=pl.String)
        return pl.DataFrame(
            {
                "window": self.window,
                "phase": phases.gather(self.phase),
                "activity": activities.gather(self.activity),
                "start_ns": self.start_ns,
                "duration_ns": self.duration_ns,
                "hidden_communication_ns": self.hidden_ns,
            }
        )


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """Consecutive segments of every iteration of every rank, some ranks at a time, or a stretch of a large one."""
    for batch in rank_batches(store):
        found: list[tuple[int, Segments, Integers]] = []
        for part in _of_batch(store, batch):
            found.append(part)
            if sum(len(one.window) for _, one, _ in found) >= _MOST_SEGMENTS:
                yield _frame(batch.run_id, found)
                found = []
        if found:
            yield _frame(batch.run_id, found)


def _of_batch(store: Store, batch: RankBatch) -> Iterator[tuple[int, Segments, Integers]]:
    """Rank, segments and the iteration of each, in bounded parts."""
    windows, communication = batch.by_rank(store, _WINDOWS), batch.by_rank(store, _COMMUNICATION)
    for one, events in read_events(store, batch):
        own = windows.of(one.rank)
        if own.is_empty():
            continue
        layers = rank_layers(events, communication.of(one.rank), has_device=one.has_device)
        del events  # the layers say what is asked of them
        iterations = own["iteration"].to_numpy()
        for part in segments_in_parts(layers, own["start_ns"].to_numpy(), own["end_ns"].to_numpy()):
            yield one.rank, part, iterations[part.window]


def _frame(run_id: int, parts: Sequence[tuple[int, Segments, Integers]]) -> pl.DataFrame:
    """Rows of timeline.segment."""
    ranks = np.concatenate([np.full(len(part.window), rank) for rank, part, _ in parts])
    iterations = np.concatenate([own for _, _, own in parts])
    frame = _joined([part for _, part, _ in parts]).frame()
    frame = frame.with_columns(run_id=pl.lit(run_id), rank=ranks, iteration=iterations)
    return frame.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def _joined(parts: Sequence[Segments]) -> Segments:
    return Segments(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Segments)))


def segments_in_parts(
    layers: RankLayers, starts_ns: Times, ends_ns: Times, most_edges: int = _MOST_SEGMENTS
) -> Iterator[Segments]:
    """The same as `segments`, in parts, so that memory does not grow with a rank's events.

    Args:
        layers: the rank's intervals.
        starts_ns, ends_ns: of each window, in order of time and apart.
        most_edges: about how many ends of intervals are looked at together.
    """
    cuts = _cuts(layers, most_edges)
    held: Segments | None = None
    for since, until in pairwise([int(starts_ns[0]), *(cut for cut in cuts if starts_ns[0] < cut < ends_ns[-1]),
                                  int(ends_ns[-1])]):  # fmt: skip
        own = np.flatnonzero((starts_ns < until) & (ends_ns > since))
        if not len(own):
            continue
        near = RankLayers(
            {name: _between(one, since, until) for name, one in layers.layers.items()}, layers.phases, layers.remainder
        )
        found = segments(near, np.maximum(starts_ns[own], since), np.minimum(ends_ns[own], until))
        found = replace(found, window=own[found.window])
        if held is not None:
            found = _joined([held, found]) if not _continues(held, found) else _mended(held, found)
        held = _slice(found, slice(-1, None))
        yield _slice(found, slice(None, -1))
    if held is not None:
        yield held


def _cuts(layers: RankLayers, most_edges: int) -> list[int]:
    """Instants with about so many ends of intervals between any two."""
    starts = [one.starts_ns for one in layers.layers.values()]
    if 2 * sum(len(one) for one in starts) <= most_edges:
        return []
    # Of each layer every so-many-th start stands for those before it: of millions no copy is made.
    step = max(most_edges // 2 // _SAMPLES, 1)
    sampled = np.sort(np.concatenate([one[step - 1 :: step] for one in starts]))
    every = max(most_edges // 2 // step, 1)
    return sorted(set(sampled[every::every].tolist()))


def _between(intervals: Intervals, since_ns: int, until_ns: int) -> Intervals:
    """Those that reach into a stretch."""
    reach = slice(np.searchsorted(intervals.ends_ns, since_ns, side="right"),
                  np.searchsorted(intervals.starts_ns, until_ns))  # fmt: skip
    return Intervals(intervals.starts_ns[reach], intervals.ends_ns[reach])


def _slice(found: Segments, part: slice) -> Segments:
    return Segments(*(getattr(found, field.name)[part] for field in fields(Segments)))


def _continues(held: Segments, found: Segments) -> bool:
    """Whether the first segment of a part goes on with the last one of the part before."""
    same = ("window", "phase", "activity")
    return all(getattr(held, name)[-1] == getattr(found, name)[0] for name in same)


def _mended(held: Segments, found: Segments) -> Segments:
    """A part whose first segment has what was held of it."""
    for name in ("duration_ns", "hidden_ns"):
        getattr(found, name)[0] += getattr(held, name)[-1]
    found.start_ns[0] = held.start_ns[-1]
    return found


def rank_layers(events: RankEvents, matched: pl.DataFrame, *, has_device: bool) -> RankLayers:
    """Layers of one rank.

    Args:
        events: every complete event.
        matched: this rank's matched collectives: start_ns, end_ns, recorded_end_ns, last_arrival_ns (of the members
            here), complete.
        has_device: whether device kernels were recorded.
    """
    activities = vocabulary().activities
    host = events.wherever.get("host_communication", NO_EVENTS)
    communication = _of(events.wherever, "communication") if has_device else host.union()
    transfer, wait, unsplit = _split(matched, communication)
    layers = {one.name: _of(events.training, one.name) for one in activities}
    layers |= {"transfer": transfer, "wait": wait, "unsplit": unsplit}
    layers |= {"communication": communication, "copy": _of(events.wherever, "copy")}
    exclusive = (("transfer", "transfer"), ("wait", "wait"), ("communication", "unsplit"))
    phases = tuple((phase, (layer,)) for phase, layer in (*exclusive, ("copy", "copy"), ("input", "input")))
    if has_device:
        layers["compute"] = _of(events.wherever, "compute")
        layers["stall"] = stalls(events)
        busy = tuple(one.name for one in activities if one.name != "input")
        return RankLayers(layers, (("compute", ("compute",)), *phases, ("runtime", busy)), "idle")
    pauses = tuple(one.name for one in activities if one.name != "input" and not one.replaces_device)
    pausing = join(*(layers[name] for name in pauses))
    own = host_compute(events.training, host, layers["input"], pausing)
    layers |= {"compute": own.surely, "enclosing": own.perhaps}
    named = ("enclosing", "annotation")
    return RankLayers(layers, (("compute", ("compute",)), *phases, ("runtime", pauses), ("compute", named)), "runtime")


def _split(matched: pl.DataFrame, communication: Intervals) -> tuple[Intervals, Intervals, Intervals]:
    """Transfer, wait, and what may be either: after the last known arrival, where not all are known."""
    arrivals, ends, last = (matched[name].to_numpy() for name in ("start_ns", "end_ns", "last_arrival_ns"))
    complete = matched["complete"].to_numpy()
    all_arrived = np.maximum(arrivals, np.minimum(last, ends))
    wait = union(arrivals, all_arrived)
    transfer, either = (union(all_arrived[some], ends[some]) for some in (complete, ~complete))
    known = union(arrivals, matched["recorded_end_ns"].to_numpy())
    return transfer, wait, join(either, subtract(communication, known))


def segments(layers: RankLayers, starts_ns: Times, ends_ns: Times) -> Segments:
    """Consecutive segments that fill windows exactly, neighbours differing in phase, activity or window.

    Args:
        layers: the rank's intervals.
        starts_ns, ends_ns: of each window, in order of time and apart.
    """
    found = sweep(list(layers.layers.values()), np.concatenate([starts_ns, ends_ns]))
    kinds = _kinds(tuple(layers.layers), layers.phases, layers.remainder)
    first, last = np.searchsorted(found.edges_ns, starts_ns), np.searchsorted(found.edges_ns, ends_ns)
    inside = slice(first[0], last[-1])
    edges, masks = found.edges_ns[inside], found.masks[inside]
    kind = kinds.number[masks]
    changes = np.ones(len(kind) + 1, dtype=np.bool_)
    changes[1:-1] = kind[1:] != kind[:-1]
    changes[first - first[0]] = changes[last - first[0]] = True
    # Pieces follow one another from the first window to the last; those between windows are dropped.
    piece = np.flatnonzero(changes)
    reached = np.append(edges, ends_ns[-1])
    hidden = np.concatenate([[0], np.cumsum(np.where(kinds.hides[masks], np.diff(reached), 0))])
    since, amount = reached[piece], hidden[piece]
    window = np.searchsorted(starts_ns, since[:-1], side="right") - 1
    kept = np.flatnonzero(since[:-1] < ends_ns[window])
    phase, activity = np.divmod(kind[piece[kept]], len(activity_names()))
    return Segments(window[kept], phase, activity, since[kept], np.diff(since)[kept], np.diff(amount)[kept])


def phase_names() -> list[str]:
    """Phases, as `Segments` numbers them."""
    return list(vocabulary().phases)


def activity_names() -> list[str | None]:
    """What a training thread does, as `Segments` numbers it: None while the device is busy."""
    return [*(one.name for one in vocabulary().activities), UNNAMED, None]


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What each set of active layers means.

    Attributes:
        number: phase and activity, by mask.
        hides: whether compute hides communication, by mask.
    """

    number: Integers
    hides: NDArray[np.bool_]


@cache
def _kinds(layers: tuple[str, ...], phases: Phases, remainder: str) -> _Kinds:
    names = phase_names()
    bit = {name: 1 << n for n, name in enumerate(layers)}
    masks = np.arange(1 << len(bit), dtype=np.int32)
    place = _first(masks, [sum(bit[layer] for layer in own) for _, own in phases])
    phase = np.array([names.index(name) for name in (*(name for name, _ in phases), remainder)])[place]
    doing = activity_names()
    activity = _first(masks, [bit[name] for name in doing[:-2] if name is not None])
    # While the device is busy the host explains nothing.
    activity[np.array([name in _BUSY for name in names])[phase]] = len(doing) - 1
    hides = (phase == names.index("compute")) & (masks & bit["communication"] != 0)
    return _Kinds(phase * len(doing) + activity, hides)


def _first(masks: NDArray[np.int32], bits: Sequence[int]) -> Integers:
    """Index of the first of several groups of bits of which a mask holds any; their number where it holds none."""
    first = np.full(len(masks), len(bits), dtype=np.int64)
    for n in range(len(bits) - 1, -1, -1):
        first[masks & bits[n] != 0] = n
    return first


def _of(by_class: Mapping[str, Events], name: str) -> Intervals:
    return by_class.get(name, NO_EVENTS).union()
