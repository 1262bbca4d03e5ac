"""What may be repaired or guessed in one log. In: nothing. Out: an `IssueLog` with its codes.

No record is lost: what no rule reads is counted by template, so `lost_events` is always 0.
"""

from traceforge.reading.issue_log import IssueLog

_MEANINGS = {
    "no_records": ("warning", "the file has no record of NCCL"),
    "damaged_compression": ("warning", "the compressed data is damaged; what could be decompressed is read"),
    "last_line_open": ("info", "the last line has no line end and may be cut"),
    "unparsed_record": ("info", "messages that no rule of the grammar reads are counted in raw.nccl_unparsed"),
    "record_without_head": ("info", "records without host and process, as quoted in documents"),
    "too_many_communicators": (
        "warning",
        "records of communicators beyond the first 131,072 are kept without theirs",
    ),
    "too_many_processes": ("warning", "records of processes beyond the first 131,072 are kept without their process"),
    "torn_line": ("info", "records that share a line with others were taken apart"),
    "glued_host": ("info", "text glued to the front of a host name was cut off"),
    "repeats_left_out": (
        "warning",
        "Ray left out records of other ranks that differ in numbers alone; RAY_DEDUP_LOGS=0 keeps them",
    ),
    "cut_record": ("info", "messages as long as NCCL's buffer lost their end"),
    "calls_stated_twice": ("info", "subsystems COLL and CALL both state calls; see stated_by"),
}


def new_log() -> IssueLog:
    """A log for one file."""
    return IssueLog(_MEANINGS, "nccl_")
