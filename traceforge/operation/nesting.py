"""Which named stretch encloses an instant. In: spans and points on tracks. Out: the innermost span, and own time.

Idea: spans of one thread are nested, so that the number of those that began before an instant less the number of those
that ended tells how many are open there, its depth; the span around something at depth d is the last one before it that
opened at depth d - 1. Two sorted arrays a thread are all that this takes, one thread at a time; what follows for each
instant is worked out for some of them at a time, as there are millions, and spans are looked at between two moments at
which none is open.
Spans that overlap by no more than times are rounded by follow one another. Not handled: spans that overlap by more
without being nested (a point behind the end of what was found has no span).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import operation as thresholds
from traceforge.timeline.layers import in_turn

Integers = NDArray[np.int64]

NONE = -1
"""Stands for no span."""
_AT_ONCE = 65_536
# Spans inside one another that end together, where the next one begins.
_MOST_ENDING_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of threads, in any order; shapes (spans,)."""

    track: NDArray[Any]
    start_ns: Integers
    duration_ns: NDArray[Any]

    @classmethod
    def between(cls, track: NDArray[Any], start_ns: Integers, end_ns: Integers) -> "Spans":
        """Those that last until some ends."""
        return cls(track, start_ns, end_ns - start_ns)

    def ends_ns(self, places: Integers) -> Integers:
        """When some of them end: of all, which may be millions, that is not kept."""
        result: Integers = self.start_ns[places] + self.duration_ns[places]
        return result


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
        found = np.empty(len(at_ns), dtype=self.places.dtype)
        for some in in_parts(len(at_ns)):
            begun = np.searchsorted(self.starts_ns, at_ns[some], side="right")
            depth = begun - np.searchsorted(self.ends_ns, at_ns[some], side="right") - 1
            found[some] = self._last(depth, begun - 1)
        return found

    def with_parents(self) -> Iterator[tuple[Integers, Integers]]:
        """Each span and the one around it, as places, some at a time; `NONE` where there is none around it."""
        for some in in_parts(len(self.depths)):
            numbers = np.arange(some.start, min(some.stop, len(self.depths)))
            yield self.places[some], self._last(self.depths[some] - 1, numbers - 1)

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
    result = np.full(len(track), NONE, dtype=places_type(len(spans.track)))
    asked = _by_track(track)
    for own, line in _lines(spans):
        if own in asked:
            points = asked[own]
            found = line.around(at_ns[points])
            result[points] = np.where(spans.ends_ns(found) > at_ns[points], found, NONE)
    return result


def own_duration_ns(spans: Spans) -> Integers:
    """How long each span lasts without those directly inside it, never negative, ns."""
    own = spans.duration_ns.astype(np.int64)
    for inside, parent in _directly_inside(spans):
        # A child that reaches beyond its parent takes from it what it covers.
        covered = np.minimum(spans.ends_ns(inside), spans.ends_ns(parent)) - spans.start_ns[inside]
        np.subtract.at(own, parent, covered)
    np.maximum(own, 0, out=own)
    return own


def longest_inside_ns(spans: Spans) -> Integers:
    """How long the longest span directly inside each lasts, ns; 0 where there is none."""
    longest = np.zeros(len(spans.track), dtype=np.int64)
    for inside, parent in _directly_inside(spans):
        np.maximum.at(longest, parent, spans.duration_ns[inside])
    return longest


def _directly_inside(spans: Spans) -> Iterator[tuple[Integers, Integers]]:
    """Spans and the one that each begins in, as places, some at a time."""
    for _, places in _ordered(spans):
        for some in _apart(spans, places):
            for inside, parent in _line(spans, places[some]).with_parents():
                known = (parent != NONE) & (spans.ends_ns(parent) > spans.start_ns[inside])
                yield inside[known], parent[known]


def _apart(spans: Spans, places: Integers) -> Iterator[slice]:
    """A thread's spans, in order, some at a time; none of those before is open where the next ones begin."""
    first, open_until = 0, np.iinfo(np.int64).min
    for some in in_parts(len(places)):
        own = places[some]
        reach = np.maximum.accumulate(np.concatenate([[open_until], spans.ends_ns(own)]))
        free = np.flatnonzero(spans.start_ns[own] >= reach[:-1])
        if len(free) and (cut := some.start + int(free[-1])) > first:
            yield slice(first, cut)
            first = cut
        open_until = reach[-1]
    yield slice(first, len(places))


def in_parts(count: int) -> Iterator[slice]:
    """So many things, some at a time."""
    for first in range(0, count, _AT_ONCE):
        yield slice(first, first + _AT_ONCE)


