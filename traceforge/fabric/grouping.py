"""Members of unnamed communicators of one size, told apart by place. In: ranks and places. Out: groups of indices.

Idea: members of one communicator have the ranks 0 .. n-1, each once; several communicators of a size lie either within
hosts (GPUs side by side) or across them (the same GPU of each host). The first way that leaves no remainder is taken.
Not handled: other layouts; each rank then stands alone.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A rank of some communicator, and where it runs. `rank` is None where no log states it."""

    rank: int | None
    host: str
    device: str
    process: int


@dataclass(frozen=True, slots=True)
class Group:
    """Indices of the members of one communicator; whole where every rank occurs once."""

    places: list[int]
    is_whole: bool


def split_into_communicators(places: Sequence[Place], size: int) -> list[Group]:
    """The communicators that some places belong to, each rank at most once in each."""
    if len({place.rank for place in places}) == len(places) and None not in {place.rank for place in places}:
        return [Group(list(range(len(places))), len(places) == size)] if places else []
    for way in (_by_runs_on_hosts, _by_device):
        groups = way(places, size)
        if all(sorted(places[i].rank or 0 for i in group) == list(range(size)) for group in groups):
            return [Group(group, is_whole=True) for group in groups]
    return [Group([number], is_whole=size == 1) for number in range(len(places))]


def _by_runs_on_hosts(places: Sequence[Place], size: int) -> list[list[int]]:
    """GPUs of a host in order; a new communicator begins wherever as many as its size are gathered."""
    groups: list[list[int]] = []
    for members in _gathered(places, lambda place: place.host):
        ordered = sorted(members, key=lambda number: (places[number].device, places[number].process))
        groups += [ordered[start : start + size] for start in range(0, len(ordered), size)]
    return groups


def _by_device(places: Sequence[Place], _size: int) -> list[list[int]]:
    """The same GPU of every host."""
    return _gathered(places, lambda place: place.device)


def _gathered(places: Sequence[Place], key: Callable[[Place], Hashable]) -> list[list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number, place in enumerate(places):
        found[key(place)].append(number)
    return list(found.values())
