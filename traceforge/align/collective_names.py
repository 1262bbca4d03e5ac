"""Collectives by name. In: names as traces write them. Out: one operation name, its properties, sizes in bytes.

The table is `collective_names.toml`; a new spelling is a line of data.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of collective.

    Attributes:
        name: such as `all_reduce`.
        patterns: spellings, searched without regard to case.
        bus_factor: SQL expression in n (ranks) that turns size / time into bus bandwidth.
        size_of: `in` or `out`: the side whose bytes are the collective's size.
        synchronising: whether no rank can end before all have started.
        common_end: whether on a device all ranks end together, which ties clocks closest.
    """

    name: str
    patterns: tuple["re.Pattern[str]", ...]
    bus_factor: str
    size_of: str
    synchronising: bool
    common_end: bool


@cache
def operations() -> tuple[Operation, ...]:
    """All kinds of collectives, in the order in which names are tried."""
    return tuple(
        Operation(
            entry["name"],
            tuple(re.compile(pattern, re.IGNORECASE) for pattern in entry["patterns"]),
            entry["bus_factor"],
            entry["size_of"],
            entry["synchronising"],
            entry["common_end"],
        )
        for entry in _table()["operation"]
    )


def operation_of(name: str) -> str | None:
    """Operation named by a kernel, annotation or argument; None where it tells none (such as a generic kernel)."""
    return next((op.name for op in operations() if any(p.search(name) for p in op.patterns)), None)


@cache
def element_bytes() -> Mapping[str, int]:
    """Bytes an element by type name in lower case."""
    return MappingProxyType(dict(_table()["element_bytes"]))


@cache
def _table() -> dict[str, Any]:
    text = (resources.files("traceforge.align") / "collective_names.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
