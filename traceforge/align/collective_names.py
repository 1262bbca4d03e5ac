"""Collectives by name. In: names as traces write them. Out: one operation name, its properties, sizes in bytes.

The table is `collective_names.toml`; a new spelling is a line of data.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

_FILE = Path(__file__).with_suffix(".toml")


class CollectiveKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of collective.

    Attributes:
        name: such as `all_reduce`.
        patterns: spellings, searched without regard to case.
        bus_factor: formula in n (ranks) that turns size / time into bus bandwidth.
        size_of: the side whose bytes are the collective's size.
        synchronising: whether no rank can end before all have started.
        rooted: whether one rank sends to all or gets from all, so that ranks may end before others have started.
        common_end: whether on a device all ranks end together, which ties clocks closest.
    """

    name: str
    patterns: tuple[str, ...]
    bus_factor: Literal["1", "(n - 1) / n", "2 * (n - 1) / n"] = "1"
    size_of: Literal["in", "out"] = "in"
    synchronising: bool = False
    rooted: bool = False
    common_end: bool = False

    def matches(self, name: str) -> bool:
        """Whether a kernel, annotation or argument of this name is of this kind."""
        return any(re.search(pattern, name, re.IGNORECASE) for pattern in self.patterns)


class _Names(msgspec.Struct, forbid_unknown_fields=True):
    operation: tuple[CollectiveKind, ...]
    element_bytes: dict[str, int]


@cache
def _names() -> _Names:
    return msgspec.toml.decode(_FILE.read_bytes(), type=_Names)


def collective_kinds() -> tuple[CollectiveKind, ...]:
    """All kinds of collectives, in the order in which names are tried."""
    return _names().operation


def operation_of(name: str) -> str | None:
    """Operation named by a kernel, annotation or argument; None where it names none (such as a generic kernel)."""
    return next((kind.name for kind in collective_kinds() if kind.matches(name)), None)


def element_bytes() -> Mapping[str, int]:
    """Bytes an element by type name in lower case."""
    return _names().element_bytes
