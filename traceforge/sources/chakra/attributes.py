"""Attributes of nodes, whatever their writer named and typed them. In: a block of nodes. Out: columns by name.

Idea: an attribute is a message of a name and a value of one of thirty types. Names of up to sixteen bytes compare as
two integers, for a whole block at once; then each known attribute is one column, whatever numeric type was chosen.
Attributes that have no column are handed out one by one, for those who ask.
Not handled: documentation texts of attributes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceforge.reading.chakra_rows import ABSENT
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.wire import (
    FIXED32,
    LENGTH,
    VARINT,
    Bools,
    Bytes,
    Int64s,
    UInt64s,
    Wires,
    read_fields,
    read_words,
)
from traceforge.sources.chakra.framing import NodeBlock
from traceforge.sources.chakra.schema import ATTRIBUTE, ATTRIBUTE_NAME, INTEGERS, TEXTS, VALUE_NUMBERS
from traceforge.sources.chakra.texts import Texts
from traceforge.sources.chakra.values import STRING, integers_of, is_of_wire, json_of

_NAMES = (*INTEGERS, *TEXTS)
_OTHER = -1
_LONGEST_INTEGER = 20


def _words(name: str) -> tuple[int, int]:
    padded_name = name.encode().ljust(16, b"\0")
    return int.from_bytes(padded_name[:8], "little"), int.from_bytes(padded_name[8:], "little")


_KEYS = {name: _words(name) for name in _NAMES}
_MASKS = np.array([(1 << (8 * length)) - 1 for length in range(9)], np.uint64)


@dataclass(frozen=True, slots=True)
class _Values:
    """Values of attributes; one element an attribute.

    Attributes:
        node: number of its node in the block.
        code: place of its name in `_NAMES`, or `_OTHER`.
        number: field number of the value; 0 where there is none.
        bits: of a value without a length.
        start, end: payload of a value with one.
        name_start, name_end: where the name stands.
    """

    node: Int64s
    code: Int64s
    number: Int64s
    bits: UInt64s
    start: Int64s
    end: Int64s
    name_start: Int64s
    name_end: Int64s


class Attributes:
    """The attributes of one block."""

    def __init__(self, block: NodeBlock, texts: Texts, issues: IssueLog) -> None:
        self._block = block
        self._texts = texts
        self._issues = issues
        self._count = len(block.positions)
        self._values = self._read()
        self._integers, self._known = self._read_integers()

    def _read(self) -> _Values:
        block, fields = self._block, self._block.fields
        chosen = fields.where((fields.number == ATTRIBUTE) & (fields.wire == LENGTH))
        inner = read_fields(block.buffer, chosen.start, chosen.end)
        count = len(chosen.owner)
        name_start, name_end, number, start, end = (np.zeros(count, np.int64) for _ in range(5))
        bits = np.zeros(count, np.uint64)
        names = inner.where((inner.number == ATTRIBUTE_NAME) & (inner.wire == LENGTH))
        name_start[names.owner], name_end[names.owner] = names.start, names.end
        value = inner.where((inner.number >= VALUE_NUMBERS.start) & (inner.number < VALUE_NUMBERS.stop))
        number[value.owner], start[value.owner], end[value.owner] = value.number, value.start, value.end
        bits[value.owner] = _bits(block.buffer, value.wire, value.value, value.start)
        misfits = _misfits(value.number, value.wire)
        bad = inner.damaged | (name_end == name_start)
        bad[value.owner[misfits]] = True
        self._report("undecodable_attribute", chosen.owner, bad)
        code = np.where(bad, _OTHER, _codes(block.buffer, name_start, name_end))
        return _Values(chosen.owner, code, np.where(bad, 0, number), bits, start, end, name_start, name_end)

    def _read_integers(self) -> tuple[Int64s, Bools]:
        """All values as integers, and which of them are."""
        values = self._values
        integers, known, out_of_range = integers_of(values.number, values.bits)
        is_integer = (values.code >= 0) & (values.code < len(INTEGERS)) & (values.number > 0)
        for place in np.flatnonzero(is_integer & (values.number == STRING)).tolist():
            digits = self._block.data[values.start[place] : values.end[place]].strip()
            if len(digits) < _LONGEST_INTEGER and digits.lstrip(b"-").isdigit():
                integers[place], known[place] = int(digits), True
        self._report("out_of_range", values.node, is_integer & out_of_range)
        self._report("wrong_type", values.node, is_integer & ~known & ~out_of_range)
        return integers, known

    def _report(self, code: str, nodes: Int64s, bad: Bools) -> None:
        places = nodes[bad]
        if len(places):
            self._issues.add(code, len(places), at=f"node {self._block.positions[places[0]]}")

    def integers(self, name: str) -> Int64s:
        """A column of integers, one a node; `ABSENT` where a node has none."""
        column = np.full(self._count, ABSENT)
        chosen = (self._values.code == _NAMES.index(name)) & self._known
        column[self._values.node[chosen]] = self._integers[chosen]
        return column

    def texts(self, name: str) -> list[str | None]:
        """A column of texts, one a node; None where a node has none, or an empty one."""
        values = self._values
        chosen = np.flatnonzero((values.code == _NAMES.index(name)) & (values.number == STRING))
        column: list[str | None] = [None] * self._count
        starts, ends = values.start[chosen].tolist(), values.end[chosen].tolist()
        found = self._texts.all([self._block.data[start:end] for start, end in zip(starts, ends, strict=True)])
        for node, text in zip(values.node[chosen].tolist(), found, strict=True):
            column[node] = text
        return column

    def others(self, nodes: Bools) -> Iterator[tuple[int, str, str]]:
        """Node, name and JSON text of the attributes without a column that some nodes have."""
        values, data = self._values, self._block.data
        unusable = (values.code >= 0) & (values.code < len(INTEGERS)) & ~self._known
        chosen = nodes[values.node] & (values.number > 0) & ((values.code == _OTHER) | unusable)
        for place in np.flatnonzero(chosen).tolist():
            name = data[values.name_start[place] : values.name_end[place]].decode("utf-8", "replace")
            payload = data[values.start[place] : values.end[place]]
            yield int(values.node[place]), name, json_of(int(values.number[place]), int(values.bits[place]), payload)


def _bits(buffer: Bytes, wire: Wires, value: UInt64s, start: Int64s) -> UInt64s:
    """The bits of values, however they are written."""
    fixed = (wire != VARINT) & (wire != LENGTH)
    if not fixed.any():
        return value
    bits = value.copy()
    bits[fixed] = read_words(buffer, start[fixed])
    bits[wire == FIXED32] &= np.uint64(0xFFFF_FFFF)
    return bits


def _misfits(number: Int64s, wire: Wires) -> Bools:
    """Values whose wire type is not that of their field number."""
    pairs = number * 8 + wire
    wrong = [pair for pair in np.flatnonzero(np.bincount(pairs)).tolist() if not is_of_wire(pair // 8, pair % 8)]
    return np.isin(pairs, wrong)


def _codes(buffer: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    """The place of each name in `_NAMES`, or `_OTHER`."""
    lengths = ends - starts
    first = read_words(buffer, starts) & _MASKS[np.minimum(lengths, 8)]
    second = read_words(buffer, starts + 8) & _MASKS[np.clip(lengths - 8, 0, 8)]
    codes = np.full(len(starts), _OTHER)
    for code, name in enumerate(_NAMES):
        low, high = _KEYS[name]
        same = (first == np.uint64(low)) & (lengths == len(name))
        codes[same & (second == np.uint64(high))] = code
    return codes
