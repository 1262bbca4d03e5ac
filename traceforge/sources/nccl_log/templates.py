"""Messages that no rule reads, by template. In: messages. Out: raw.nccl_unparsed.

Idea: numbers, addresses and hex become #, so that messages of one kind count together; memory is bounded because only
so many templates are kept apart. Not handled: words that vary (names of hosts or devices make templates of their own).
"""

import re
from dataclasses import dataclass

from traceforge.sources.nccl_log.grammar import Record
from traceforge.sources.nccl_log.tables import Tables

_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{4,}\b|\d+")
_MOST_TEMPLATES = 2_000
_LONGEST_TEMPLATE = 200
_LONGEST_EXAMPLE = 2_000
REST = "(other messages)"


@dataclass(slots=True)
class _Kind:
    level: str | None
    count: int
    first_record_id: int
    example: str


class Templates:
    """Counts the messages of one file that no rule reads.

    Attributes:
        count: such messages so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._kinds: dict[str, _Kind] = {}

    def add(self, record: Record) -> None:
        """Count a message."""
        self.count += 1
        template = template_of(record.message)
        if template not in self._kinds and len(self._kinds) >= _MOST_TEMPLATES:
            template = REST
        kind = self._kinds.get(template)
        if kind is None:
            self._kinds[template] = _Kind(record.level, 1, record.record_id, record.message[:_LONGEST_EXAMPLE])
        else:
            kind.count += 1

    def store(self, tables: Tables) -> None:
        """Hand on one row a template."""
        for template, kind in self._kinds.items():
            row = {
                "template": template,
                "level": kind.level,
                "record_count": kind.count,
                "first_record_id": kind.first_record_id,
                "example": kind.example,
            }
            tables.add("unparsed", row)


def template_of(message: str) -> str:
    """A message with # for numbers."""
    return _NUMBERS.sub("#", message[: 2 * _LONGEST_TEMPLATE])[:_LONGEST_TEMPLATE]
