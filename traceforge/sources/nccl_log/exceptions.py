"""PyTorch's exceptions that quote NCCL. In: lines without a record. Out: rows of raw.nccl_exception.

Idea: one line names the error; lines behind it, of the same rank where lines name theirs, hold NCCL's own name for it
and its last words. They are what a job's output says of NCCL where nobody set NCCL_DEBUG.
A label that the launcher puts before all lines of a process stands before these, too.
Not handled: last words of several lines.
Seen: PyTorch 1.0 to 2.9.
"""

import re

from traceforge.sources.nccl_log.tables import Tables

_ERROR = re.compile(
    r"(?:NCCL error in: (?P<place>[^\s,]+:\d+), ?|(?:exception|Error): NCCL error: ?)(?P<meaning>[a-z][\w /]*\w)"
    r"(?:.*?NCCL version (?P<nccl_version>\d[\d.]*\d))?"
)
_WHO = re.compile(r".*?\[(?:rank|(?:PG [^\]]{1,80} )?Rank )(?P<rank>\d{1,9})\]:? ?")
_RESULT = re.compile(r"(?P<result>nccl(?:[A-Z][a-z]+)+): ")
_LAST = re.compile(r"Last error: ?(?P<text>.*)")
# What collectors of containers' output put first.
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]{8,}(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?")
_LABEL = re.compile(r"(?![\w.]*(?:Error|Exception):)\S{1,100}?(?: +\||:) ?")
_TRACE = "Exception raised from "  # where NCCL left no last words
_LINES_BEHIND = 512


class TorchExceptions:
    """Reads the exceptions in one file."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._open: dict[int | None, dict[str, object]] = {}
        self._words_next: dict[int | None, bool] = {}  # whether such a line names its rank
        self._lines_left = 0
        self._label = ""
        self._is_label = False  # whether a further line has it

    @property
    def is_open(self) -> bool:
        """Whether lines are expected that say more of an exception."""
        return bool(self._open)

    def read(self, text: str, record_id: int) -> bool:
        """Take a line; returns whether an exception begins in it."""
        if stamp := _STAMP.match(text):
            text = text[stamp.end() :]
        who = _WHO.match(text)
        rank = None if who is None else int(who["rank"])
        if error := _ERROR.search(text):
            self._close(rank)
            self._open[rank] = {"record_id": record_id, "rank": rank, **error.groupdict()}
            self._lines_left = _LINES_BEHIND
            label = None if who is not None else _LABEL.match(text)
            self._label = "" if label is None else label[0]
            self._is_label = False
            return True
        if not self._open:
            return False
        self._lines_left -= 1
        if self._lines_left < 0:
            self.finish()
        elif rank is not None or None not in self._open:
            # Lines that name no rank belong to what was begun last.
            own = next(reversed(self._open)) if rank is None else rank
            self._more(own, text[who.end() if who else 0 :], is_named=who is not None)
        elif text.startswith(self._label):
            self._is_label = bool(self._label)
            self._more(None, text.removeprefix(self._label), is_named=False)
        elif not self._is_label:
            self._more(None, text, is_named=False)
        return False

    def _more(self, rank: int | None, text: str, *, is_named: bool) -> None:
        if rank not in self._open:
            return
        row = self._open[rank]
        if rank in self._words_next:
            # Where lines name their rank, one that does not is somebody else's output.
            if self._words_next[rank] == is_named:
                self._end(rank, text)
        elif last := _LAST.match(text.strip()):
            self._words_next[rank] = is_named
            if last["text"]:
                self._end(rank, last["text"])
        elif result := _RESULT.match(text.strip()):
            row["result"] = result["result"]

    def _end(self, rank: int | None, words: str) -> None:
        words = words.strip()
        self._open[rank]["text"] = None if not words or words.startswith(_TRACE) else words
        self._close(rank)

    def _close(self, rank: int | None) -> None:
        self._words_next.pop(rank, None)
        if (row := self._open.pop(rank, None)) is not None:
            self._tables.add("exception", row)

    def finish(self) -> None:
        """Store what is known of exceptions of which no more is said."""
        for rank in list(self._open):
            self._close(rank)
