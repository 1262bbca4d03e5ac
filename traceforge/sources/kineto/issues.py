"""What was lost, repaired or guessed in one file. In: single findings. Out: one `Issue` a code, with its first place.

Idea: a closed list of codes with their severity and sentence stands here, and everything else only counts.
Not handled: places after the first one of each code.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from traceforge.records import Issue

_MEANINGS = {
    "kineto_no_events": ("warning", "the file has an empty list of events"),
    "kineto_truncated": ("warning", "the file ends in the middle; all complete events before that place are kept"),
    "kineto_damaged_compression": ("warning", "the compressed data is damaged; what could be decompressed is read"),
    "kineto_trailing_data": ("warning", "bytes behind the end of the trace are not read"),
    "kineto_undecodable_event": ("error", "text between two good events is no JSON, even after repair"),
    "kineto_not_an_object": ("warning", "an element of the list of events is no JSON object"),
    "kineto_damaged_separator": ("warning", "events are not separated by exactly one comma; read nevertheless"),
    "kineto_invalid_utf8": ("info", "bytes that are no UTF-8 were replaced by U+FFFD"),
    "kineto_control_characters": ("info", "raw control characters in texts were escaped"),
    "kineto_not_a_number": ("info", "NaN or infinity was read as null"),
    "kineto_bad_escape": ("info", "a backslash or half a surrogate pair in a text was repaired"),
    "kineto_wrong_type": ("warning", "a value has an unexpected type; read as far as possible, else as NULL"),
    "kineto_out_of_range": ("warning", "a number does not fit its column and became NULL"),
    "kineto_negative_duration": ("warning", "a negative duration was set to 0"),
    "kineto_event_without_timestamp": ("warning", "an event other than metadata has no readable start"),
    "kineto_unreadable_metadata": ("warning", "what stands beside the events is damaged and was read in part"),
    "kineto_base_time_not_added": ("error", "baseTimeNanoseconds stands behind the events and was not added"),
}


@dataclass(slots=True)
class _Finding:
    count: int
    first_at: str | None
    lost_events: int
    detail: str


class IssueLog:
    """Counts findings by code; codes keep the order in which they first occurred."""

    def __init__(self) -> None:
        self._findings: dict[str, _Finding] = {}

    def add(
        self, code: str, count: int = 1, *, at: str | None = None, lost_events: int = 0, because: str | None = None
    ) -> None:
        """Count a finding; a count of 0 is none.

        Args:
            code: one of the codes of this module.
            count: how many values, events or bytes it concerns.
            at: place of the first one, such as `event 17` or `byte 93312`.
            lost_events: events that are not stored because of it.
            because: a cause to add to the sentence for a person.
        """
        if count == 0:
            return
        found = self._findings.get(code)
        if found is None:
            meaning = _MEANINGS[code][1]
            detail = f"{meaning} ({because})" if because else meaning
            self._findings[code] = _Finding(count, at, lost_events, detail)
            return
        found.count += count
        found.lost_events += lost_events
        found.first_at = found.first_at or at

    @property
    def lost_events(self) -> int:
        """Events that are not stored, over all codes."""
        return sum(found.lost_events for found in self._findings.values())

    def __iter__(self) -> Iterator[Issue]:
        for code, found in self._findings.items():
            severity = _MEANINGS[code][0]
            yield Issue(code, severity, found.count, found.first_at, found.detail, found.lost_events)
