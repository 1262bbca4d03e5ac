"""Steps of ranks that mark none, where other ranks of the run do. In: calls and steps of both. Out: steps.

Idea: ranks that issue the same calls take the same steps. Calls are the same if the trace gives them one name, or if
all of two ranks are alike. A step begins between two calls; it begins as long after the first of them as on the marked
rank, or right before the second one if that comes earlier.
Not handled: ranks that share no call with a marked rank, as stages of a pipeline may.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from traceforge.align.rank_trace import RankTrace, Step, Steps
from traceforge.thresholds import align as thresholds

Times = tuple[list[int], list[int]]


def steps_of_peers(traces: Mapping[int, RankTrace], marked: Mapping[int, Sequence[Step]]) -> dict[int, Steps]:
    """The steps of those unmarked ranks that issue the same calls as a marked one; others are left out."""
    # One marked rank stands for all of its role.
    role_of = {_tokens(traces[rank]): rank for rank in sorted(marked, reverse=True) if marked[rank]}
    peers = sorted(role_of.values())
    found: dict[int, Steps] = {}
    for rank, trace in traces.items():
        if marked[rank]:
            continue
        for peer in peers:
            if (shared := _shared(trace, traces[peer])) is not None:
                found[rank] = _steps_like(trace, traces[peer], marked[peer], shared)
                break
    return found


def _shared(trace: RankTrace, peer: RankTrace) -> Times | None:
    """When the two ranks issue what they both issue, ns on the clock of each; None where that is not known."""
    own, other = ({name: place for place, name in enumerate(one.names) if name is not None} for one in (trace, peer))
    common = [name for name in own if name in other]
    if common and len(common) >= thresholds.LEAST_PAIRED_SHARE * min(len(trace.calls), len(peer.calls)):
        places = sorted((own[name], other[name]) for name in common)
        return [trace.calls[place][1] for place, _ in places], [peer.calls[place][1] for _, place in places]
    if trace.calls and _tokens(trace) == _tokens(peer):
        return [issue_ns for _, issue_ns in trace.calls], [issue_ns for _, issue_ns in peer.calls]
    return None


def _tokens(trace: RankTrace) -> tuple[str, ...]:
    return tuple(token for token, _ in trace.calls)


def _steps_like(trace: RankTrace, peer: RankTrace, steps: Sequence[Step], shared: Times) -> Steps:
    """Steps of a rank; whole are those that hold as many calls as on the marked one."""
    own, other = ([issue_ns for _, issue_ns in one.calls] for one in (trace, peer))
    found = []
    for step in steps:
        start, end = _edge(step.start_ns, *shared), _edge(step.end_ns, *shared)
        is_whole = _held(own, start, end) == _held(other, step.start_ns, step.end_ns)
        start, end = max(start, trace.first_ns), min(end, trace.last_ns)
        if start < end:
            found.append(replace(step, start_ns=start, end_ns=end, is_whole=is_whole, is_from_peer=True))
    return found


def _held(issued: Sequence[int], start_ns: int, end_ns: int) -> int:
    return bisect_left(issued, end_ns) - bisect_left(issued, start_ns)


def _edge(edge_ns: int, own: Sequence[int], other: Sequence[int]) -> int:
    """When a step begins or ends on a rank, ns on its own clock.

    Args:
        edge_ns: when it does on the other rank, on the clock of that one.
        own, other: when the two issue the calls that both issue.
    """
    place = bisect_left(other, edge_ns)
    if not place:
        return own[0] - (other[0] - edge_ns)
    after_ns = own[place - 1] + edge_ns - other[place - 1]
    return after_ns if place == len(own) else min(after_ns, own[place])
