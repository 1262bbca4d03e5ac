"""Interval arithmetic. In: starts and ends of any order. Out: unions, differences, and which are active when.

All arithmetic is on int64 ns and half-open intervals. The idea: a layer is one bit; the ends of all layers, sorted
once, switch bits on and off, so that a running sum gives the layers active between any two ends. The cost is that of
sorting the ends, whatever overlaps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]

_MOST_STRETCHES = 2_000
_MOST_DIVISIONS = 16


@dataclass(frozen=True, slots=True)
class Intervals:
    """Half-open intervals, sorted and disjoint.

    Attributes:
        starts_ns: shape (intervals,).
        ends_ns: shape (intervals,), each above its start.
    """

    starts_ns: Times
    ends_ns: Times


def union(starts_ns: Times, ends_ns: Times) -> Intervals:
    """Union of any intervals; empty and negative ones are dropped."""
    keep = ends_ns > starts_ns
    if not keep.all():
        starts_ns, ends_ns = starts_ns[keep], ends_ns[keep]
    if not len(starts_ns):
        return Intervals(starts_ns, ends_ns)
    # Events are mostly written in the order of time; millions of them are not copied for nothing.
    if (starts_ns[1:] < starts_ns[:-1]).any():
        order = np.argsort(starts_ns, kind="stable")
        starts_ns, ends_ns = starts_ns[order], ends_ns[order]
    if (starts_ns[1:] > ends_ns[:-1]).all():
        return Intervals(starts_ns, ends_ns)
    reach = np.maximum.accumulate(ends_ns)
    is_first = np.concatenate(([True], starts_ns[1:] > reach[:-1]))
    first = np.flatnonzero(is_first)
    last = np.concatenate((first[1:] - 1, [len(starts_ns) - 1]))
    return Intervals(starts_ns[first], reach[last])


def in_turn(starts_ns: Times) -> list[tuple[int, int]] | None:
    """Stretches that, one behind the other, are in the order of time; None where that takes more than sorting would.

    A database that several threads read gives blocks out of turn. Wherever a start is less than the one before, a
    stretch ends; one that reaches over others is divided where they begin and end, until none does.
    """
    edges = [0, *(np.flatnonzero(starts_ns[1:] < starts_ns[:-1]) + 1).tolist(), len(starts_ns)]
    stretches = list(pairwise(edges)) if len(starts_ns) else []
    for _ in range(_MOST_DIVISIONS):
        if len(stretches) > _MOST_STRETCHES:
            return None
        stretches.sort(key=lambda one: (starts_ns[one[0]], starts_ns[one[1] - 1]))
        if all(starts_ns[one[1] - 1] <= starts_ns[next_[0]] for one, next_ in pairwise(stretches)):
            return stretches
        firsts, lasts = (np.array([starts_ns[one[end] - end] for one in stretches]) for end in (0, 1))
        stretches = [part for one in stretches for part in _divided(starts_ns, one, firsts, lasts)]
    return None


def _divided(starts_ns: Times, stretch: tuple[int, int], firsts_ns: Times, lasts_ns: Times) -> list[tuple[int, int]]:
    since, until = stretch
    own = starts_ns[since:until]
    before, behind = np.searchsorted(own, firsts_ns), np.searchsorted(own, lasts_ns, side="right")
    return list(pairwise(np.unique(np.concatenate([[since, until], since + before, since + behind])).tolist()))


def subtract(intervals: Intervals, removed: Intervals) -> Intervals:
    """Parts of `intervals` that `removed` does not cover."""
    if not len(intervals.starts_ns) or not len(removed.starts_ns):
        return intervals  # spares a sweep over what may be millions
    return _where([intervals, removed], 0b01)


def intersect(intervals: Intervals, others: Intervals) -> Intervals:
    """Parts that both cover."""
    return _where([intervals, others], 0b11)


def join(*parts: Intervals) -> Intervals:
    """Union of several sets of intervals."""
    some = [part for part in parts if len(part.starts_ns)]
    if len(some) == 1:
        return some[0]
    return union(np.concatenate([part.starts_ns for part in parts]), np.concatenate([part.ends_ns for part in parts]))


def length_ns(intervals: Intervals) -> int:
    """Time covered, ns."""
    return int((intervals.ends_ns - intervals.starts_ns).sum())


def active(intervals: Intervals, instants_ns: Times) -> NDArray[np.bool_]:
    """Whether each instant lies in one of the intervals."""
    index = np.searchsorted(intervals.starts_ns, instants_ns, side="right") - 1
    inside = np.zeros(len(instants_ns), dtype=np.bool_)
    found = index >= 0
    inside[found] = instants_ns[found] < intervals.ends_ns[index[found]]
    return inside


def covered_before(starts_ns: Times, durations_ns: Times, instants_ns: Times) -> Times:
    """Time spent in disjoint sorted stretches before each instant, ns; differences of it are exact."""
    if not len(starts_ns):
        return np.zeros(len(instants_ns), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(durations_ns)))
    index = np.searchsorted(starts_ns, instants_ns, side="right") - 1
    inside = np.clip(index, 0, None)
    partial = np.minimum(instants_ns - starts_ns[inside], durations_ns[inside])
    result: Times = np.where(index >= 0, before[inside] + partial, 0)
    return result


@dataclass(frozen=True, slots=True)
class Sweep:
    """Which layers are active when.

    Attributes:
        edges_ns: strictly rising, shape (edges,).
        masks: layers active from each edge to the next, bit n for layer n, shape (edges,).
    """

    edges_ns: Times
    masks: NDArray[np.int32]


def sweep(layers: Sequence[Intervals], extra_edges_ns: Times | None = None) -> Sweep:
    """Activity of up to 31 layers between any two of their ends, and cut at further edges, too."""
    extra = np.zeros(0, dtype=np.int64) if extra_edges_ns is None else extra_edges_ns
    edges = np.concatenate([*(side for layer in layers for side in (layer.starts_ns, layer.ends_ns)), extra])
    switches = np.concatenate(
        [
            *(np.full(len(layer.starts_ns), bit, dtype=np.int32)
              for n, layer in enumerate(layers) for bit in (1 << n, -(1 << n))),
            np.zeros(len(extra), dtype=np.int32),
        ]
    )  # fmt: skip
    order = np.argsort(edges, kind="stable")
    edges, masks = edges[order], np.cumsum(switches[order], dtype=np.int32)
    is_last = np.ones(len(edges), dtype=np.bool_)
    is_last[:-1] = edges[1:] != edges[:-1]
    return Sweep(edges[is_last], masks[is_last])


def _where(layers: Sequence[Intervals], mask: int) -> Intervals:
    found = sweep(layers)
    if len(found.edges_ns) < 2:
        return Intervals(found.edges_ns[:0], found.edges_ns[:0])
    keep = found.masks[:-1] == mask
    return union(found.edges_ns[:-1][keep], found.edges_ns[1:][keep])
