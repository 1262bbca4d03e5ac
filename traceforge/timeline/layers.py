"""Interval arithmetic. In: starts and ends of any order. Out: unions, differences, and the layer that wins when.

All arithmetic is on int64 ns and half-open intervals; cost is that of sorting the interval ends. Layers are given in
order of precedence: where several are active, the first wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


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
    starts_ns, ends_ns = starts_ns[keep], ends_ns[keep]
    if not len(starts_ns):
        return Intervals(starts_ns, ends_ns)
    order = np.argsort(starts_ns, kind="stable")
    starts_ns, ends_ns = starts_ns[order], ends_ns[order]
    reach = np.maximum.accumulate(ends_ns)
    is_first = np.concatenate(([True], starts_ns[1:] > reach[:-1]))
    first = np.flatnonzero(is_first)
    last = np.concatenate((first[1:] - 1, [len(starts_ns) - 1]))
    return Intervals(starts_ns[first], reach[last])


def subtract(intervals: Intervals, removed: Intervals) -> Intervals:
    """Parts of `intervals` that `removed` does not cover."""
    edges = _edges([intervals, removed])
    if len(edges) < 2:
        return intervals
    keep = active(intervals, edges[:-1]) & ~active(removed, edges[:-1])
    return union(edges[:-1][keep], edges[1:][keep])


def active(intervals: Intervals, instants_ns: Times) -> NDArray[np.bool_]:
    """Whether each instant lies in one of the intervals."""
    index = np.searchsorted(intervals.starts_ns, instants_ns, side="right") - 1
    inside = np.zeros(len(instants_ns), dtype=np.bool_)
    found = index >= 0
    inside[found] = instants_ns[found] < intervals.ends_ns[index[found]]
    return inside


def join(*parts: Intervals) -> Intervals:
    """Union of several sets of intervals."""
    return union(np.concatenate([part.starts_ns for part in parts]), np.concatenate([part.ends_ns for part in parts]))


def cut(layers: Sequence[Intervals], window: tuple[int, int]) -> Times:
    """Edges of all layers inside a window, with the window's own ends first and last; strictly rising, ns."""
    start_ns, end_ns = window
    edges = _edges(layers)
    inner = edges[np.searchsorted(edges, start_ns, side="right") : np.searchsorted(edges, end_ns, side="left")]
    return np.concatenate(([start_ns], inner, [end_ns])).astype(np.int64)


def first_active(layers: Sequence[Intervals], instants_ns: Times) -> NDArray[np.int64]:
    """Index of the first layer active at each instant, `len(layers)` where none is."""
    winner = np.full(len(instants_ns), len(layers), dtype=np.int64)
    for index in range(len(layers) - 1, -1, -1):
        winner[active(layers[index], instants_ns)] = index
    return winner


def _edges(layers: Sequence[Intervals]) -> Times:
    parts = [part for layer in layers for part in (layer.starts_ns, layer.ends_ns)]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
