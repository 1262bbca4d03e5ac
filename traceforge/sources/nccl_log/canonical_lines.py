"""Lines of collective calls and algorithm choices, many at once. In: a block. Out: arrays of their fields.

Idea: nearly all lines of a large log are of two forms whose words stand at fixed places counted from the line's end.
What recurs from line to line (head, and what follows the size) is looked up as a whole; only opCount, addresses and
sizes are read as numbers. A head, tail or prefix that is not known yet, and any deviation, leaves the line to the slow
way, which teaches what it found: both ways give the same rows. Seen: NCCL 2.4 to 2.32 (calls; RCCL has four or six
words more), 2.24 to 2.32 (choices). Not handled: tabs, double blanks, numbers beyond 16 digits (left to the slow way).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceforge.sources.nccl_log.byte_words import (
    FRONT_PADDING,
    BoolArray,
    ByteWords,
    Int64Array,
    UInt64Array,
    windows,
)
from traceforge.sources.nccl_log.known_texts import KnownTexts
from traceforge.sources.nccl_log.launchers import NO_PREFIX, Prefix
from traceforge.sources.nccl_log.prefixes import KnownPrefixes
from traceforge.sources.nccl_log.stream import Block

_NEWLINE, _RETURN, _BLANK = 10, 13, 32
_RCCL_WORDS = 4
_ACC_WORDS = 2
_CLUSTER_WORDS = 2
_NONE_BEFORE = 32
"""Blanks that are feigned before the first byte, so that counting back from any line's end stays inside."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a line's head says.

    Attributes:
        columns: process_id, tid, device and op.
        process_id: number of the process.
        prefix: the launcher's prefix that is glued to it.
    """

    columns: Mapping[str, object]
    process_id: int
    prefix: Prefix


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of one form, one element a line in every array.

    Attributes:
        index: which line of the block, from 0.
        head: number of the head.
        tail: number of what follows the size.
        style: number of the launcher's prefix; -1 where the head shows it.
        time_ns: time stamp; meaningless where `has_time` is false.
        has_time: where there is a time stamp.
        numbers: the fields read as numbers, by name.
    """

    index: Int64Array
    head: Int64Array
    tail: Int64Array
    style: Int64Array
    time_ns: Int64Array
    has_time: BoolArray
    numbers: dict[str, UInt64Array]


@dataclass(frozen=True, slots=True)
class LineLayout:
    """Where the words of a block stand; every line ends with a newline.

    Attributes:
        padded: the bytes between paddings.
        words: the same as numbers.
        blanks: places of blanks, control characters and line ends, after some before the first byte.
        last: by line, which of `blanks` ends it.
        starts: by line, place of its first byte.
    """

    padded: bytes
    words: ByteWords
    blanks: Int64Array
    last: Int64Array
    starts: Int64Array

    def text(self, start: int, end: int) -> bytes:
        """The bytes between two places."""
        return self.padded[len(FRONT_PADDING) + start : len(FRONT_PADDING) + end]

    def word(self, lines: Int64Array, from_end: Int64Array | int) -> Int64Array:
        """Place where the n-th word from the end of each line starts; the last word is 1."""
        places: Int64Array = self.blanks[self.last[lines] - from_end] + 1
        return places

    def words_back(self, lines: Int64Array, furthest: Int64Array, count: int) -> list[Int64Array]:
        """Places where `count` words in a row start, in their order; `furthest` from the end is the first."""
        rows = windows(self.blanks, 8, count)[self.last[lines] - furthest].view(np.int64)
        return list(np.ascontiguousarray(rows.reshape(-1, count).T) + 1)

    def begins(self, lines: Int64Array, from_end: int, literal: bytes) -> BoolArray:
        """Where the n-th word from the end of a line, not its first one, begins with a literal."""
        places = self.word(lines, from_end)
        return (places > self.starts[lines]) & self.words.begin_with(places, literal)


def layout_of(block: Block) -> LineLayout:
    """The words of a block."""
    words = ByteWords(block.padded)
    blanks = np.concatenate((np.full(_NONE_BEFORE, -1), np.flatnonzero(words.bytes <= _BLANK)))
    kinds = words.bytes[blanks]
    kinds[:_NONE_BEFORE] = _BLANK
    last = np.flatnonzero(kinds == _NEWLINE)
    starts = np.concatenate(([0], blanks[last] + 1))[: last.size]
    if b"\r" in block.padded:
        last = last - ((kinds[last - 1] == _RETURN) & (blanks[last] - blanks[last - 1] == 1))
    return LineLayout(block.padded, words, blanks, last, starts)


