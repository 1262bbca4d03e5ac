"""Groups of calls that name none, from their times. In: calls, and the groups listed. Out: a group for each call.

Within the right group no member can end a collective before the last one has started it. Groups of one kind that divide
the ranks among them are tried together, for the calls at one place of an iteration. Clocks of hosts are aligned by the
groups found so far, and the groups are then looked for again.
Not handled: groups that no file lists, and calls that change their group from iteration to iteration.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

import numpy as np

from traceforge.align.sequence_alignment import agreement
from traceforge.thresholds import align as thresholds

Ranks = tuple[int, ...]

_PIPELINE = re.compile(r"pipeline|(^|[^a-z])pp([^a-z]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UnassignedCall:
    """A call whose group is not known: times in ns on the rank's own clock; hosts end what they share less evenly."""

    rank: int
    call_id: int
    arrival_ns: int
    end_ns: int
    iteration: int | None
    host: str | None
    on_device: bool = True


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A group that the job lists; members ascending."""

    name: str
    description: str
    ranks: Ranks


Division = Sequence[ProcessGroup]
Iterations = Mapping[int, Mapping[int, UnassignedCall]]
"""Calls by iteration and rank."""


def infer(
    calls: Sequence[UnassignedCall], groups: Sequence[ProcessGroup]
) -> Iterator[tuple[UnassignedCall, ProcessGroup]]:
    """The group of each call: for each position within an iteration the division of the ranks that fits the times."""
    divided = divisions(groups)
    known = {(call.rank, call.call_id): call for call in calls}
    aligned = _aligned_by_groups(calls, divided)
    recorded = {call.rank for call in calls}
    clocks = _clocks(aligned) if len(divided) > 1 else {}
    for by_iteration in _by_position(aligned).values():
        fitting = _fitting(by_iteration, divided, clocks)
        if not fitting or fitting[0].violations > thresholds.MOST_GROUP_VIOLATIONS * len(by_iteration):
            continue
        group_of = {
            rank: group for group in _likeliest(fitting, by_iteration, recorded).division for rank in group.ranks
        }
        for members in by_iteration.values():
            for rank, call in members.items():
                yield known[rank, call.call_id], group_of[rank]


@dataclass(frozen=True, slots=True)
class _Fit:
    """How the calls at one place of an iteration fit a division of the ranks.

    Attributes:
        violations: calls that end before another member of their group has started.
        end_spread_ns: how far apart members of a group end, summed over groups and iterations.
        unsteady_ns: by how much that changes from one iteration to the next, or differs from how far apart the clocks
            of a host are, whichever is more, a member (mean); 0 of calls of hosts.
    """

    violations: int
    end_spread_ns: int
    unsteady_ns: float
    division: Division


Clocks = Mapping[tuple[int, int], float]
"""By rank and iteration how far the clock is ahead of the lowest rank's of the host, ns, where many calls tell."""


def _fitting(by_iteration: Iterations, divided: Sequence[Division], clocks: Clocks | None = None) -> list[_Fit]:
    """Divisions that have all ranks of these calls, the one that fits best first.

    Where a division has one recorded rank a group, nobody meets, and it fits anything: it stands last.
    """
    ranks = {rank for members in by_iteration.values() for rank in members}
    found, alone = list[_Fit](), list[_Fit]()
    for division in divided:
        if {rank for group in division for rank in group.ranks} >= ranks:
            fit = _fit(by_iteration, division, clocks or {})
            meets = any(len(calls) > 1 for calls in _members(by_iteration, division))
            (found if meets else alone).append(fit if meets else replace(fit, unsteady_ns=inf))
    return sorted(found, key=lambda fit: (fit.violations, fit.end_spread_ns)) + alone


def _fit(by_iteration: Iterations, division: Division, clocks: Clocks) -> _Fit:
    on_device = all(call.on_device for members in by_iteration.values() for call in members.values())
    return _Fit(
        _violations(by_iteration, division),
        _end_spread_ns(by_iteration, division),
        max(_unsteady_ns(by_iteration, division), _off_clock_ns(by_iteration, division, clocks)) if on_device else 0.0,
        division,
    )


