"""What stands before the heads of many lines: time stamps and launchers' prefixes. In: a block. Out: arrays.

Idea: the slow way finds the form of the stamps; then all stamps of that width are read at once, seconds by look-up (few
differ) and fractions as numbers. Launchers' prefixes are few texts, looked up as a whole.
Not handled: stamps of another width than the first one (left to the slow way).
"""

from dataclasses import dataclass

import numpy as np

from traceforge.sources.nccl_log.byte_words import BoolArray, ByteWords, Int64Array
from traceforge.sources.nccl_log.launchers import NO_PREFIX, Prefix, read_prefix
from traceforge.sources.nccl_log.stamps import Stamp, read_stamp

_MOST_KNOWN = 100_000
_UNREADABLE = -(2**63)
_UNKNOWN_STYLE = -2


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
        self._numbers: dict[bytes, int] = {b"": -1}
        self._seconds: dict[bytes, int] = {}

    def learn(self, prefix: bytes, stamp: Stamp | None) -> None:
        """Remember the form of the first stamp, as it stands at the end of a prefix."""
        if stamp is None or self._form is not None:
            return
        start, end = stamp.fraction or (len(prefix), len(prefix))
        tail = prefix[end:]
        if prefix.isascii() and len(tail) <= 8:
            sample = prefix[stamp.start :].decode("ascii")
            self._form = StampForm(len(sample), len(prefix) - start, end - start, tail, sample)
            self.stamp = stamp.form, stamp.resolution_ns

    def read(self, data: bytes, words: ByteWords, starts: Int64Array, ends: Int64Array) -> PrefixColumns:
        """Prefixes between the lines' starts and their heads."""
        has_prefix = ends > starts
        time_ns = np.zeros(starts.size, dtype=np.int64)
        has_time = np.zeros(starts.size, dtype=np.bool_)
        style = np.full(starts.size, -1, dtype=np.int64)
        is_known = ~has_prefix
        places = np.flatnonzero(has_prefix)
        if places.size:
            first, behind = starts[places], ends[places]
            times, timed = self._times(data, words, first, behind)
            width = 0 if self._form is None else self._form.width
            numbers = self._style_numbers(data, first, behind - np.where(timed, width, 0))
            time_ns[places], has_time[places], style[places] = times, timed, numbers
            is_known[places] = (numbers > _UNKNOWN_STYLE) & (timed | (self._form is None))
        return PrefixColumns(is_known, style, time_ns, has_time)

    def _times(
        self, data: bytes, words: ByteWords, starts: Int64Array, ends: Int64Array
    ) -> tuple[Int64Array, BoolArray]:
        form = self._form
        if form is None:
            return np.zeros(starts.size, dtype=np.int64), np.zeros(starts.size, dtype=np.bool_)
        begin, point = ends - form.width, ends - form.fraction_start
        fits = begin >= starts
        texts = zip(np.maximum(begin, 0).tolist(), point.tolist(), strict=True)
        seconds = np.array([self._second(data[a:b], form) for a, b in texts], dtype=np.int64)
        fits &= seconds != _UNREADABLE
        if not form.fraction_digits:
            return seconds, fits
        fraction, readable = words.decimals(point, point + form.fraction_digits)
        fits &= readable & words.begin_with(point + form.fraction_digits, form.tail)
        fraction_ns = fraction.astype(np.int64) * 10 ** (9 - form.fraction_digits)
        return np.where(fits, seconds, 0) + np.where(fits, fraction_ns, 0), fits

    def _second(self, text: bytes, form: StampForm) -> int:
        """Time of a stamp with a fraction of zero."""
        found = self._seconds.get(text)
        if found is None:
            whole = text + b"0" * form.fraction_digits + (form.tail if form.fraction_digits else b"")
            stamp = read_stamp(whole.decode("latin-1"))
            found = _UNREADABLE if stamp is None or stamp.start else stamp.time_ns
            if len(self._seconds) > _MOST_KNOWN:
                self._seconds.clear()
            self._seconds[text] = found
        return found

    def _style_numbers(self, data: bytes, starts: Int64Array, ends: Int64Array) -> Int64Array:
        """Numbers of launchers' prefixes; -2 where there are too many, or more than that stands in one."""
        found = [self._style(data[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        return np.array(found, dtype=np.int64)

    def _style(self, text: bytes) -> int:
        number = self._numbers.get(text)
        if number is None:
            decoded = text.decode("utf-8", "replace")
            if len(self._numbers) > _MOST_KNOWN or b"NCCL " in text or self._is_stamped(decoded):
                return _UNKNOWN_STYLE
            prefix = read_prefix(decoded)
            number = self._numbers[text] = -1 if prefix == NO_PREFIX else len(self.styles)
            if number >= 0:
                self.styles.append(prefix)
        return number

    def _is_stamped(self, text: str) -> bool:
        """Whether a stamp of another form stands at the end, or one that begins here and ends with the known form."""
        stamp = read_stamp(text + ("" if self._form is None else self._form.sample))
        return stamp is not None and stamp.start < len(text)
