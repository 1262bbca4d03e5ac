"""Whose trace is it. In: a path and what the file says of itself. Out: rank, how it is known, and host.

Order: what the file states, then what a pattern of the user finds in its path, then its name, then its folder, then the
nearest folder above whose whole name is a rank's.
Not handled: two files that claim one rank (see `align.rank`, which decides and says so).
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePath

from traceforge.errors import UsageError
from traceforge.records import SourceSummary

_RANK_IN_NAME = re.compile(r"(?:^|[^a-zA-Z])(?:global[_-]?)?(?:rank|worker)[_-]?(\d{1,6})(?!\d)", re.IGNORECASE)
# A single letter is a rank's only where it does not end the name of a model, such as `deepseek-r1_0.json`.
_R_IN_NAME = re.compile(
    r"(?:^|[^a-zA-Z-]|-(?=r[_-]?\d{1,6}(?:$|\.[a-z])))(?:global[_-]?)?r[_-]?(\d{1,6})(?!\d)", re.IGNORECASE
)
_R_OF_FOLDER = re.compile(r"(?:global[_-]?)?r[_-]?(\d{1,6})", re.IGNORECASE)
# Primus: `primus-megatron-exp[llama2-70b]-rank[3]`.
_RANK_IN_BRACKETS = re.compile(r"(?:^|[^a-zA-Z])(?:global[_-]?)?rank\[(\d{1,6})\]", re.IGNORECASE)
# JAX writes below the folder that it is given: `rank0/plugins/profile/2026_11_27_17_28_51/node7.xplane.pb`.
_RANK_OF_FOLDER = re.compile(r"(?:global[_-]?)?rank[_-]?(\d{1,6})", re.IGNORECASE)
_RANK_LIMIT = 2**31
_DIGITS = re.compile(r"[0-9]{1,6}")
# PyTorch appends the rank to whatever prefix the user chose for flight recorder dumps, such as `_dump_3`.
_RANK_AT_END = re.compile(r"(?<!\d)(\d{1,6})(?:\.(?:pkl|pickle|bin|json|gz|zst))*$", re.IGNORECASE)
_RANK_AT_END_OF = frozenset({"flight_recorder"})
_HOST_PID_NAME = re.compile(r"^(?P<host>.+?)_(?P<process>\d+)\.(?:\d+\.)?pt\.trace\.json")
_LONGEST_PROCESS = 10
# `rank_0.1698955063.pt.trace.json`: a worker name that the user chose; 0 is no process and `rank` no host.
_COUNTS_RANKS = re.compile(r"(?:^|[^a-zA-Z])(?:rank|worker|r)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Identity:
    """Rank and host of a file; None where unknown. `rank_origin` as documented at `meta.source`."""

    rank: int | None
    rank_origin: str
    host: str | None


def rank_pattern(text: str) -> re.Pattern[str]:
    """The pattern of `--rank-regex`: its only group, or the one named `rank`, holds a rank's digits.

    Raises:
        UsageError: it is no regular expression, or has no such group.
    """
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"--rank-regex is no regular expression: {error}") from error
    if "rank" not in pattern.groupindex and pattern.groups != 1:
        hint = r"put the digits of the rank in parentheses, such as node(\d+)"
        raise UsageError("--rank-regex must have one group", hint=hint)
    return pattern


def identify(path: Path, summary: SourceSummary, pattern: re.Pattern[str] | None = None) -> Identity:
    """Rank and host of a file from its content, else by `pattern`, else its name, else its folders' names.

    Args:
        path: as the file is shown, from the folder on that the user gave; the pattern is searched in it.
    """
    rank, origin = _rank(path, summary, pattern)
    return Identity(rank, origin, summary.host or host_in_name(path.name))


def _rank(path: Path, summary: SourceSummary, pattern: re.Pattern[str] | None) -> tuple[int | None, str]:
    if summary.rank is not None and 0 <= summary.rank < _RANK_LIMIT:
        return summary.rank, "metadata"
    if pattern is not None:
        found = pattern.search(path.as_posix())
        digits = found["rank" if "rank" in pattern.groupindex else 1] if found else None
        # A name that the user's pattern does not fit is not guessed at: two rules would number files twice.
        return (int(digits), "rank_regex") if digits and _DIGITS.fullmatch(digits) else (None, "unknown")
    at_end = _RANK_AT_END.search(path.name) if summary.kind in _RANK_AT_END_OF else None
    if at_end is not None:
        return int(at_end[1]), "file_name"
    if named := _rank_in(path):
        return int(named[1][1]), "file_name" if named[0] == path else "folder_name"
    return None, "unknown"


def split_at_rank(path: PurePath) -> tuple[str, int] | None:
    """What precedes the rank in a path, and the rank; None where neither name nor folder holds one."""
    found = _rank_in(path)
    return None if found is None else (f"{found[0].parent}/{found[1].string[: found[1].start(1)]}", int(found[1][1]))


def _rank_in(path: PurePath) -> tuple[PurePath, re.Match[str]] | None:
    """The part of a path that holds its rank, with all above it, and where."""
    for part, of_letter in ((path, _R_IN_NAME.search), (path.parent, _R_OF_FOLDER.fullmatch)):
        if match := _RANK_IN_BRACKETS.search(part.name) or _RANK_IN_NAME.search(part.name) or of_letter(part.name):
            return part, match
    for part in path.parent.parents:
        if match := _RANK_OF_FOLDER.fullmatch(part.name):
            return part, match
    return None


def host_in_name(file_name: str) -> str | None:
    """Host of a name such as `node7_4711.1698955063.pt.trace.json.gz`, as PyTorch's own handler writes them."""
    match = _of_handler(file_name)
    return match["host"] if match else None


def process_in_name(file_name: str) -> int | None:
    """Process of such a name; the file states it nowhere else."""
    match = _of_handler(file_name)
    return int(match["process"]) if match and len(match["process"]) <= _LONGEST_PROCESS else None


def _of_handler(file_name: str) -> re.Match[str] | None:
    match = _HOST_PID_NAME.match(file_name)
    return match if match and not _COUNTS_RANKS.search(match["host"]) else None
