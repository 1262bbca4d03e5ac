"""Dumps of one attempt. In: dumps with folder, rank and latest call. Out: those that can be of one moment.

Idea: where ranks repeat, the folders hold several attempts or jobs; the one with the latest call is taken, and what
shares a rank with it is of another. Not handled: attempts in one folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class RankDump:
    """A dump: its file, its rank, and when the last call in it was made (None where it holds none)."""

    source_id: int
    path: PurePosixPath
    rank: int
    latest_ns: int | None


def of_latest_attempt(dumps: Sequence[RankDump]) -> frozenset[int]:
    """Sources of the dumps of the latest attempt; all where folders do not tell attempts apart."""
    parts = _parts(dumps)
    if parts is None:
        return frozenset(dump.source_id for dump in dumps)
    kept: list[RankDump] = []
    for part in sorted(parts.values(), key=_latest_ns, reverse=True):
        if not {dump.rank for dump in part} & {dump.rank for dump in kept}:
            kept += part
    return frozenset(dump.source_id for dump in kept)


def _parts(dumps: Sequence[RankDump]) -> Mapping[tuple[str, ...], list[RankDump]] | None:
    """The dumps by the outermost folders within which no rank repeats; None where there are none such."""
    deepest = max((len(dump.path.parent.parts) for dump in dumps), default=0)
    for depth in range(deepest + 1):
        parts: dict[tuple[str, ...], list[RankDump]] = {}
        for dump in dumps:
            parts.setdefault(dump.path.parent.parts[:depth], []).append(dump)
        if all(len({dump.rank for dump in part}) == len(part) for part in parts.values()):
            return parts
    return None


def _latest_ns(part: Sequence[RankDump]) -> int:
    return max(-1 if dump.latest_ns is None else dump.latest_ns for dump in part)
