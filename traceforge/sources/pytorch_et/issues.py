"""What was lost, repaired or guessed in one file. In: single findings. Out: one `Issue` a code, with its first place.

Idea: a closed list of codes with their severity and sentence stands here, and everything else only counts.
Not handled: places after the first one of each code.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from traceforge.records import Issue

_PREFIX = "pytorch_et_"
_MEANINGS = {
    "no_nodes": ("warning", "the file holds no node"),
    "unknown_schema": ("warning", "a version of the schema that was not seen before; read like the nearest known one"),
    "no_schema": ("warning", "the file does not state the version of its schema"),
    "truncated": ("warning", "the file ends in the middle of a node; all nodes before it are kept"),
    "unfinished": ("warning", "the list of nodes is not closed; the recorded process died, or never stopped recording"),
    "damaged_compression": ("warning", "the compressed data is damaged; what could be decompressed is read"),
    "undecodable_node": ("error", "text between two good nodes is no JSON, even after repair"),
    "repaired_node": ("info", "the text of a node was no sound JSON and was repaired"),
    "skipped_bytes": ("info", "bytes that belong to no readable node"),
    "second_trace": ("warning", "the file holds several traces; each is kept as a part of its own"),
    "node_without_id": ("warning", "a node has no readable id, so nothing can refer to it"),
    "repeated_node_id": ("warning", "several nodes of one trace have the same id"),
    "wrong_type": ("warning", "a value has an unexpected type; read as far as possible, else as NULL"),
    "out_of_range": ("warning", "a number does not fit its column and became NULL"),
    "unreadable_arguments": ("warning", "inputs or outputs of a node cannot be read"),
    "unreadable_groups": ("warning", "a list of process groups cannot be read"),
    "unreadable_metadata": ("warning", "what stands beside the nodes is damaged and was read in part"),
    "missing_communication_info": ("info", "PyTorch had no description of a communication at hand"),
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
            code: one of the codes of this module, without the prefix.
            count: how many values, nodes or bytes it concerns.
            at: place of the first one, such as `node 17` or `byte 93312`.
            lost_events: nodes that are not stored because of it.
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
        """Nodes that are not stored, over all codes."""
        return sum(found.lost_events for found in self._findings.values())

    def __iter__(self) -> Iterator[Issue]:
        for code, found in self._findings.items():
            severity = _MEANINGS[code][0]
            yield Issue(_PREFIX + code, severity, found.count, found.first_at, found.detail, found.lost_events)
