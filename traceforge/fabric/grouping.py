"""Members of communicators without an id, grouped by location. In: ranks and locations. Out: groups of indices.

Idea: members of one communicator have the ranks 0 .. n-1, each once; several communicators of a size lie either within
hosts (GPUs side by side) or across them (the same GPU of each host). The first layout that leaves no remainder is
taken. Not handled: other layouts; each rank then forms a group of its own.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberLocation:
    """A member of some communicator and where it runs. `rank` is None where no log states it."""

    rank: int | None
    host: str
    device: str
    process: int


@dataclass(frozen=True, slots=True)
class MemberGroup:
    """Indices of the members of one communicator; complete where every rank occurs once."""

    members: list[int]
    is_complete: bool


def split_into_communicators(locations: Sequence[MemberLocation], size: int) -> list[MemberGroup]:
    """The communicators of one size that members belong to, each rank at most once in each."""
    ranks = {location.rank for location in locations}
    if len(ranks) == len(locations) and None not in ranks:
        return [MemberGroup(list(range(len(locations))), len(locations) == size)] if locations else []
    for groups in (_within_hosts(locations, size), _across_hosts(locations)):
        if all(sorted(locations[i].rank or 0 for i in group) == list(range(size)) for group in groups):
            return [MemberGroup(group, is_complete=True) for group in groups]
    return [MemberGroup([number], is_complete=size == 1) for number in range(len(locations))]


def _within_hosts(locations: Sequence[MemberLocation], size: int) -> list[list[int]]:
    """GPUs of a host in order, `size` at a time."""
    groups: list[list[int]] = []
    for members in _grouped(locations, lambda location: location.host):
        ordered = sorted(members, key=lambda number: (locations[number].device, locations[number].process))
        groups += [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return groups


def _across_hosts(locations: Sequence[MemberLocation]) -> list[list[int]]:
    """The same GPU of every host."""
    return _grouped(locations, lambda location: location.device)


def _grouped(locations: Sequence[MemberLocation], key: Callable[[MemberLocation], Hashable]) -> list[list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number, location in enumerate(locations):
        found[key(location)].append(number)
    return list(found.values())
