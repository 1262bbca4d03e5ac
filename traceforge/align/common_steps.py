"""Steps that ranks have in common, where their windows were cut at different places. In and out: steps of each rank.

Idea: turns of calls begin at the same call on all ranks of a role; sequence numbers tell which, where traces state
them. Of ranks that record a few steps more, the steps that begin at about the same time are the same; so clocks must
agree to less than half a step.
Not handled: clocks that differ by half a step or more; those ranks must record equally many steps.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from traceforge.align.period import period_of
from traceforge.align.rank_trace import RankTrace, Step, Steps, between
from traceforge.thresholds import align as thresholds


def by_period(traces: Mapping[int, RankTrace], periods: Mapping[int, int | None]) -> dict[int, Steps]:
    """Steps of as many calls each as the period of the rank says; none of a rank without a period.

    Ranks of one period are of one role: their steps begin at the same call of a turn.
    """
    roles: dict[int, list[int]] = defaultdict(list)
    for rank, period in periods.items():
        if period:
            roles[period].append(rank)
    found: dict[int, Steps] = {rank: [] for rank in traces}
    for period, ranks in roles.items():
        reference = traces[min(ranks, key=lambda rank: (len(traces[rank].calls), rank))]
        place_of = _places(reference)
        for rank in ranks:
            before = _before(traces[rank], place_of)
            if before is None:
                found[rank] = _every(period, traces[rank], _first(period, traces[rank], reference))
            else:
                turns = _every(period, traces[rank], before % period)
                found[rank] = [replace(step, iteration=step.iteration - before // period) for step in turns]
    return found


def _places(trace: RankTrace) -> dict[str, int]:
    """Where each name of a call first stands."""
    return {name: place for place, name in reversed(list(enumerate(trace.names))) if name is not None}


def _before(trace: RankTrace, place_of: Mapping[str, int]) -> int | None:
    """How many calls a rank issues before the first one of the reference, by the names of calls.

    Below zero where it begins later; None where they name no call in common.

    Args:
        place_of: places of the reference's calls.
    """
    named = ((at, name) for at, name in enumerate(trace.names) if name is not None)
    return next((at - place_of[name] for at, name in named if name in place_of), None)


def _first(period: int, trace: RankTrace, reference: RankTrace) -> int:
    """The call at which a rank's first turn begins: the one that the reference begins with.

    The reference has the fewest calls. Where calls are alike, only what a rank has beyond them can lie before its first
    turn, and of these the nearest in time decides, if clocks agree.
    """
    turn = [token for token, _ in reference.calls[:period]]
    tokens = [token for token, _ in trace.calls[: 2 * period]]
    places = [n for n in range(min(period, len(tokens))) if tokens[n : n + period] == turn]
    if not places:
        return 0
    extra = len(trace.calls) - len(reference.calls)
    begun_ns = reference.arrivals_ns[0]
    gaps = {place: abs(trace.arrivals_ns[place] - begun_ns) for place in places if place <= max(extra, places[0])}
    nearest = min(gaps, key=gaps.__getitem__)
    turn_ns = reference.arrivals_ns[min(period, len(reference.calls) - 1)] - begun_ns
    return nearest if 2 * gaps[nearest] < turn_ns else places[0]


def _every(period: int, trace: RankTrace, first: int) -> Steps:
    """Steps of as many calls each; what is left of a last turn is of none.

    The last one ends with the window, not with the next call: it is whole only if it lasts as long as others, about.
    """
    issued = [issue_ns for _, issue_ns in trace.calls[first:]]
    starts = issued[::period]
    whole = starts[: len(issued) // period]
    if len(starts) > len(whole):
        return between(whole, starts[len(whole)])
    steps = between(whole, trace.last_ns)
    if len(steps) < thresholds.LEAST_STEPS:
        return steps
    *steps, last = steps
    usual_ns = median(step.end_ns - step.start_ns for step in steps)
    is_whole = abs(last.end_ns - last.start_ns - usual_ns) <= thresholds.MOST_LAST_DIFFERENCE * usual_ns
    return [*steps, replace(last, is_whole=is_whole)]


def in_common(found: Mapping[int, Steps], decisive: Sequence[int]) -> dict[int, Steps] | None:
    """The steps, numbered as those of the rank that has fewest; None where ranks do not meet in them.

    Args:
        found: steps of each rank, numbered from 0, or as the names of calls say.
        decisive: ranks of which nothing is missing.
    """
    reference = min(decisive, key=lambda rank: (len(found[rank]), rank), default=None)
    if reference is None or len(found[reference]) < thresholds.LEAST_STEPS:
        return None
    if any(steps and steps[0].iteration for steps in found.values()):
        numbers = [{step.iteration for step in found[rank]} for rank in decisive]
        return dict(found) if len(set.intersection(*numbers)) >= thresholds.LEAST_STEPS else None
    starts = [step.start_ns for step in found[reference]]
    most_ns = median(step.end_ns - step.start_ns for step in found[reference]) / 2
    result: dict[int, Steps] = {}
    for rank, steps in found.items():
        extra = max(len(steps) - len(starts), 0)
        gaps = [_gap(steps[before:], starts) for before in range(extra + 1)]
        before = gaps.index(min(gaps))
        if rank in decisive and gaps[before] >= most_ns:
            return None
        result[rank] = [replace(step, iteration=step.iteration - before) for step in steps]
    return result


def _gap(steps: Steps, starts: Sequence[int]) -> int:
    """How far steps begin from their counterparts, ns: the farthest of them."""
    return max((abs(step.start_ns - start) for step, start in zip(steps, starts, strict=False)), default=0)


def take_turns(trace: RankTrace, steps: Sequence[Step]) -> bool:
    """Whether steps of several kinds come in a fixed order, each once a turn: parts of one, as the two of a GAN.

    Their kind is what they communicate. Of steps that are alike but for a few, as those with a report, each is one.
    """
    issued = [issue_ns for _, issue_ns in trace.calls]
    tokens = [token for token, _ in trace.calls]
    kinds = ["|".join(tokens[bisect_left(issued, step.start_ns) : bisect_left(issued, step.end_ns)]) for step in steps]
    period = period_of(kinds)
    return period is not None and all(kinds) and len(set(kinds[:period])) == period
