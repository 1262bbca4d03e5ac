"""Which named stretch encloses an instant. In: spans and points on tracks. Out: the innermost span, and own time.

Idea: spans of one thread are nested, so sorting all ends once and counting how many spans are open gives the depth of
each; the span around something at depth d is the last one before it that opened at depth d - 1.
Not handled: spans that overlap without being nested (a point behind the end of what was found has no span).
"""

from dataclasses import dataclass

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


def innermost(spans: Spans, track: Integers, at_ns: Integers) -> Integers:
    """Index of the innermost span around each point of a track, `NONE` where there is none; intervals are half-open."""
    found = _enclosing(spans, track, at_ns)
    return _checked(found[len(spans.track) :], spans, at_ns)


def own_duration_ns(spans: Spans) -> Integers:
    """How long each span lasts without those directly inside it, never negative, ns."""
    nothing = np.zeros(0, dtype=np.int64)
    parent = _checked(_enclosing(spans, nothing, nothing), spans, spans.start_ns)
    lasting = spans.end_ns - spans.start_ns
    has_parent = parent != NONE
    # A child that reaches beyond its parent takes from it what it covers.
    covered = np.minimum(spans.end_ns, spans.end_ns[parent]) - spans.start_ns
    own = lasting.copy()
    np.subtract.at(own, parent[has_parent], covered[has_parent])
    result: Integers = np.maximum(own, 0)
    return result


def _checked(found: Integers, spans: Spans, at_ns: Integers) -> Integers:
    if not len(spans.track):
        return found
    result: Integers = np.where((found != NONE) & (spans.end_ns[found] > at_ns), found, NONE)
    return result


def _enclosing(spans: Spans, track: Integers, at_ns: Integers) -> Integers:
    """The span around each span, then around each point."""
    count, points = len(spans.track), len(track)
    result = np.full(count + points, NONE, dtype=np.int64)
    lasting = np.flatnonzero(spans.end_ns > spans.start_ns)
    # Of spans that start at once the longest is outside.
    lasting = lasting[np.argsort(-spans.end_ns[lasting], kind="stable")]
    empty = np.flatnonzero(spans.end_ns <= spans.start_ns)
    # What happens at an instant: spans end, spans begin, then points and spans without duration ask.
    who = np.concatenate([lasting, lasting, empty, count + np.arange(points)])
    at = np.concatenate([spans.end_ns[lasting], spans.start_ns[lasting], spans.start_ns[empty], at_ns])
    kind = np.repeat(np.array([0, 1, 2]), [len(lasting), len(lasting), len(empty) + points])
    tracks = np.concatenate([spans.track[lasting], spans.track[lasting], spans.track[empty], track])
    order = np.lexsort((kind, at, tracks))
    who, kind = who[order], kind[order]
    opened = np.cumsum(np.array([-1, 1, 0])[kind])
    depth = np.where(kind == 1, opened - 1, opened)
    asks, begins = kind > 0, kind == 1
    for level in range(int(depth[asks].max(initial=0))):
        outside = np.flatnonzero(begins & (depth == level))
        inside = np.flatnonzero(asks & (depth == level + 1))
        place = np.searchsorted(outside, inside) - 1
        known = place >= 0
        result[who[inside[known]]] = who[outside[place[known]]]
    return result
