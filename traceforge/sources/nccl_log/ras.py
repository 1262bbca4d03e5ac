"""Reports of NCCL's RAS, as its client prints them. In: lines behind its banner. Out: rows of raw.nccl_event.

Idea: below the headings Errors and Warnings each trouble has a line of its own, with the communicator that it is of and
a word in capitals, and indented lines that say more; all of it is one event.
Not handled: the summary table, which counts; output in JSON.
Seen: NCCL 2.24 to 2.32.
"""

import re

from traceforge.sources.nccl_log.tables import Tables

_BANNER = " compiled with CUDA "
_SECTION = re.compile(r"(?:Errors|Warnings)$")
_TROUBLE = re.compile(r"(?:#\d{1,9}-\d{1,9} \((?P<comm>[0-9a-f]{1,16})\) )?(?P<kind>[A-Z]{4,20})$")
_LINES_BEHIND = 4_096
_LONGEST_CHARACTERS = 16_384


class RasReport:
    """Reads the reports in one file."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._lines_left = 0
        self._section: str | None = None
        self._row: dict[str, object] | None = None
        self._texts: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether lines of a report are expected."""
        return self._lines_left > 0

    def may_begin(self, banner: str) -> None:
        """Take a banner, behind which a report may stand."""
        if _BANNER in banner:
            self.finish()
            self._lines_left = _LINES_BEHIND

    def read(self, text: str, record_id: int) -> bool:
        """Take a line; returns whether a trouble begins in it."""
        self._lines_left -= 1
        if self._row is not None and text.startswith("  "):
            self._texts.append(text.strip())
            return False
        self._close()
        if _SECTION.match(text):
            self._section = text
        elif self._section and (match := _TROUBLE.match(text)):
            comm = f" of communicator 0x{match['comm']}" if match["comm"] else ""
            self._row = {
                "record_id": record_id,
                "kind": f"ras_{match['kind'].lower()}",
                "place": self._section,
            }
            self._texts = [f"{match['kind']}{comm}"]
            return True
        return False

    def finish(self) -> None:
        """Store what was begun, and expect no more."""
        self._close()
        self._lines_left, self._section = 0, None

    def _close(self) -> None:
        if self._row is not None:
            text = f"{self._texts[0]}: {'; '.join(self._texts[1:])}"[:_LONGEST_CHARACTERS]
            self._tables.add("event", {**self._row, "text": text})
        self._row = None
