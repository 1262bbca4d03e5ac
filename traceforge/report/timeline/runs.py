"""Phases of every rank as runs. In: intervals since their iterations began. Out: a code and a length a run.

Where there are too many, each iteration is cut into equal slots, and each slot goes to the phase that fills most of
it. What is shown in detail stays as it is, as far as it fits. Nothing else is rounded but edges, to whole steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.report.palette import PHASES
from traceforge.report.timeline.axis import TimeAxis

Integers = NDArray[np.int64]

_GAP = "-"
_MOST_SLOTS = 400
_MOST_TRIES = 4
_LANES_AT_ONCE = 262_144


@dataclass(frozen=True, slots=True)
class Lanes:
    """Intervals of one iteration, ordered by row and time; arrays have one entry an interval.

    Attributes:
        rows: number of rows.
        row: the row an interval belongs to, from 0.
        phase: its place in PHASES.
        start_ns, end_ns: since the start of the iteration.
    """

    rows: int
    row: Integers
    phase: Integers
    start_ns: Integers
    end_ns: Integers

    @property
    def span_ns(self) -> int:
        """From the first start to the last end, ns."""
        return int(self.end_ns.max() - self.start_ns.min())


@dataclass(frozen=True, slots=True)
class Runs:
    """What each rank did along the whole line.

    Attributes:
        by_rank: a code a run (a digit, `-` where nothing was recorded), and the lengths in steps, from 0 on.
        slot_ns: the longest slot that runs were thinned to; None where all are there.
        count: number of runs.
    """

    by_rank: dict[int, tuple[str, list[int]]]
    slot_ns: float | None
    count: int


def runs_of(
    segments: pl.DataFrame, axis: TimeAxis, most: int, exact: Sequence[int], exact_ranks: Sequence[int] = ()
) -> Runs:
    """The runs of every rank.

    Args:
        segments: rows of sections/timeline.
        most: runs of all ranks and iterations together, beyond which they are thinned.
        exact: iterations that stay as they are while half of `most` is enough for them, the first ones first.
        exact_ranks: ranks that do in all iterations.
    """
    phases = pl.DataFrame({"phase": PHASES, "code": range(len(PHASES))}, schema_overrides={"code": pl.Int64})
    coded = segments.join(phases, on="phase", how="inner").select(
        "iteration", "rank", "code", "start_ns", "duration_ns"
    )
    slot_ns = None
    if coded.height > most:
        coded, slot_ns = _thinned_frame(coded, most, exact, exact_ranks)
    by_rank = {
        int(frame["rank"][0]): _packed(frame, axis)
        for frame in coded.sort("rank", "iteration", "start_ns").partition_by("rank")
    }
    return Runs(by_rank, slot_ns, sum(len(codes) for codes, _ in by_rank.values()))


def _packed(frame: pl.DataFrame, axis: TimeAxis) -> tuple[str, list[int]]:
    offsets = np.array([axis.offset_ns[number] for number in frame["iteration"]], dtype=np.int64)
    start_ns = offsets + frame["start_ns"].to_numpy()
    starts, ends = axis.steps(start_ns), axis.steps(start_ns + frame["duration_ns"].to_numpy())
    order = np.argsort(starts, kind="stable")
    starts, ends, phase = starts[order], ends[order], frame["code"].to_numpy()[order]
    reached = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]])
    starts = np.maximum(starts, reached)
    seen = ends > starts
    starts, ends, phase = starts[seen], ends[seen], phase[seen]
    edges = np.column_stack([starts, ends]).ravel()
    lengths = np.diff(edges, prepend=0)
    codes = np.column_stack([np.full(len(phase), len(PHASES)), phase]).ravel()
    kept = lengths > 0
    signs = np.array([*map(str, range(len(PHASES))), _GAP])
    return "".join(signs[codes[kept]]), lengths[kept].tolist()


def _thinned_frame(
    coded: pl.DataFrame, most: int, exact: Sequence[int], exact_ranks: Sequence[int]
) -> tuple[pl.DataFrame, float]:
    """The same with fewer runs; the slots get longer until few enough are left."""
    is_exact = pl.col("iteration").is_in(_fitting(coded, most // 2, exact))
    if coded.filter(pl.col("rank").is_in(list(exact_ranks))).height <= most // 4:
        is_exact |= pl.col("rank").is_in(list(exact_ranks))
    whole = coded.filter(is_exact)
    others = coded.filter(~is_exact).partition_by("iteration")
    allowed = max(1, most - whole.height)
    slots = _MOST_SLOTS
    for _ in range(_MOST_TRIES):
        thin = [_thinned_iteration(frame, slots) for frame in others]
        found = sum(frame.height for frame, _ in thin)
        if found <= allowed or slots == 1:
            break
        slots = max(1, slots * allowed // (found + 1))
    frames = [whole, *(frame for frame, _ in thin)]
    return pl.concat(frames), max((slot_ns for _, slot_ns in thin), default=0.0)


def _fitting(coded: pl.DataFrame, most: int, exact: Sequence[int]) -> list[int]:
    """The first of these iterations, as long as they hold no more runs than that."""
    sizes = dict(coded.group_by("iteration").len().iter_rows())
    reached = np.cumsum([sizes.get(number, 0) for number in exact])
    return [number for number, size in zip(exact, reached.tolist(), strict=True) if size <= most]


def _thinned_iteration(frame: pl.DataFrame, slots: int) -> tuple[pl.DataFrame, float]:
    ranks, row = np.unique(frame["rank"].to_numpy(), return_inverse=True)
    start_ns = frame["start_ns"].to_numpy()
    lanes = Lanes(len(ranks), row, frame["code"].to_numpy(), start_ns, start_ns + frame["duration_ns"].to_numpy())
    slot_ns = max(lanes.span_ns / slots, 1.0)
    thin = thinned(lanes, slot_ns)
    found = pl.DataFrame(
        {
            "iteration": np.full(len(thin.row), frame["iteration"][0]),
            "rank": ranks[thin.row],
            "code": thin.phase,
            "start_ns": thin.start_ns,
            "duration_ns": thin.end_ns - thin.start_ns,
        },
        schema=frame.schema,
    )
    return found, slot_ns


def thinned(lanes: Lanes, slot_ns: float) -> Lanes:
    """At most one interval a slot and row; neighbours of one phase are joined.

    Args:
        lanes: intervals of a row must follow one another without a gap.
        slot_ns: length of a slot, ns.
    """
    origin = float(lanes.start_ns.min())
    slots = int(np.ceil(lanes.span_ns / slot_ns)) or 1
    filled = _filled(lanes, origin, slot_ns, slots)
    winner = np.where(filled.any(axis=2), filled.argmax(axis=2), -1)
    changes = np.ones_like(winner, dtype=bool)
    changes[:, 1:] = winner[:, 1:] != winner[:, :-1]
    row, begin = np.nonzero(changes)
    end = np.append(begin[1:], slots)
    end[np.append(row[1:] != row[:-1], True)] = slots
    phase = winner[row, begin]
    kept = phase >= 0
    first, last = (np.full(lanes.rows, edge) for edge in (np.iinfo(np.int64).max, np.iinfo(np.int64).min))
    np.minimum.at(first, lanes.row, lanes.start_ns)
    np.maximum.at(last, lanes.row, lanes.end_ns)
    start_ns, end_ns = (np.rint(origin + place * slot_ns).astype(np.int64) for place in (begin, end))
    row = row[kept]
    return Lanes(
        lanes.rows,
        row,
        phase[kept],
        np.maximum(start_ns[kept], first[row]),
        np.minimum(end_ns[kept], last[row]),
    )


def _filled(lanes: Lanes, origin: float, slot_ns: float, slots: int) -> NDArray[np.float64]:
    """Time of each phase in each slot, ns; shape (rows, slots, phases)."""
    filled = np.zeros(lanes.rows * slots * len(PHASES))
    for start in range(0, len(lanes.row), _LANES_AT_ONCE):
        some = slice(start, start + _LANES_AT_ONCE)
        part = Lanes(lanes.rows, lanes.row[some], lanes.phase[some], lanes.start_ns[some], lanes.end_ns[some])
        filled += _filled_by(part, origin, slot_ns, slots)
    return filled.reshape(lanes.rows, slots, len(PHASES))


def _filled_by(lanes: Lanes, origin: float, slot_ns: float, slots: int) -> NDArray[np.float64]:
    """The same of some intervals, flat."""
    start, end = ((times - origin) / slot_ns for times in (lanes.start_ns, lanes.end_ns))
    first = np.minimum(np.floor(start).astype(np.int64), slots - 1)
    last = np.minimum(np.ceil(end).astype(np.int64) - 1, slots - 1)
    touched = np.maximum(last - first, 0) + 1
    own = np.repeat(np.arange(len(lanes.row)), touched)
    slot = first[own] + np.arange(len(own)) - np.repeat(np.cumsum(touched) - touched, touched)
    overlap = np.minimum(end[own], slot + 1) - np.maximum(start[own], slot)
    cell = (lanes.row[own] * slots + slot) * len(PHASES) + lanes.phase[own]
    weights = np.maximum(overlap, 0) * slot_ns
    return np.asarray(np.bincount(cell, weights, minlength=lanes.rows * slots * len(PHASES)), dtype=np.float64)
