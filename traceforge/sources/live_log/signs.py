"""What the numbers in rows stand for. In: keys, as facts list them. Out: names of phases, kinds of collectives."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MOST = 200_000
_MOST_RANKS = 1_000_000
_LONGEST_NAME = 1_000
_NAMELESS = (0, 6)
"""Kinds of rows that have no name: steps, and marks of a device."""
_ARMS = ("paced", "unpaced", "warm_up")
_STATES = ("on", "dry_run", "off")
_QUANTITIES = (
    "sm_clock_mhz", "sm_clock_max_mhz", "power_mw", "power_limit_mw", "temperature_c", "throttle_reasons",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MeetingKind:
    """A kind of collective; fields that were not stated are None."""

    op: str
    group: str
    ranks: tuple[int, ...] | None
    sent_elements: int | None
    received_elements: int | None
    dtype: str | None
    peer: int | None


class Signs:
    """Keys by number."""

    def __init__(self) -> None:
        self.phases: dict[int, str] = {}
        self.meetings: dict[int, MeetingKind] = {}
        self.arms: dict[int, tuple[str, str]] = {}
        self.quantities: dict[int, str] = {}

    def add(self, listed: object) -> None:
        """Take in what a frame of facts lists: pairs of a number and a key."""
        for one in listed if isinstance(listed, list) else ():
            if not (isinstance(one, list) and len(one) == 2 and type(one[0]) is int and 0 <= one[0] < 2**31):
                continue
            number, key = one
            count = len(self.phases) + len(self.meetings) + len(self.arms) + len(self.quantities)
            if count >= _MOST or not isinstance(key, list):
                continue
            if len(key) == 2 and key[0] == "phase" and isinstance(key[1], str):
                self.phases[number] = key[1][:_LONGEST_NAME]
            elif len(key) == 3 and key[0] == "pace" and key[1] in _ARMS and key[2] in _STATES:
                self.arms[number] = str(key[1]), str(key[2])
            elif len(key) == 2 and key[0] == "device" and key[1] in _QUANTITIES:
                self.quantities[number] = str(key[1])
            elif len(key) == 8 and key[0] == "collective" and (meeting := _meeting(key)) is not None:
                self.meetings[number] = meeting

    def known(self, kind: int, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether rows of a kind have numbers that stand for something of that kind."""
        if kind in _NAMELESS:
            return np.ones(len(numbers), dtype=np.bool_)
        by_kind: Mapping[int, Mapping[int, object]] = {
            1: self.phases, 2: self.meetings, 3: self.arms, 4: self.quantities, 5: self.meetings,
        }  # fmt: skip
        return np.isin(numbers, list(by_kind.get(kind, {})))

    def groups(self, world_size: int | None) -> list[tuple[str, str, int]]:
        """Name, ranks and size of each group whose members are known."""
        everyone = None if world_size is None else range(world_size)
        found = {
            one.group: list(one.ranks if one.ranks is not None else everyone or ())
            for one in self.meetings.values()
            if one.ranks is not None or everyone is not None
        }
        return [(name, json.dumps(ranks), len(ranks)) for name, ranks in found.items()]


def _meeting(key: list[object]) -> MeetingKind | None:
    _, op, group, ranks, sent, received, dtype, peer = key
    if not isinstance(op, str) or not isinstance(group, str):
        return None
    return MeetingKind(
        op[:_LONGEST_NAME],
        group[:_LONGEST_NAME],
        _ranks(ranks),
        _count(sent),
        _count(received),
        dtype[:_LONGEST_NAME] if isinstance(dtype, str) else None,
        _count(peer, _MOST_RANKS),
    )


def _ranks(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_RANKS:
        return None
    found = tuple(one for one in value if _count(one, _MOST_RANKS) is not None)
    return found if len(found) == len(value) else None


def _count(value: object, limit: int = 2**62) -> int | None:
    return value if type(value) is int and 0 <= value < limit else None
