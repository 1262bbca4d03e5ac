"""What was lost, repaired or guessed in one file. In: single findings. Out: one `Issue` a code, with its first place.

Idea: each source states a closed list of codes with their severity and sentence; everything else only counts.
Not handled: places after the first one of each code.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from traceforge.records import Issue

_EVENT = "event "


@dataclass(slots=True)
class _Finding:
    count: int
    first_at: str | None
    lost_events: int
    detail: str


class IssueLog:
    """Counts findings by code; codes keep the order in which they first occurred.

    Args:
        meanings: severity and sentence of each code.
        prefix: stands before each code in the database.
    """

    def __init__(self, meanings: Mapping[str, tuple[str, str]], prefix: str = "") -> None:
        self._meanings = meanings
        self._prefix = prefix
        self._findings: dict[str, _Finding] = {}

    def add(
        self, code: str, count: int = 1, *, at: str | None = None, lost_events: int = 0, because: str | None = None
    ) -> None:
        """Count a finding; a count of 0 is none.

        Args:
            code: one of the codes of the source, without the prefix.
            count: how many values, events or bytes it concerns.
            at: place of the first one, such as `event 17` or `byte 93312`; of two events, the earlier one counts.
            lost_events: events that are not stored because of it.
            because: a cause to add to the sentence for a person.
        """
        if count == 0:
            return
        found = self._findings.get(code)
        if found is None:
            meaning = self._meanings[code][1]
            detail = f"{meaning} ({because})" if because else meaning
            self._findings[code] = _Finding(count, at, lost_events, detail)
            return
        found.count += count
        found.lost_events += lost_events
        found.first_at = _earlier(found.first_at, at)

    def count(self, code: str) -> int:
        """How often a code was found so far."""
        return self._findings[code].count if code in self._findings else 0

    @property
    def lost_events(self) -> int:
        """Events that are not stored, over all codes."""
        return sum(found.lost_events for found in self._findings.values())

    def __iter__(self) -> Iterator[Issue]:
        for code, found in self._findings.items():
            severity = self._meanings[code][0]
            yield Issue(self._prefix + code, severity, found.count, found.first_at, found.detail, found.lost_events)


def _earlier(known: str | None, other: str | None) -> str | None:
    """The place to report: the one known first, unless both are events, which are not always judged in their order."""
    if known and other and known.startswith(_EVENT) and other.startswith(_EVENT):
        return min(known, other, key=lambda place: int(place.removeprefix(_EVENT)))
    return known or other
