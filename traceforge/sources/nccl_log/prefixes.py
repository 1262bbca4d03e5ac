"""What stands before the heads of many lines: time stamps and launchers' prefixes. In: a block. Out: arrays.

Idea: the slow way finds the form of the stamps; then all stamps of that width are read at once, seconds by look-up (few
differ) and fractions as numbers. Launchers' prefixes are few texts, looked up as a whole.
Not handled: stamps of another width than the first one (left to the slow way).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traceforge.sources.nccl_log.byte_words import BoolArray, ByteWords, Int64Array
from traceforge.sources.nccl_log.known_texts import KnownTexts
from traceforge.sources.nccl_log.launchers import NO_PREFIX, Prefix, read_prefix
from traceforge.sources.nccl_log.stamps import Stamp, read_stamp

_MOST_SECONDS = 4_096
_FEW = 64
"""Lines in a row that share their second, from which on each row of them is read by itself."""
_LONGEST_TAIL_BYTES = 16
_UNREADABLE = -(2**63)
_UNKNOWN_STYLE = -2

TextAt = Callable[[int, int], bytes]
"""The bytes of a block between two places."""


@dataclass(frozen=True, slots=True)
class PrefixColumns:
    """One element a line in every array.

    Attributes:
        is_known: where the prefix could be read.
        style: number of the launcher's prefix; -1 where nothing stands there.
        time_ns: time stamp, ns.
        has_time: where there is a time stamp.
    """

    is_known: BoolArray
    style: Int64Array
    time_ns: Int64Array
    has_time: BoolArray


@dataclass(frozen=True, slots=True)
class StampForm:
    """Where a stamp stands before the head, counted back from it.

    Attributes:
        width: from its first byte to the head.
        fraction_start: from the fraction's first digit to the head; 0 where there is no fraction.
        fraction_digits: number of these digits.
        tail: what stands between the fraction and the head.
        sample: a whole stamp, up to the head.
    """

    width: int
    fraction_start: int
    fraction_digits: int
    tail: bytes
    sample: str


class KnownPrefixes:
    """Prefixes of one file.

    Attributes:
        styles: prefixes by number.
        stamp: form of the time stamps and their resolution, ns; None while there are none.
    """

    def __init__(self) -> None:
        self.styles: list[Prefix] = []
        self.stamp: tuple[str, int] | None = None
        self._form: StampForm | None = None
        self._texts: KnownTexts[int] = KnownTexts()
        self._seconds: KnownTexts[int] = KnownTexts()

    def learn(self, prefix: bytes, stamp: Stamp | None) -> None:
        """Remember the form of the first stamp, as it stands at the end of a prefix."""
        if stamp is None or self._form is not None:
            return
        start, end = stamp.fraction or (len(prefix), len(prefix))
        tail = prefix[end:]
        if prefix.isascii() and len(tail) <= _LONGEST_TAIL_BYTES:
            sample = prefix[stamp.start :].decode("ascii")
            self._form = StampForm(len(sample), len(prefix) - start, end - start, tail, sample)
            self.stamp = stamp.form, stamp.resolution_ns

    def read(self, text_at: TextAt, words: ByteWords, starts: Int64Array, ends: Int64Array) -> PrefixColumns:
        """Prefixes between the lines' starts and their heads."""
        has_prefix = ends > starts
        time_ns = np.zeros(starts.size, dtype=np.int64)
        has_time = np.zeros(starts.size, dtype=np.bool_)
        style = np.full(starts.size, -1, dtype=np.int64)
        is_known = ~has_prefix
        places = np.flatnonzero(has_prefix)
        if places.size:
            first, behind = starts[places], ends[places]
            times, timed = self._times(text_at, words, first, behind)
            width = 0 if self._form is None else self._form.width
            numbers = self._style_numbers(text_at, words, first, behind - np.where(timed, width, 0))
            time_ns[places], has_time[places], style[places] = times, timed, numbers
            is_known[places] = (numbers > _UNKNOWN_STYLE) & (timed | (self._form is None))
        return PrefixColumns(is_known, style, time_ns, has_time)

    def _times(
        self, text_at: TextAt, words: ByteWords, starts: Int64Array, ends: Int64Array
    ) -> tuple[Int64Array, BoolArray]:
        form = self._form
        if form is None:
            return np.zeros(starts.size, dtype=np.int64), np.zeros(starts.size, dtype=np.bool_)
        begin, point = ends - form.width, ends - form.fraction_start
        fits = begin >= starts
        seconds = self._all_seconds(text_at, words, np.maximum(begin, 0), point, form)
        fits &= seconds != _UNREADABLE
        if not form.fraction_digits:
            return seconds, fits
        fraction, readable = words.decimals(point, point + form.fraction_digits)
        fits &= readable & words.begin_with(point + form.fraction_digits, form.tail)
        fraction_ns = fraction.astype(np.int64) * 10 ** (9 - form.fraction_digits)
        return np.where(fits, seconds, 0) + np.where(fits, fraction_ns, 0), fits

    def _all_seconds(
        self, text_at: TextAt, words: ByteWords, starts: Int64Array, ends: Int64Array, form: StampForm
    ) -> Int64Array:
        """Times of stamps with fractions of zero; few differ, so each is read once."""
        first = np.flatnonzero(words.changes(starts, ends))
        if first.size * _FEW <= starts.size:
            texts = [text_at(a, b) for a, b in zip(starts[first].tolist(), ends[first].tolist(), strict=True)]
            times = np.array([_second(text, form) for text in texts], dtype=np.int64)
            return np.repeat(times, np.diff(first, append=starts.size))
        if len(self._seconds.entries) > _MOST_SECONDS:
            self._seconds = KnownTexts()
        numbers = self._seconds.numbers(words, starts, ends)
        unknown = _unknown(text_at, words, starts, ends, numbers)
        for text in unknown:
            self._seconds.learn(text, _second(text, form))
        if unknown:
            numbers = self._seconds.numbers(words, starts, ends)
        return np.array([*self._seconds.entries, _UNREADABLE], dtype=np.int64)[numbers]

    def _style_numbers(self, text_at: TextAt, words: ByteWords, starts: Int64Array, ends: Int64Array) -> Int64Array:
        """Numbers of launchers' prefixes; -2 where there are too many, or more than that stands in one."""
        found = np.full(starts.size, -1, dtype=np.int64)
        places = np.flatnonzero(ends > starts)
        if not places.size:
            return found
        first, behind = starts[places], ends[places]
        numbers = self._texts.numbers(words, first, behind)
        unknown = _unknown(text_at, words, first, behind, numbers)
        for text in unknown:
            self._texts.learn(text, self._style(text))
        if unknown:
            numbers = self._texts.numbers(words, first, behind)
        found[places] = np.array([*self._texts.entries, _UNKNOWN_STYLE], dtype=np.int64)[numbers]
        return found

    def _style(self, text: bytes) -> int:
        decoded = text.decode("utf-8", "replace")
        if b"NCCL " in text or self._is_stamped(decoded):
            return _UNKNOWN_STYLE
        prefix = read_prefix(decoded)
        if prefix == NO_PREFIX:
            return -1
        self.styles.append(prefix)
        return len(self.styles) - 1

    def _is_stamped(self, text: str) -> bool:
        """Whether a stamp of another form stands at the end, or one that begins here and ends with the known form."""
        stamp = read_stamp(text + ("" if self._form is None else self._form.sample))
        return stamp is not None and stamp.start < len(text)


def _second(text: bytes, form: StampForm) -> int:
    """Time of a stamp with a fraction of zero."""
    whole = text + b"0" * form.fraction_digits + (form.tail if form.fraction_digits else b"")
    stamp = read_stamp(whole.decode("latin-1"))
    return _UNREADABLE if stamp is None or stamp.start else stamp.time_ns


def _unknown(
    text_at: TextAt, words: ByteWords, starts: Int64Array, ends: Int64Array, numbers: Int64Array
) -> list[bytes]:
    """The texts that have no number yet, each once, in order."""
    unknown = np.flatnonzero(numbers < 0)
    fresh = unknown[words.changes(starts[unknown], ends[unknown])] if unknown.size else unknown
    return list(dict.fromkeys(text_at(a, b) for a, b in zip(starts[fresh].tolist(), ends[fresh].tolist(), strict=True)))
