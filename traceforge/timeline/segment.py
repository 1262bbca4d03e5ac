"""What each rank did when. Reads raw events by class and matched arrivals; fills timeline.segment.

Each rank's intervals become layers in the order compute, transfer, wait, communication, copy, input, runtime, idle; the
first that is active at an instant names its phase. Waiting and transfer can be told apart only where every member's
arrival is known: what remains is communication. A rank without device events uses what its training thread does in
place of kernels (`host_compute`). Times of unaligned ranks stay on their own clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.align.clock_course import ClockCourse, read_course
from traceforge.store.database import Store
from traceforge.timeline.host_compute import host_compute
from traceforge.timeline.layers import Intervals, join, subtract, sweep, union
from traceforge.vocabulary import IGNORED, UNNAMED, vocabulary

_WINDOWS = "SELECT run_id, rank, iteration, start_ns, end_ns FROM timeline.window ORDER BY run_id, rank, start_ns"

_RANKS = "SELECT run_id, rank, source_id, has_device FROM align.rank ORDER BY run_id, rank"

_KINDS = """
SELECT k.kind_id, LIST_POSITION(?, c.class) - 1 AS code, COALESCE(k.track_id, -1) AS track_id
FROM raw.kineto_kind AS k
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM k.category AND c.name = k.name
WHERE k.source_id = ? AND k.phase = 'X' AND LIST_CONTAINS(?, c.class)
ORDER BY k.kind_id
"""

_EVENTS = """
SELECT kind_id, raw_start_ns, duration_ns
FROM raw.kineto_occurrence
WHERE source_id = ? AND raw_start_ns IS NOT NULL AND duration_ns > 0
"""

_COMMUNICATION = """
SELECT a.arrival_ns AS start_ns, a.end_ns, MAX(c.last_arrival_ns) AS last_arrival_ns,
  BOOL_AND(c.complete) AND a.call_id NOT IN (
    SELECT call_id FROM align.unmatched_endpoint WHERE run_id = $1 AND rank = $2 AND call_id IS NOT NULL
  ) AS complete
