"""Which named stretch encloses an instant. In: spans and points on tracks. Out: the innermost span, and own time.

Idea: spans of one thread are nested, so that the number of those that began before an instant less the number of those
that ended tells how many are open there, its depth; the span around something at depth d is the last one before it that
opened at depth d - 1. Two sorted arrays a thread are all that this takes, one thread at a time.
Not handled: spans that overlap without being nested (a point behind the end of what was found has no span).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

NONE = -1
"""Stands for no span."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of threads, in any order; shapes (spans,)."""

    track: Integers
    start_ns: Integers
    end_ns: Integers


@dataclass(frozen=True, slots=True)
class _ThreadSpans:
    """Spans of one thread that last, by their start, the longest of equals first.

    Attributes:
        places: where each is among all spans.
        starts_ns: when each begins, ascending.
        ends_ns: when any of them ends, ascending.
        depths: how many are open where each begins.
        by_depth: depth and number of each as one number, ascending.
    """

    places: Integers
    starts_ns: Integers
    ends_ns: Integers
    depths: Integers
    by_depth: Integers

    def around(self, at_ns: Integers) -> Integers:
        """The innermost span that is open at each instant, as a place; `NONE` where there is none."""
        begun = np.searchsorted(self.starts_ns, at_ns, side="right")
        depth = begun - np.searchsorted(self.ends_ns, at_ns, side="right") - 1
        return self._last(depth, begun - 1)

    def parents(self) -> Integers:
        """The span around each, as a place; `NONE` where there is none."""
        return self._last(self.depths - 1, np.arange(len(self.depths)) - 1)

    def _last(self, depth: Integers, number: Integers) -> Integers:
        """The last span of a depth that is not behind a number."""
        count = len(self.depths)
        key = depth.astype(np.int64) * count + number
        found = self.by_depth[np.maximum(np.searchsorted(self.by_depth, key, side="right") - 1, 0)]
        known = (depth >= 0) & (found <= key) & (found > key - number - 1)
        result: Integers = np.where(known, self.places[found % count], NONE)
        return result


def innermost(spans: Spans, track: Integers, at_ns: Integers) -> Integers:
    """Index of the innermost span around each point of a track, `NONE` where there is none; intervals are half-open."""
    result = np.full(len(track), NONE)
    asked = _by_track(track)
    for own, line in _lines(spans):
        if own in asked:
            points = asked[own]
            found = line.around(at_ns[points])
            result[points] = np.where(spans.end_ns[found] > at_ns[points], found, NONE)
    return result


def own_duration_ns(spans: Spans) -> Integers:
    """How long each span lasts without those directly inside it, never negative, ns."""
    own = spans.end_ns - spans.start_ns
    for _, line in _lines(spans):
        inside, parent = line.places, line.parents()
        known = (parent != NONE) & (spans.end_ns[parent] > spans.start_ns[inside])
        inside, parent = inside[known], parent[known]
        # A child that reaches beyond its parent takes from it what it covers.
        covered = np.minimum(spans.end_ns[inside], spans.end_ns[parent]) - spans.start_ns[inside]
        np.subtract.at(own, parent, covered)
    result: Integers = np.maximum(own, 0)
    return result


def longest_inside_ns(spans: Spans) -> Integers:
    """How long the longest span directly inside each lasts, ns; 0 where there is none."""
    longest = np.zeros(len(spans.track), dtype=np.int64)
    for _, line in _lines(spans):
        inside, parent = line.places, line.parents()
        known = (parent != NONE) & (spans.end_ns[parent] > spans.start_ns[inside])
        inside, parent = inside[known], parent[known]
        np.maximum.at(longest, parent, spans.end_ns[inside] - spans.start_ns[inside])
    return longest


def _by_track(track: Integers) -> dict[int, Integers]:
    """Places of what lies on each track."""
    if not len(track):
        return {}
    order = np.argsort(track, kind="stable").astype(_places_type(len(track)))
    first = np.flatnonzero(np.diff(track[order])) + 1
    return {int(track[own[0]]): own for own in np.split(order, first)}


def _places_type(count: int) -> type[np.integer[Any]]:
    """As narrow a type as so many places allow: there are millions of them."""
    return np.int32 if count <= np.iinfo(np.int32).max else np.int64


def _lines(spans: Spans) -> Iterator[tuple[int, _ThreadSpans]]:
    """Each track with the spans on it that last."""
    for track, all_places in _by_track(spans.track).items():
        places = all_places[spans.end_ns[all_places] > spans.start_ns[all_places]]
        if not len(places):
            continue
        places = places[np.lexsort((-spans.end_ns[places], spans.start_ns[places]))]
        starts, ends, numbers = spans.start_ns[places], np.sort(spans.end_ns[places]), np.arange(len(places))
        depths = numbers - np.searchsorted(ends, starts, side="right")
        numbers += depths * len(places)
        numbers.sort()
        yield track, _ThreadSpans(places, starts, ends, depths.astype(places.dtype), numbers)