def _likeliest(fitting: Sequence[_Fit], by_iteration: Iterations, recorded: Set[int]) -> _Fit:
    """Of divisions that fit as well the one into the largest groups, unless these end far apart or lack members.

    Members of a part of the true group meet as well, so that the parts fit, too. Clocks that are off keep those who
    meet apart by the same time; who does not meet ends now earlier and now later.
    """
    unsteadiest_ns = thresholds.FARTHER_ENDS * min(fit.unsteady_ns for fit in fitting) + thresholds.UNSTEADY_ENDS_NS
    alike = [fit for fit in fitting if fit.violations == fitting[0].violations]
    steady = [fit for fit in alike if fit.unsteady_ns <= unsteadiest_ns] or alike[:1]
    farthest_ns = thresholds.FARTHER_ENDS * steady[0].end_spread_ns + thresholds.GROUP_TOLERANCE_NS * len(by_iteration)
    equal = [fit for fit in steady if fit.end_spread_ns <= farthest_ns]
    lacking = [_lacking(by_iteration, fit.division, recorded) for fit in equal]
    fullest = [fit for fit, number in zip(equal, lacking, strict=True) if number == min(lacking)]
    return min(fullest, key=lambda fit: (-len(fit.division[0].ranks), fit.end_spread_ns))


def _lacking(by_iteration: Iterations, division: Division, recorded: Set[int]) -> int:
    """Meetings for which a member has no call: ranks that decode longer than others are alone at last."""
    members = [recorded & set(group.ranks) for group in division]
    return sum(
        any(own & calls.keys()) and not own <= calls.keys() for calls in by_iteration.values() for own in members
    )


def _aligned_by_groups(calls: Sequence[UnassignedCall], divided: Sequence[Division]) -> Sequence[UnassignedCall]:
    """Calls with clocks of hosts moved so that members of groups end together.

    Which group a call is of is first taken from the clocks as they are, as all calls together suggest, or from who
    ends together steadily, whichever ends in the best fit; and then from the clocks as these groups align them.
    """
    if len({call.host for call in calls}) < 2:
        return calls
    starts = (calls, _coarsely_aligned(calls), _steadily_aligned(calls, divided))
    return min((_realigned(start, divided) for start in starts), key=lambda one: _misfit(one, divided))


def _realigned(calls: Sequence[UnassignedCall], divided: Sequence[Division]) -> Sequence[UnassignedCall]:
    for _ in range(thresholds.GROUP_ROUNDS):
        shift = _ahead(calls, [_fitting(one, divided)[:1] for one in _by_position(calls).values()])
        calls = _moved(calls, shift)
        if max(map(abs, shift.values())) <= thresholds.GROUP_TOLERANCE_NS:
            break
    return calls


def _steadily_aligned(calls: Sequence[UnassignedCall], divided: Sequence[Division]) -> Sequence[UnassignedCall]:
    """Calls with hosts' clocks aligned by who ends as far apart in each iteration, as those do who meet.

    That does not depend on how far the clocks are apart, nor on hosts that reach the same calls now sooner, now later.
    """
    fitting = (_fitting(one, divided) for one in _by_position(calls).values())
    steadiest = [sorted(fits, key=lambda fit: fit.unsteady_ns)[:1] for fits in fitting]
    return _moved(calls, _ahead(calls, steadiest))


def _ahead(calls: Sequence[UnassignedCall], fits: Sequence[Sequence[_Fit]]) -> dict[str | None, int]:
    """How far each host's clock is ahead, where the calls at each place of an iteration are of such groups."""
    apart: dict[tuple[str | None, str | None], list[int]] = defaultdict(list)
    for by_iteration, found in zip(_by_position(calls).values(), fits, strict=True):
        for fit in found:
            for first, *others in _members(by_iteration, fit.division):
                for other in others:
                    apart[first.host, other.host].append(other.end_ns - first.end_ns)
    return _shifts(apart, min(calls, key=lambda call: call.rank).host)


