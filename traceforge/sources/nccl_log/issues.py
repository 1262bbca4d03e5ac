"""What was repaired or guessed in one log. In: single findings. Out: one `Issue` a code, with its first place.

Idea: a closed list of codes with their severity and sentence. No record is lost: what no rule reads is counted by
template, so `lost_events` is always 0. Not handled: places after the first one of each code.
"""

from collections.abc import Iterator

from traceforge.records import Issue

_MEANINGS = {
    "nccl_no_records": ("warning", "the file has no record of NCCL"),
    "nccl_damaged_compression": ("warning", "the compressed data is damaged; what could be decompressed is read"),
    "nccl_last_line_open": ("info", "the last line has no line end and may be cut"),
    "nccl_unparsed_record": ("info", "messages that no rule of the grammar reads are counted in raw.nccl_unparsed"),
    "nccl_record_without_head": ("info", "records without host and process, as quoted in documents"),
    "nccl_torn_line": ("info", "records that share a line with others were taken apart"),
    "nccl_glued_host": ("info", "text glued to the front of a host name was cut off"),
    "nccl_cut_record": ("info", "messages as long as NCCL's buffer lost their end"),
    "nccl_calls_stated_twice": ("info", "subsystems COLL and CALL both state calls; see stated_by"),
}


class IssueLog:
    """Counts findings by code; codes keep the order in which they first occurred."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str | None]] = {}

    def add(self, code: str, count: int = 1, *, at: str | None = None) -> None:
        """Count a finding; a count of 0 is none.

        Args:
            code: one of the codes of this module.
            count: how many records or files it concerns.
            at: place of the first one, such as `line 17`.
        """
        if count:
            before, first_at = self._found.get(code, (0, None))
            self._found[code] = (before + count, first_at or at)

    def count(self, code: str) -> int:
        """How often a code was found so far."""
        return self._found.get(code, (0, None))[0]

    def __iter__(self) -> Iterator[Issue]:
        for code, (count, first_at) in self._found.items():
            severity, detail = _MEANINGS[code]
            yield Issue(code, severity, count, first_at, detail)
