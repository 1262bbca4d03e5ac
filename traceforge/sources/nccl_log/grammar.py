"""The grammar as data. In: tables of rules. Out: the rule that reads a message, quickly found.

Idea: a rule is a pattern whose groups are named as the columns of a table, with the versions it was seen in; rules are
found by the first word of a message or by a literal inside it, so that few patterns are tried. Differences between
versions are further rules or optional groups, never `if version`.
Not handled: messages that no rule reads; they are counted as templates.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from traceforge.sources.nccl_log import quantities
from traceforge.sources.nccl_log.communicators import RecordPlace
from traceforge.sources.nccl_log.tables import COLUMNS

_DEFAULTS: Mapping[str, quantities.Read] = {
    "i32": quantities.integer,
    "i64": quantities.integer,
    "u64": quantities.address,
    "str": str,
}
_LARGEST = {"i32": 2**31 - 1, "i64": 2**63 - 1}


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the log, as rules see it; fields as in raw.nccl_record.

    Attributes:
        place: NCCL's file and line, which warnings print.
        message: the message.
        is_cut: whether it is as long as NCCL's buffer, so that its end is missing.
    """

    record_id: int
    line: int
    process_id: int | None
    tid: int | None
    device: int | None
    level: str | None
    raw_time_ns: int | None
    place: str | None
    message: str
    is_cut: bool = False

    @property
    def at(self) -> RecordPlace:
        """Where it stands, for communicators."""
        return RecordPlace(self.record_id, self.process_id, self.tid)


Handler = Callable[["Rule", re.Match[str], Record], bool]
"""Does what a match needs beyond its groups; false where the message is not what it seemed, but torn."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How to read one kind of message.

    Attributes:
        name: stable, written to raw.nccl_record.rule.
        versions: NCCL versions that print it so, for people.
        pattern: tried at the start of a message.
        word: first word of the message, without its final colon; None where it varies.
        anchor: text that occurs in the message; the first test where there is no word.
        table: table (without raw.nccl_) that gets a row from the pattern's groups; None where none does.
        constants: further columns of the row.
        read: how to read groups whose column's type does not say, by group.
        topic: which handler gets the match besides; None where none does.
    """

    name: str
    versions: str
    pattern: re.Pattern[str]
    word: str | None = None
    anchor: str = ""
    table: str | None = None
    constants: Mapping[str, object] = field(default_factory=dict)
    read: Mapping[str, quantities.Read] = field(default_factory=dict)
    topic: str | None = None


def rule(  # the arguments are those of Rule
    name: str,
    versions: str,
    pattern: str,
    *,
    word: str | None = None,
    anchor: str = "",
    table: str | None = None,
    constants: Mapping[str, object] | None = None,
    read: Mapping[str, quantities.Read] | None = None,
    topic: str | None = None,
) -> Rule:
    """A rule, with its pattern as text."""
    return Rule(name, versions, re.compile(pattern), word, anchor, table, constants or {}, read or {}, topic)


class RuleSet:
    """All rules, ready to be searched."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_word: dict[str, list[Rule]] = {}
        self._others: list[Rule] = []
        for one in rules:
            if one.word is None:
                self._others.append(one)
            else:
                self._by_word.setdefault(one.word, []).append(one)

    def find(self, message: str) -> tuple[Rule, re.Match[str]] | None:
        """The first rule that reads a message, and its match."""
        word = message.partition(" ")[0].removesuffix(":")
        for one in self._by_word.get(word, ()):
            if match := one.pattern.match(message):
                return one, match
        for one in self._others:
            if one.anchor in message and (match := one.pattern.match(message)):
                return one, match
        return None


def row_of(one: Rule, table: str, groups: Mapping[str, str | None]) -> dict[str, object]:
    """The row of a table that a rule makes from its groups; groups that are no column are left out."""
    row: dict[str, object] = dict(one.constants)
    columns = COLUMNS[table]
    for name, text in groups.items():
        kind = columns.get(name)
        if kind is None:
            continue
        if kind == "bool" and name not in one.read:
            row[name] = text is not None
        elif text is not None:
            row[name] = fitting(one.read.get(name, _DEFAULTS.get(kind, str))(text), kind)
    return row


def fitting(value: object, kind: str) -> object:
    """A value, or None where it is an integer too large for its column."""
    largest = _LARGEST.get(kind)
    return None if largest is not None and isinstance(value, int) and not -largest <= value <= largest else value
