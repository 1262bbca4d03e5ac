"""What may be lost, repaired or guessed in one Kineto file. In: nothing. Out: an `IssueLog` with its codes."""

from traceforge.reading.issue_log import IssueLog

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


def new_log() -> IssueLog:
    """A log for one file."""
    return IssueLog(_MEANINGS)