class CanonicalLines:
    """Finds lines of the two forms; learns as the file is read."""

    def __init__(self, prefixes: KnownPrefixes) -> None:
        self.heads: KnownTexts[Head] = KnownTexts()
        self.call_tails: KnownTexts[Mapping[str, object]] = KnownTexts()
        self.tuning_tails: KnownTexts[Mapping[str, object]] = KnownTexts()
        self._prefixes = prefixes

    def learn(self, line: bytes, cuts: tuple[int, int, int], head: Head, tail: Mapping[str, object]) -> None:
        """Remember a line of one of the forms that was read the slow way.

        Args:
            line: the line, without its end.
            cuts: where the head begins, where it ends, and where the tail begins.
            head: what the head says.
            tail: what follows the size says, as columns.
        """
        begin, head_end, tail_start = cuts
        self.heads.learn(line[begin:head_end], head)
        tails = self.call_tails if line.startswith(b"datatype", tail_start) else self.tuning_tails
        tails.learn(line[tail_start:], tail)

    def calls(self, layout: LineLayout) -> Lines:
        """Lines such as `... [d] NCCL INFO Op: opCount 2f sendbuff 0x.. recvbuff 0x.. count 8 datatype ...`."""
        every = np.arange(layout.last.size)
        behind = np.full(every.size, -1)  # RCCL's words at the end, and between address and count
        between = np.zeros(every.size, dtype=np.int64)
        rest = every
        for words, acc in ((0, 0), (_RCCL_WORDS, 0), (_RCCL_WORDS, _ACC_WORDS)):
            found = rest[layout.begins(rest, 19 + words + acc, b"opCount ")]
            behind[found], between[found] = words, acc
            rest = rest[behind[rest] < 0]
        lines = np.flatnonzero(behind >= 0)
        behind, between = behind[lines], between[lines]
        # Of the words from the host on: where each starts, by its place counted from the end.
        start = dict(zip(range(24, 13, -1), layout.words_back(lines, 24 + behind + between, 11), strict=True))
        start |= dict(zip(range(13, 10, -1), layout.words_back(lines, 13 + behind, 3), strict=True))
        after_address = layout.word(lines, 13 + behind + between)
        valid = (between == 0) | layout.words.begin_with(after_address, b"acc ")
        for from_end, literal in ((17, b"sendbuff"), (15, b"recvbuff"), (13, b"count ")):
            valid &= layout.words.begin_with(start[from_end], literal)
        numbers: dict[str, UInt64Array] = {}
        for name, from_end, behind_it, read in (
            ("op_count", 18, start[17], layout.words.hexadecimals),
            ("send_address", 16, start[15], layout.words.addresses),
            ("receive_address", 14, after_address, layout.words.addresses),
            ("element_count", 12, start[11], layout.words.decimals),
        ):
            numbers[name], readable = read(start[from_end], np.maximum(behind_it - 1, start[from_end]))
            valid &= readable
        valid &= numbers["op_count"] < 2**63
        return self._known(layout, lines, valid, numbers, (start[24], start[19], start[11]), self.call_tails)

    def tunings(self, layout: LineLayout, calls: Lines) -> Lines:
        """Lines such as `... [d] NCCL INFO Op: 8192 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}`.

        Since 2.31 two words follow.

        Args:
            layout: the block.
            calls: its calls, among which there are none.
        """
        others = np.ones(layout.last.size, dtype=np.bool_)
        others[calls.index] = False
        lines = np.flatnonzero(others)
        more = np.where(layout.begins(lines, 7 + _CLUSTER_WORDS, b"Bytes ->"), _CLUSTER_WORDS, 0)
        lines, more = (array[(more > 0) | layout.begins(lines, 7, b"Bytes ->")] for array in (lines, more))
        start, tail = layout.word(lines, 8 + more), layout.word(lines, 7 + more)
        size, valid = layout.words.decimals(start, np.maximum(tail - 1, start))
        places = (layout.word(lines, 13 + more), start, tail)
        return self._known(layout, lines, valid, {"size_bytes": size}, places, self.tuning_tails)

    def _known(
        self,
        layout: LineLayout,
        lines: Int64Array,
        valid: BoolArray,
        numbers: dict[str, UInt64Array],
        places: tuple[Int64Array, Int64Array, Int64Array],
        tails: KnownTexts[Mapping[str, object]],
    ) -> Lines:
        """Of these lines those whose head, tail and prefix are known.

        Args:
            layout: the block.
            lines: the lines.
            valid: which of them have readable numbers.
            numbers: these numbers.
            places: where the head begins, where it ends, and where the tail begins.
            tails: the tails that are known.
        """
        host, head_end, tail = places
        valid = valid & (host >= layout.starts[lines])
        heads = self.heads.numbers(layout.words, host, head_end)
        tail_numbers = tails.numbers(layout.words, tail, layout.blanks[layout.last[lines]])
        prefix = self._prefixes.read(layout.text, layout.words, layout.starts[lines], np.maximum(host, 0))
        # Two prefixes, before the head and glued to it, are read together, the slow way.
        glued = np.array([head.prefix != NO_PREFIX for head in self.heads.entries] + [False])
        valid = valid & ~(glued[heads] & (prefix.style >= 0))
        kept = np.flatnonzero(valid & (heads >= 0) & (tail_numbers >= 0) & prefix.is_known)
        return Lines(
            index=lines[kept],
            head=heads[kept],
            tail=tail_numbers[kept],
            style=prefix.style[kept],
            time_ns=prefix.time_ns[kept],
            has_time=prefix.has_time[kept],
            numbers={name: values[kept] for name, values in numbers.items()},
        )
