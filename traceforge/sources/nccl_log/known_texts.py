"""Texts that were seen before, found many at once. In: where texts start and end. Out: their numbers.

Idea: texts are compared as 64-bit words, word by word for all of them at once: a hash of the few words in which known
texts differ finds the only text it can be, and every word is then compared, so that no two are taken for one another.
Not handled: texts above 512 bytes, and more than a bounded number of texts (both stay unknown).
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from traceforge.sources.nccl_log.byte_words import LONGEST_TEXT, ByteWords, Int64Array, UInt64Array

_MOST_KNOWN = 50_000
_WORD = 8
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)

Entry = TypeVar("Entry")


class KnownTexts(Generic[Entry]):
    """Texts that were read the slow way, numbered.

    Attributes:
        entries: what they mean, by number.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._numbers: dict[bytes, int] = {}
        self._texts: list[bytes] = []
        self._index = _TextIndex([])

    def learn(self, text: bytes, entry: Entry) -> None:
        """Remember what a text means; beyond a bound nothing more is learnt."""
        if text not in self._numbers and len(self.entries) < _MOST_KNOWN and len(text) <= LONGEST_TEXT:
            self._numbers[text] = len(self.entries)
            self._texts.append(text)
            self.entries.append(entry)

    def numbers(self, words: ByteWords, starts: Int64Array, ends: Int64Array) -> Int64Array:
        """Numbers of many texts; -1 where unknown."""
        if len(self._texts) != self._index.size:
            self._index = _TextIndex(self._texts)
        return self._index.find(words, starts, ends - starts)


class _TextIndex:
    """Known texts as rows of words, in the order of their hashes."""

    def __init__(self, texts: Sequence[bytes]) -> None:
        self.size = len(texts)
        self._width = max((-(-len(text) // _WORD) for text in texts), default=0)
        padded = b"".join(text.ljust(self._width * _WORD, b"\0") for text in texts)
        rows = np.frombuffer(padded, dtype="<u8").reshape(self.size, self._width)
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        columns = [rows[:, number] for number in range(self._width)]
        self._hashed = _telling(columns, lengths)
        hashes = _hashes([columns[number] for number in self._hashed], lengths)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]
        self._columns = [np.ascontiguousarray(column[self._order]) for column in columns]
        self._lengths = lengths[self._order]

    def find(self, words: ByteWords, starts: Int64Array, lengths: Int64Array) -> Int64Array:
        """Numbers of texts, -1 where unknown."""
        if not self.size or not starts.size:
            return np.full(starts.size, -1, dtype=np.int64)
        columns = words.columns(starts, lengths, self._width)
        hashes = _hashes([columns[number] for number in self._hashed], lengths)
        place = np.minimum(np.searchsorted(self._hashes, hashes), self.size - 1)
        same = np.equal(self._lengths[place], lengths)
        for known, column in zip(self._columns, columns, strict=True):
            same &= np.equal(known[place], column)
        return np.where(same, self._order[place], -1)


def _telling(columns: Sequence[UInt64Array], lengths: Int64Array) -> list[int]:
    """Numbers of a few columns whose hash tells as many texts apart as that of all columns."""
    chosen: list[int] = []
    apart, wanted = np.unique(lengths).size, np.unique(_hashes(columns, lengths)).size
    for number in range(len(columns)):
        if apart == wanted:
            break
        more = np.unique(_hashes([columns[other] for other in (*chosen, number)], lengths)).size
        if more > apart:
            chosen, apart = [*chosen, number], more
    return chosen


def _hashes(columns: Sequence[UInt64Array], lengths: Int64Array) -> UInt64Array:
    found = lengths.astype(np.uint64)
    for column in columns:
        found = (found ^ column) * _MULTIPLIER
        found ^= found >> _SHIFT
    return found