FROM timeline.arrival AS a
JOIN timeline.collective AS c USING (run_id, collective_id)
WHERE a.run_id = $1 AND a.rank = $2
GROUP BY a.call_id, a.arrival_ns, a.end_ns
ORDER BY a.arrival_ns, a.call_id
"""

_BUSY = ("compute", "copy")
_MARKING = ("iteration", "operation", "annotation")

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


@dataclass(frozen=True, slots=True)
class RankLayers:
    """A rank's intervals.

    Attributes:
        layers: intervals by name; those of an activity under its name.
        phases: phases by precedence, each with the layers that cause it; a phase may come twice.
        remainder: phase of the instants that no layer covers.
    """

    layers: Mapping[str, Intervals]
    phases: tuple[tuple[str, tuple[str, ...]], ...]
    remainder: str


def rows(store: Store) -> pl.DataFrame:
    """Consecutive segments of every iteration of every rank."""
    windows = store.query(_WINDOWS)
    frames = []
    for run_id, rank, source_id, has_device in store.query(_RANKS).iter_rows():
        own = windows.filter((pl.col("run_id") == run_id) & (pl.col("rank") == rank))
        if own.is_empty():
            continue
        clock = read_course(store, run_id, rank)
        events = read_events(store, source_id, clock)
        layers = rank_layers(events, store.query(_COMMUNICATION, [run_id, rank]), has_device=has_device)
        found = segments(layers, list(own.select("start_ns", "end_ns").iter_rows()))
        iteration = own["iteration"].gather(found["window"])
        frames.append(found.with_columns(run_id=pl.lit(run_id), rank=pl.lit(rank), iteration=iteration))
    if not frames:
        return pl.DataFrame(schema=_SCHEMA)
    return pl.concat(frames).select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def read_events(store: Store, source_id: int, clock: ClockCourse) -> pl.DataFrame:
    """Complete events of a file: class, start_ns, end_ns, on_training_thread, on the clock given; any order.

    The training thread is the one that marks steps (the one with most host events where none does).
    """
    classes = [one.name for one in vocabulary().classes if one.name != IGNORED]
    kinds = store.arrays(_KINDS, [classes, source_id, classes])
    code_of, track_of = (np.full(int(kinds["kind_id"].max(initial=-1)) + 2, -1) for _ in range(2))
    code_of[kinds["kind_id"]], track_of[kinds["kind_id"]] = kinds["code"], kinds["track_id"]
    found = store.arrays(_EVENTS, [source_id])
    # Kinds of no class share the last place.
    kind = np.minimum(found["kind_id"], len(code_of) - 1)
    known = np.flatnonzero(code_of[kind] >= 0)
    code, track = code_of[kind[known]], track_of[kind[known]]
    start = found["raw_start_ns"][known]
    end = start + found["duration_ns"][known]
    marking = np.isin(code, [classes.index(name) for name in _MARKING])
    steps = code == classes.index("iteration")
    tracks, place = np.unique(track[marking], return_inverse=True)
    counts = np.bincount(place, minlength=len(tracks))
    marked = np.bincount(place, weights=steps[marking], minlength=len(tracks))
    training = tracks[np.lexsort((tracks, -counts, -marked))[0]] if len(tracks) else None
    names = pl.Series(classes).cast(pl.Enum(classes)).gather(code)
    return pl.DataFrame(
        {"class": names, "start_ns": clock.aligned(start), "end_ns": clock.aligned(end),
         "on_training_thread": track == training if training is not None else np.zeros(len(track), dtype=np.bool_)}
    )  # fmt: skip


def rank_layers(events: pl.DataFrame, matched: pl.DataFrame, *, has_device: bool) -> RankLayers:
    """Layers of one rank.

    Args:
        events: class, start_ns, end_ns, on_training_thread of every complete event.
        matched: this rank's matched collectives: start_ns, end_ns, last_arrival_ns (of the members here), complete.
        has_device: whether device kernels were recorded.
    """
    by_class = {str(key[0]): frame for key, frame in events.group_by("class")}
    activities = vocabulary().activities
    training = {name: frame.filter(pl.col("on_training_thread")) for name, frame in by_class.items()}
    communication = _of(by_class, "communication" if has_device else "host_communication")
    transfer, wait, unsplit = _split(matched, communication)
    layers = {one.name: _of(training, one.name) for one in activities}
    layers |= {"transfer": transfer, "wait": wait, "unsplit": unsplit}
    layers |= {"communication": communication, "copy": _of(by_class, "copy")}
    exclusive = (("transfer", "transfer"), ("wait", "wait"), ("communication", "unsplit"))
    phases = tuple((phase, (layer,)) for phase, layer in (*exclusive, ("copy", "copy"), ("input", "input")))
    if has_device:
        layers["compute"] = _of(by_class, "compute")
        busy = tuple(one.name for one in activities if one.name != "input")
        return RankLayers(layers, (("compute", ("compute",)), *phases, ("runtime", busy)), "idle")
    pauses = tuple(one.name for one in activities if one.name != "input" and not one.replaces_device)
    pausing = join(*(layers[name] for name in pauses))
    own = host_compute(training, by_class.get("host_communication"), layers["input"], pausing)
    layers |= {"compute": own.surely, "enclosing": own.perhaps}
    named = ("enclosing", "annotation")
    return RankLayers(layers, (("compute", ("compute",)), *phases, ("runtime", pauses), ("compute", named)), "runtime")


def _split(matched: pl.DataFrame, communication: Intervals) -> tuple[Intervals, Intervals, Intervals]:
    """Transfer, wait, and what may be either: after the last known arrival, where not all are known."""
    arrivals, ends, last, complete = (matched[name] for name in ("start_ns", "end_ns", "last_arrival_ns", "complete"))
    all_arrived = pl.select(pl.max_horizontal(arrivals, pl.min_horizontal(last, ends))).to_series()
    wait = _union(arrivals, all_arrived)
    transfer, either = (_union(all_arrived.filter(some), ends.filter(some)) for some in (complete, ~complete))
    return transfer, wait, join(either, subtract(communication, join(wait, transfer, either)))


def segments(layers: RankLayers, windows: Sequence[tuple[int, int]]) -> pl.DataFrame:
    """Consecutive segments that fill windows exactly, neighbours differing in phase, activity or window.

    Args:
        layers: the rank's intervals.
        windows: start and end of each, ns, in order of time and apart; column `window` counts them.
    """
    starts, ends = np.array(windows, dtype=np.int64).reshape(-1, 2).T
    found = sweep(list(layers.layers.values()), np.concatenate([starts, ends]))
    kinds = _kinds(layers)
    first, last = np.searchsorted(found.edges_ns, starts), np.searchsorted(found.edges_ns, ends)
    inside = slice(first[0], last[-1])
    edges, masks = found.edges_ns[inside], found.masks[inside]
    kind = kinds.number[masks]
    changes = np.ones(len(kind) + 1, dtype=np.bool_)
    changes[1:-1] = kind[1:] != kind[:-1]
    changes[first - first[0]] = changes[last - first[0]] = True
    # Pieces follow one another from the first window to the last; those between windows are dropped.
    piece = np.flatnonzero(changes)
    reached = np.append(edges, ends[-1])
    hidden = np.concatenate([[0], np.cumsum(np.where(kinds.hides[masks], np.diff(reached), 0))])
    since, amount = reached[piece], hidden[piece]
    window = np.searchsorted(starts, since[:-1], side="right") - 1
    kept = np.flatnonzero(since[:-1] < ends[window])
    return pl.DataFrame(
        {
            "window": window[kept],
            "phase": kinds.phases.gather(kind[piece[kept]]),
            "activity": kinds.activities.gather(kind[piece[kept]]),
            "start_ns": since[kept],
            "duration_ns": np.diff(since)[kept],
            "hidden_communication_ns": np.diff(amount)[kept],
        }
    )


@dataclass(frozen=True, slots=True)
class _Kinds:
    """What each set of active layers means.

    Attributes:
        number: number of the kind of segment, by mask.
        hides: whether compute hides communication, by mask.
        phases, activities: names by kind.
    """

    number: NDArray[np.int64]
    hides: NDArray[np.bool_]
    phases: pl.Series
    activities: pl.Series


def _kinds(layers: RankLayers) -> _Kinds:
    names = [*(name for name, _ in layers.phases), layers.remainder]
    bit = {name: 1 << n for n, name in enumerate(layers.layers)}
    masks = np.arange(1 << len(bit), dtype=np.int32)
    phase = _first(masks, [sum(bit[layer] for layer in own) for _, own in layers.phases])
    activities = [one.name for one in vocabulary().activities]
    activity = _first(masks, [bit[name] for name in activities])
    # A phase may come twice under one name. While the device is busy the host explains nothing.
    phase = np.array([names.index(name) for name in names])[phase]
    activity[np.array([name in _BUSY for name in names])[phase]] = len(activities) + 1
    doing = [*activities, UNNAMED, None]
    hides = (phase == names.index("compute")) & (masks & bit["communication"] != 0)
    pairs = [(name, does) for name in names for does in doing]
    return _Kinds(
        phase * len(doing) + activity,
        hides,
        pl.Series([name for name, _ in pairs]),
        pl.Series([does for _, does in pairs], dtype=pl.String),
    )


def _first(masks: NDArray[np.int32], bits: Sequence[int]) -> NDArray[np.int64]:
    """Index of the first of several groups of bits of which a mask holds any; their number where it holds none."""
    first = np.full(len(masks), len(bits), dtype=np.int64)
    for n in range(len(bits) - 1, -1, -1):
        first[masks & bits[n] != 0] = n
    return first


_NOTHING = Intervals(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def _of(by_class: Mapping[str, pl.DataFrame], name: str) -> Intervals:
    frame = by_class.get(name)
    return _NOTHING if frame is None else _union(frame["start_ns"], frame["end_ns"])


def _union(starts_ns: pl.Series, ends_ns: pl.Series) -> Intervals:
    return union(starts_ns.to_numpy().astype(np.int64), ends_ns.to_numpy().astype(np.int64))