def _misfit(calls: Sequence[UnassignedCall], divided: Sequence[Division]) -> tuple[int, int]:
    """Violations, and how far apart members end, of the divisions that fit best."""
    best = [fit for one in _by_position(calls).values() for fit in _fitting(one, divided)[:1]]
    return sum(fit.violations for fit in best), sum(fit.end_spread_ns for fit in best)


def _shifts(apart: Mapping[tuple[str | None, str | None], Sequence[int]], base: str | None) -> dict[str | None, int]:
    """How far each host's clock is ahead of the base's, along the pairs of hosts with most calls in common."""
    pairs = sorted(((hosts, sorted(found)) for hosts, found in apart.items() if hosts[0] != hosts[1]), key=_fewest_last)
    shift: dict[str | None, int] = {base: 0}
    while reached := [(hosts, found) for hosts, found in pairs if (hosts[0] in shift) != (hosts[1] in shift)]:
        (first, second), found = reached[0]
        middle = found[len(found) // 2]
        if first in shift:
            shift[second] = shift[first] + middle
        else:
            shift[first] = shift[second] - middle
    return shift


def _fewest_last(pair: tuple[tuple[str | None, str | None], list[int]]) -> tuple[int, str]:
    return -len(pair[1]), repr(pair[0])


def pipeline_of(groups: Sequence[ProcessGroup]) -> dict[int, ProcessGroup]:
    """The pipeline's group of each rank: the only division of the ranks that is described as such, however often."""
    found = [division for division in divisions(groups) if _PIPELINE.search(division[0].description)]
    differ = {frozenset(group.ranks for group in division) for division in found}
    if len(differ) != 1:
        return {}
    # The one that says no more than that.
    own = min(found, key=lambda division: len(division[0].description))
    return {rank: group for group in own for rank in group.ranks}


def _coarsely_aligned(calls: Sequence[UnassignedCall]) -> list[UnassignedCall]:
    """Calls with hosts' clocks coarsely aligned: the same call of one program ends at about the same time everywhere.

    Within a host nothing is moved, because there the times distinguish the groups.
    """
    ends: dict[int, list[int]] = defaultdict(list)
    hosts = {call.rank: call.host for call in calls}
    for call in calls:
        ends[call.rank].append(call.end_ns)
    reference = ends[min(ends)] if ends else []
    apart: dict[str | None, list[int]] = defaultdict(list)
    for rank, own in ends.items():
        apart[hosts[rank]] += [end - other for end, other in zip(own, reference, strict=False)]
    base = hosts[min(hosts)] if hosts else None
    return _moved(calls, {host: 0 if host == base else sorted(found)[len(found) // 2] for host, found in apart.items()})


def _moved(calls: Sequence[UnassignedCall], shift: Mapping[str | None, int]) -> list[UnassignedCall]:
    """Calls on clocks that are so far ahead of the base's, put on the base's."""
    by_host = [(call, shift.get(call.host, 0)) for call in calls]
    return [replace(call, arrival_ns=call.arrival_ns - ahead, end_ns=call.end_ns - ahead) for call, ahead in by_host]


def _by_position(calls: Iterable[UnassignedCall]) -> dict[int, dict[int, dict[int, UnassignedCall]]]:
    counts: dict[tuple[int, int], int] = defaultdict(int)
    result: dict[int, dict[int, dict[int, UnassignedCall]]] = defaultdict(lambda: defaultdict(dict))
    for call in calls:
        if call.iteration is not None:
            position = counts[call.rank, call.iteration]
            counts[call.rank, call.iteration] += 1
            result[position][call.iteration][call.rank] = call
    return result


def divisions(groups: Sequence[ProcessGroup]) -> list[list[ProcessGroup]]:
    """Divisions of the ranks into groups of one description and size, each rank in one group of a division.

    Groups that are made again (by another model of the same process, say) are those that were. Groups without a
    description (`torch.distributed.new_group`) may belong to several divisions; those of one axis of a mesh have the
    same distance between their ranks.
    """
    kinds: dict[tuple[str, int], list[ProcessGroup]] = defaultdict(list)
    for group in groups:
        kinds[group.description, len(group.ranks)].append(group)
    found: list[list[ProcessGroup]] = []
    for key in sorted(kinds):
        of_kind: list[list[ProcessGroup]] = []
        for group in sorted(kinds[key], key=_distances):
            apart = (d for d in of_kind if not any(set(group.ranks) & set(other.ranks) for other in d))
            division = next(apart, None)
            if division is None:
                of_kind.append([group])
            else:
                division.append(group)
        different: dict[frozenset[Ranks], list[ProcessGroup]] = {}
        for division in of_kind:
            different.setdefault(frozenset(group.ranks for group in division), division)
        found += different.values()
    return found


def _distances(group: ProcessGroup) -> tuple[Ranks, Ranks, str]:
    return tuple(b - a for a, b in pairwise(group.ranks)), group.ranks, group.name


def _violations(by_iteration: Iterations, division: Division) -> int:
    return sum(
        max(call.arrival_ns for call in calls) > min(call.end_ns for call in calls) + thresholds.GROUP_TOLERANCE_NS
        for calls in _members(by_iteration, division)
    )


def _end_spread_ns(by_iteration: Iterations, division: Division) -> int:
    return sum(
        max(call.end_ns for call in calls) - min(call.end_ns for call in calls)
        for calls in _members(by_iteration, division)
    )


def _unsteady_ns(by_iteration: Iterations, division: Division) -> float:
    """Mean change of a member's end, as seen from the mean of its group, from one iteration to the next."""
    last: dict[tuple[str, int], float] = {}
    changes: list[float] = []
    for members in by_iteration.values():
        for group in division:
            ends = {rank: members[rank].end_ns for rank in group.ranks if rank in members}
            middle = sum(ends.values()) / max(len(ends), 1)
            for rank, end_ns in ends.items():
                if (before := last.get((group.name, rank))) is not None and len(ends) > 1:
                    changes.append(abs(end_ns - middle - before))
                last[group.name, rank] = end_ns - middle
    return sum(changes) / len(changes) if changes else 0.0


def _clocks(calls: Iterable[UnassignedCall]) -> Clocks:
    """What the ends of calls at the same places agree on, for ranks of one host in one iteration."""
    ends: dict[tuple[str | None, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for call in calls:
        if call.iteration is not None:
            ends[call.host, call.iteration][call.rank].append(call.end_ns)
    found = dict[tuple[int, int], float]()
    for (_, iteration), by_rank in ends.items():
        base = np.array(by_rank[min(by_rank)])
        for rank, own in by_rank.items():
            if len(own) == len(base) and len(own) * thresholds.AGREEING_SHARE >= thresholds.LEAST_PAIRS:
                found[rank, iteration] = agreement(np.array(own) - base)[1]
    return found


def _off_clock_ns(by_iteration: Iterations, division: Division, clocks: Clocks) -> float:
    """How far a member ends from the mean of its group's members on its host, by one clock (mean)."""
    apart: list[float] = []
    for iteration, members in by_iteration.items():
        for group in division:
            ends = defaultdict[str | None, list[float]](list)
            for rank in group.ranks:
                if rank in members and (rank, iteration) in clocks:
                    ends[members[rank].host].append(members[rank].end_ns - clocks[rank, iteration])
            apart += [abs(end - sum(own) / len(own)) for own in ends.values() if len(own) > 1 for end in own]
    return sum(apart) / len(apart) if apart else 0.0


def _members(by_iteration: Iterations, division: Division) -> Iterator[list[UnassignedCall]]:
    for by_rank in by_iteration.values():
        for group in division:
            calls = [by_rank[rank] for rank in group.ranks if rank in by_rank]
            if calls:
                yield calls