def _by_track(track: Integers) -> dict[int, Integers]:
    """Places of what lies on each track."""
    if not len(track):
        return {}
    if (track == track[0]).all():
        return {int(track[0]): np.arange(len(track), dtype=places_type(len(track)))}
    order = np.argsort(track, kind="stable").astype(places_type(len(track)))
    first = np.flatnonzero(np.diff(track[order])) + 1
    return {int(track[own[0]]): own for own in np.split(order, first)}


def places_type(count: int) -> type[np.integer[Any]]:
    """As narrow a type as so many places allow: there are millions of them."""
    return np.int32 if count <= np.iinfo(np.int32).max else np.int64


def narrow(values: Integers) -> Integers:
    """The same whole numbers, from -1 on, in half the memory where they fit."""
    return values.astype(places_type(int(values.max(initial=0))), copy=False)


def _lines(spans: Spans) -> Iterator[tuple[int, _ThreadSpans]]:
    """Each track with the spans on it that last."""
    for track, places in _ordered(spans):
        yield track, _line(spans, places)


def _ordered(spans: Spans) -> Iterator[tuple[int, Integers]]:
    """Each track with the places of the spans on it that last, by their start, the longest of equals first."""
    lasts = spans.duration_ns > 0
    all_last = bool(lasts.all())
    for track, all_places in _by_track(spans.track).items():
        places = all_places if all_last else all_places[lasts[all_places]]
        if len(places):
            yield track, _in_order(spans, places)


def _in_order(spans: Spans, places: Integers) -> Integers:
    # All spans lie on one track then, in their order: of millions no copy is made for nothing.
    stretches = in_turn(spans.start_ns if len(places) == len(spans.start_ns) else spans.start_ns[places])
    if stretches is not None:
        if len(stretches) > 1:
            places = np.concatenate([places[since:until] for since, until in stretches])
        if _is_ordered(spans, places):
            return places
    result: Integers = places[np.lexsort((-spans.ends_ns(places), spans.start_ns[places]))]
    return result


def _is_ordered(spans: Spans, places: Integers) -> bool:
    """Whether spans are so already, as they mostly are written: millions are not sorted for nothing."""
    for some in in_parts(len(places) - 1):
        own = places[some.start : some.stop + 1]
        starts, ends = spans.start_ns[own], spans.ends_ns(own)
        later = (starts[1:] > starts[:-1]) | ((starts[1:] == starts[:-1]) & (ends[1:] <= ends[:-1]))
        if not later.all():
            return False
    return True


def _line(spans: Spans, places: Integers) -> _ThreadSpans:
    """Spans of one thread that last, in order."""
    starts, own, numbers = spans.start_ns[places], spans.ends_ns(places), np.arange(len(places))
    ends = np.sort(own)
    ended = np.searchsorted(ends, starts, side="right")
    crossing = np.flatnonzero(_begins_before_end(starts, own, ends, ended))
    if len(crossing):
        ends = np.sort(_apart_where_rounded(starts, own, ended, crossing))
        ended = np.searchsorted(ends, starts, side="right")
    depths = numbers - ended
    numbers += depths * len(places)
    numbers.sort()
    return _ThreadSpans(places, starts, ends, depths.astype(places.dtype), numbers)


def _begins_before_end(starts: Integers, own: Integers, ends: Integers, ended: Integers) -> NDArray[np.bool_]:
    """Whether some span ends within each, so soon after its beginning that it may be another one's, rounded.

    Args:
        own: when each ends.
        ends: the same, ascending.
        ended: how many have ended where each begins.
    """
    following = ends[np.minimum(ended, len(ends) - 1)]
    result: NDArray[np.bool_] = (following < own) & (following - starts <= thresholds.ROUNDED_NS)
    return result


def _apart_where_rounded(starts: Integers, own: Integers, ended: Integers, crossing: Integers) -> Integers:
    """When each span ends, which is where the next begins if they overlap by what times are rounded by."""
    result, order = own.copy(), np.argsort(own, kind="stable")
    for further in range(_MOST_ENDING_AT_ONCE):
        of = crossing[ended[crossing] + further < len(order)]
        earlier = order[ended[of] + further]
        over = own[earlier] - starts[of]
        is_rounded = (starts[earlier] < starts[of]) & (own[earlier] < own[of]) & (over <= thresholds.ROUNDED_NS)
        np.minimum.at(result, earlier[is_rounded], starts[of[is_rounded]])
    return result
