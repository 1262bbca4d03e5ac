"""Texts of a trace. In: places in bytes. Out: Python strings, each different one made once.

Idea: names and schemas repeat by the thousand, so bytes seen before cost a look-up and no decoding.
"""

from traceforge.reading.issue_log import IssueLog

_LARGEST_CACHE = 65_536


class Texts:
    """Decodes UTF-8, replacing what is none."""

    def __init__(self, issues: IssueLog) -> None:
        self._issues = issues
        self._known: dict[bytes, str | None] = {b"": None}

    def all(self, pieces: list[bytes]) -> list[str | None]:
        """Each piece as text; None for an empty one."""
        known = self._known
        try:
            return [known[piece] for piece in pieces]
        except KeyError:
            if len(known) > _LARGEST_CACHE:
                known.clear()
                known[b""] = None
            for piece in pieces:
                if piece not in known:
                    known[piece] = self._decoded(piece)
            return [known[piece] for piece in pieces]

    def _decoded(self, piece: bytes) -> str:
        try:
            return piece.decode()
        except UnicodeDecodeError:
            self._issues.add("invalid_utf8")
            return piece.decode("utf-8", "replace")
