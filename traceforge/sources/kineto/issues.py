"""What may be lost, repaired or guessed in one Kineto file. In: nothing. Out: an `IssueLog` with its codes."""

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_repair import MEANINGS as REPAIRS

_MEANINGS = {
    "no_events": ("warning", "the file has an empty list of events"),
    "truncated": ("warning", "the file ends in the middle; all complete events before that place are kept"),
    "damaged_compression": ("warning", "the compressed data is damaged; what could be decompressed is read"),
    "trailing_data": (
        "warning",
        "bytes behind the end of the trace are not read; a trace that begins there needs a file of its own",
    ),
    "undecodable_event": ("error", "text between two good events is no JSON, even after repair"),
    "oversized_event": ("warning", "an event of more than 64 MiB is not read"),
    "not_an_object": ("warning", "an element of the list of events is no JSON object"),
    "damaged_separator": ("warning", "events are not separated by exactly one comma; read nevertheless"),
    **REPAIRS,
    "wrong_type": ("warning", "a value has an unexpected type; read as far as possible, else as NULL"),
    "out_of_range": ("warning", "a number does not fit its column and became NULL"),
    "begin_and_end": (
        "warning",
        "names of events that begin and end apart (phases B and E), not put together: how long they last is lost",
    ),
    "negative_duration": ("warning", "a negative duration was set to 0"),
    "stray_time": (
        "warning",
        "times of the device's events and driver calls that lie far outside of what the host recorded became NULL",
    ),
    "event_without_timestamp": ("warning", "an event other than metadata has no readable start"),
    "long_text": ("warning", "a name of more than 16,384 characters was cut there"),
    "too_many_names": (
        "warning",
        "events whose names come after 131,072 others, or 32 Mi characters of them, are kept as (other names)",
    ),
    "too_many_tracks": ("warning", "beyond 65,536 threads of a file, events are kept without their thread"),
    "too_many_process_groups": (
        "warning",
        "of the process groups that the file lists, those beyond 65,536 are left out",
    ),
    "large_metadata": (
        "warning",
        "bytes of what stands beside the events that are left out, process groups first: more than 8 MiB is not kept",
    ),
    "unreadable_metadata": ("warning", "what stands beside the events is damaged and was read in part"),
    "base_time_not_added": ("error", "baseTimeNanoseconds stands behind the events and was not added"),
}


def new_log() -> IssueLog:
    """A log for one file."""
    return IssueLog(_MEANINGS, "kineto_")
