"""Steps of ranks that mark none, where other ranks of the run do. In: calls and steps of both. Out: steps.

Idea: ranks that issue the same calls in the same order take the same steps. A step begins between two calls; it begins
as long after the first of them as on the marked rank, or right before the second one if that comes earlier.
Not handled: ranks whose calls differ from those of all marked ranks.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from traceforge.align.rank_trace import RankTrace, Step


def steps_of_peers(traces: Mapping[int, RankTrace], marked: Mapping[int, Sequence[Step]]) -> dict[int, list[Step]]:
    """The steps of those unmarked ranks that issue the same calls as a marked one; others are left out."""
    peers: dict[tuple[str, ...], int] = {}
    for rank in sorted(marked, reverse=True):
        if marked[rank]:
            peers[_tokens(traces[rank])] = rank
    found: dict[int, list[Step]] = {}
    for rank, trace in traces.items():
        peer = peers.get(_tokens(trace)) if trace.calls else None
        if not marked[rank] and peer is not None:
            found[rank] = _steps_like(trace, traces[peer], marked[peer])
    return found


def _tokens(trace: RankTrace) -> tuple[str, ...]:
    return tuple(token for token, _ in trace.calls)


def _steps_like(trace: RankTrace, peer: RankTrace, steps: Sequence[Step]) -> list[Step]:
    own, other = ([issue_ns for _, issue_ns in one.calls] for one in (trace, peer))
    edges = {edge: _edge(edge, other, own) for step in steps for edge in (step.start_ns, step.end_ns)}
    bounds = [(max(edges[step.start_ns], trace.first_ns), min(edges[step.end_ns], trace.last_ns)) for step in steps]
    return [
        replace(step, start_ns=start, end_ns=end, is_from_peer=True)
        for step, (start, end) in zip(steps, bounds, strict=True)
        if start < end
    ]


def _edge(edge_ns: int, other: Sequence[int], own: Sequence[int]) -> int:
    """When a step begins or ends on a rank, ns on its own clock.

    Args:
        edge_ns: when it does on the other rank, on the clock of that one.
        other, own: when the two issue their calls.
    """
    place = bisect_left(other, edge_ns)
    if not place:
        return own[0] - (other[0] - edge_ns)
    after_ns = own[place - 1] + edge_ns - other[place - 1]
    return after_ns if place == len(own) else min(after_ns, own[place])
