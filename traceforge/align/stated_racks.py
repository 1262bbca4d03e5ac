"""What a user states of racks. In: a file of hosts and racks, or a pattern of host names. Out: racks, kept in meta.*.

Traces do not know racks. A host that the file names is in the rack that stands there; of any other the pattern tells.
"""

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traceforge.errors import InputUnusableError, UsageError
from traceforge.store.database import Store

_HINT = """lines of `host,rack`, or JSON such as {"node0": "r1"}"""


@dataclass(frozen=True, slots=True)
class StatedRacks:
    """Racks as they were stated.

    Attributes:
        by_host: name of the rack by name of the host.
        pattern: regular expression with one group, the rack; None where there is none.
    """

    by_host: Mapping[str, str]
    pattern: str | None = None

    def of(self, host: str) -> str | None:
        """The rack of a host; None where it is not stated."""
        for name in (host, host.partition(".")[0]):
            if name in self.by_host:
                return self.by_host[name]
        found = re.search(self.pattern, host) if self.pattern is not None else None
        return (found[1] or None) if found else None


def parsed_racks(file: Path | None, pattern: str | None) -> StatedRacks | None:
    """What is stated on a command line; None where nothing is.

    Raises:
        InputUnusableError: the file cannot be read.
        UsageError: it names no racks, or the pattern is none with a group.
    """
    if file is None and pattern is None:
        return None
    if pattern is not None:
        _check(pattern)
    return StatedRacks({} if file is None else _read(file), pattern)


def stated_racks(store: Store) -> StatedRacks:
    """What the user of this database stated."""
    by_host = {str(host): str(rack) for host, rack in store.rows("FROM meta.stated_rack ORDER BY host")}
    pattern = next((str(pattern) for (pattern,) in store.rows("FROM meta.rack_pattern")), None)
    return StatedRacks(by_host, pattern)


def state_racks(store: Store, racks: StatedRacks) -> None:
    """Keep these racks in the place of all that were stated before."""
    import polars as pl

    store.execute("DELETE FROM meta.stated_rack")
    store.execute("DELETE FROM meta.rack_pattern")
    if racks.by_host:
        rows = {"host": list(racks.by_host), "rack": list(racks.by_host.values())}
        store.append("meta.stated_rack", pl.DataFrame(rows))
    if racks.pattern is not None:
        store.execute("INSERT INTO meta.rack_pattern VALUES (?)", [racks.pattern])


def _check(pattern: str) -> None:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise UsageError(f"--rack-pattern is no regular expression: {error}") from error
    if groups != 1:
        hint = r"put the name of the rack in parentheses, such as '^r(\d+)n'"
        raise UsageError("--rack-pattern must have one group", hint=hint)


def _read(file: Path) -> dict[str, str]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputUnusableError(f"cannot be read: {error}", where=str(file), hint=_HINT) from error
    found = _from_json(text, file) if text.lstrip().startswith("{") else _from_lines(text, file)
    if not found:
        raise UsageError("it names no host", where=str(file), hint=_HINT)
    return found


def _from_json(text: str, file: Path) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"it is no JSON: {error}", where=str(file), hint=_HINT) from error
    if not all(host and isinstance(rack, str) and rack for host, rack in found.items()):
        raise UsageError("a rack in it is no text", where=str(file), hint=_HINT)
    return dict(found)


def _from_lines(text: str, file: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    rows = csv.reader(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    for cells in rows:
        host, rack = (cell.strip() for cell in cells) if len(cells) == 2 else ("", "")
        if not host or not rack:
            raise UsageError(f"{','.join(cells)!r} is no host and its rack", where=str(file), hint=_HINT)
        if (host, rack) == ("host", "rack"):
            continue
        if found.setdefault(host, rack) != rack:
            raise UsageError(f"{host} is in two racks", where=str(file), hint=_HINT)
    return found
