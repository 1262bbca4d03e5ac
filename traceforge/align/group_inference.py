"""Groups of calls that name none, from their times. In: calls, and the groups listed. Out: a group for each call.

Within the right group no member can end a collective before the last one has started it. Groups of one kind that divide
the ranks among them are tried together, for the calls at one place of an iteration.
Not handled: groups that no file lists, and calls that change their group from iteration to iteration.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from traceforge.thresholds import align as thresholds

Ranks = tuple[int, ...]

_PIPELINE = re.compile(r"pipeline|(^|[^a-z])pp([^a-z]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UnassignedCall:
    """A call whose group is not known: times in ns on the rank's own clock."""

    rank: int
    call_id: int
    arrival_ns: int
    end_ns: int
    iteration: int | None
    host: str | None


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A group that the job lists; members ascending."""

    name: str
    description: str
    ranks: Ranks


def infer(
    calls: Sequence[UnassignedCall], groups: Sequence[ProcessGroup]
) -> Iterator[tuple[UnassignedCall, ProcessGroup]]:
    """The group of each call: for each position within an iteration the division of the ranks that fits the times."""
    by_position = _by_position(_coarsely_aligned(calls))
    divided = divisions(groups)
    for by_iteration in by_position.values():
        ranks = {rank for members in by_iteration.values() for rank in members}
        fitting = [
            (
                _violations(by_iteration, division),
                -len(division[0].ranks),
                _end_spread_ns(by_iteration, division),
                index,
            )
            for index, division in enumerate(divided)
            if {rank for group in division for rank in group.ranks} >= ranks
        ]
        if not fitting or min(fitting)[0] > thresholds.MOST_GROUP_VIOLATIONS * len(by_iteration):
            continue
        group_of = {rank: group for group in divided[min(fitting)[3]] for rank in group.ranks}
        for members in by_iteration.values():
            for rank, call in members.items():
                yield call, group_of[rank]


def pipeline_of(groups: Sequence[ProcessGroup]) -> dict[int, ProcessGroup]:
    """The pipeline's group of each rank: of several divisions of the ranks the only one that is described as such."""
    found = [division for division in divisions(groups) if _PIPELINE.search(division[0].description)]
    return {rank: group for group in found[0] for rank in group.ranks} if len(found) == 1 else {}


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
    shift = {host: 0 if host == base else sorted(found)[len(found) // 2] for host, found in apart.items()}
    return [
        replace(call, arrival_ns=call.arrival_ns - shift[call.host], end_ns=call.end_ns - shift[call.host])
        for call in calls
    ]


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

    Groups without a description (`torch.distributed.new_group`) may belong to several divisions; those of one axis of a
    mesh have the same distance between their ranks.
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
        found += of_kind
    return found


def _distances(group: ProcessGroup) -> tuple[Ranks, Ranks, str]:
    return tuple(b - a for a, b in pairwise(group.ranks)), group.ranks, group.name


def _violations(by_iteration: dict[int, dict[int, UnassignedCall]], division: Sequence[ProcessGroup]) -> int:
    return sum(
        max(call.arrival_ns for call in calls) > min(call.end_ns for call in calls) + thresholds.GROUP_TOLERANCE_NS
        for calls in _members(by_iteration, division)
    )


def _end_spread_ns(by_iteration: dict[int, dict[int, UnassignedCall]], division: Sequence[ProcessGroup]) -> int:
    return sum(
        max(call.end_ns for call in calls) - min(call.end_ns for call in calls)
        for calls in _members(by_iteration, division)
    )


def _members(
    by_iteration: dict[int, dict[int, UnassignedCall]], division: Sequence[ProcessGroup]
) -> Iterator[list[UnassignedCall]]:
    for by_rank in by_iteration.values():
        for group in division:
            calls = [by_rank[rank] for rank in group.ranks if rank in by_rank]
            if calls:
                yield calls
