"""What launchers add to a line. In: the text before a record, without its time stamp, or a line. Out: style and rank.

Idea: a table of patterns; the first that occurs in the text wins. Whatever else stands there (a progress bar, a row of
a table) is `other` and says nothing. Not handled: local ranks (torchrun's [default0]) are not turned into ranks.
"""

import re
from dataclasses import dataclass

# Style: pattern, whose group `rank`, where it has one, is the global rank.
_STYLES = {
    "mpirun_tag": r"\[(?:[^\]\s]*@)?\d+,(?P<rank>\d+)\]<(?:stdout|stderr|stddiag)>",
    "torchrun_tag": r"\[rank(?P<rank>\d+)\]",
    "torchrun_role": r"\[[A-Za-z_]+\d+\]:",
    "ray_actor": r"\(\w+(?: [\w=]+)*,? pid=\d+(?:, ip=[^)]+)?\)",
    "srun_label": r"^\s*(?P<rank>\d{1,6}):\s*$",
    "pod": r"\[?pod/[\w.-]+(?:/[\w.-]+)?\]?",
    "bracketed_number": r"^\s*\[\d+\]:?\s*$",
    "host_label": r"^\s*[A-Za-z][\w.-]*:\s*$",
    "quoted": r"^[\s>`|*\"'#-]+$",
}
_PATTERNS = {style: re.compile(pattern) for style, pattern in _STYLES.items()}
_REPEATED = re.compile(rb"\s*\[repeated (\d{1,9})x across cluster\](?: \(Ray deduplicates logs [^\n]*)?\s*$")
ANSI = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")


@dataclass(frozen=True, slots=True)
class Prefix:
    """A launcher's prefix.

    Attributes:
        style: name of its pattern, `none` or `other`.
        rank: global rank it states, or None.
    """

    style: str
    rank: int | None


NO_PREFIX = Prefix("none", None)


def read_prefix(text: str) -> Prefix:
    """What a launcher's prefix says."""
    if not text or text.isspace():
        return NO_PREFIX
    for style, pattern in _PATTERNS.items():
        if match := pattern.search(text):
            rank = match.groupdict().get("rank")
            return Prefix(style, None if rank is None or len(rank) > 7 else int(rank))
    return Prefix("other", None)


def without_repeats(line: bytes) -> tuple[bytes, int]:
    """A line without what Ray puts behind one of several alike, and how many of those it left out."""
    found = _REPEATED.search(line) if b"x across cluster]" in line else None
    return (line, 0) if found is None else (line[: found.start()], max(0, int(found[1]) - 1))


def without_prefix(text: str) -> str:
    """A message without a launcher's prefix at its end, where the next record of a torn line begins."""
    for style in ("mpirun_tag", "torchrun_tag", "ray_actor"):
        match = None
        for match in _PATTERNS[style].finditer(text):  # noqa: B007  # the last one is wanted
            pass
        if match is not None and match.end() >= len(text.rstrip(": ")):
            return text[: match.start()]
    return text
