"""Numbers out of text without a loop. In: bytes, and where numbers start and end. Out: arrays of integers.

Idea: eight bytes are loaded as one 64-bit word and combined pairwise (digits to tens, hundreds, ten thousands), for all
numbers at once; what is no number of the expected form is marked, never guessed.
Not handled: signs, more than 16 digits (marked as invalid).
"""

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

LONGEST_TEXT = 512
_WORD = 8
FRONT_PADDING, BACK_PADDING = b"\0" * _WORD, b"\0" * (LONGEST_TEXT + 2 * _WORD)
_ALL = 2**64 - 1
# _KEPT[n]: the last n bytes of a word, which in memory stand behind the others.
_KEPT = np.array([(_ALL << (8 * (_WORD - count))) & _ALL for count in range(_WORD + 1)], dtype=np.uint64)
# _HEAD[n]: the first n bytes.
_HEAD = np.array([(1 << (8 * count)) - 1 for count in range(_WORD + 1)], dtype=np.uint64)


def _each(byte: int) -> np.uint64:
    return np.uint64(int.from_bytes(bytes([byte]) * _WORD, "little"))


def _number(value: int) -> np.uint64:
    return np.uint64(value)


def windows(buffer: bytes | Int64Array, step: int, count: int) -> npt.NDArray[np.void]:
    """Every run of `count` words of a buffer, from each `step`-th byte on; nothing is copied before one is taken."""
    size = len(buffer) if isinstance(buffer, bytes) else buffer.nbytes
    shape = (max(0, (size - count * _WORD) // step + 1),)
    return np.ndarray(shape=shape, dtype=f"V{count * _WORD}", buffer=buffer, strides=(step,))


class ByteWords:
    """Eight-byte windows at any place of some bytes, up to eight bytes before the first and behind the last."""

    def __init__(self, padded: bytes) -> None:
        """Take bytes between FRONT_PADDING and BACK_PADDING, which do not count."""
        self.size = len(padded) - len(FRONT_PADDING) - len(BACK_PADDING)
        self._padded = padded
        self.bytes = np.frombuffer(padded, dtype=np.uint8)[_WORD : _WORD + self.size]
        self._words: UInt64Array = np.ndarray(shape=(len(padded) - _WORD,), dtype="<u8", buffer=padded, strides=(1,))

    def at(self, places: Int64Array) -> UInt64Array:
        """The eight bytes from each place on; places within -8 .. size + 8."""
        return self._words[places + _WORD]

    def columns(self, starts: Int64Array, lengths: Int64Array, count: int) -> list[UInt64Array]:
        """The first `count` words of texts of at most LONGEST_TEXT, a column each, with zeros behind their ends."""
        if not count:
            return []
        # One copy of a whole text costs as much as one of its words.
        rows = windows(self._padded, 1, count)[np.minimum(starts, self.size) + _WORD].view("<u8")
        columns = list(np.ascontiguousarray(rows.reshape(-1, count).T))
        shortest = int(lengths.min(initial=LONGEST_TEXT))
        for number, column in enumerate(columns):
            if shortest < (number + 1) * _WORD:
                cut = np.flatnonzero(lengths < (number + 1) * _WORD)
                column[cut] &= _HEAD[np.clip(lengths[cut] - number * _WORD, 0, _WORD)]
        return columns

    def changes(self, starts: Int64Array, ends: Int64Array) -> BoolArray:
        """Where a text differs from the one before it; the first always does."""
        lengths = ends - starts
        found = np.ones(starts.size, dtype=np.bool_)
        found[1:] = np.diff(lengths) != 0
        longest = min(int(lengths.max(initial=0)), LONGEST_TEXT)
        found[1:] |= lengths[1:] > LONGEST_TEXT
        for column in self.columns(starts, lengths, -(-longest // _WORD)):
            found[1:] |= column[1:] != column[:-1]
        return found

    def begin_with(self, places: Int64Array, literal: bytes) -> BoolArray:
        """Where the bytes from each place on are a literal."""
        is_there: BoolArray = np.ones(places.shape, dtype=np.bool_)
        for first in range(0, len(literal), _WORD):
            part = literal[first : first + _WORD]
            is_there &= (self.at(places + first) & _HEAD[len(part)]) == np.uint64(int.from_bytes(part, "little"))
        return is_there

    def decimals(self, starts: Int64Array, ends: Int64Array) -> tuple[UInt64Array, BoolArray]:
        """Decimal numbers of 1 to 16 digits, and where there is one."""
        return self._numbers(starts, ends, _decimal_word, 10**_WORD)

    def hexadecimals(self, starts: Int64Array, ends: Int64Array) -> tuple[UInt64Array, BoolArray]:
        """Hexadecimal numbers of 1 to 16 digits without 0x, and where there is one."""
        return self._numbers(starts, ends, _hexadecimal_word, 16**_WORD)

    def addresses(self, starts: Int64Array, ends: Int64Array) -> tuple[UInt64Array, BoolArray]:
        """Addresses as printf's %p writes them: 0x and hex digits, or (nil), which is 0."""
        values, valid = self.hexadecimals(starts + 2, ends)
        valid &= self.begin_with(starts, b"0x")
        nil = self.begin_with(starts, b"(nil)") & (ends - starts == len(b"(nil)"))
        return np.where(nil, _number(0), values), valid | nil

    def _numbers(
        self, starts: Int64Array, ends: Int64Array, convert: "_Convert", weight: int
    ) -> tuple[UInt64Array, BoolArray]:
        digits = ends - starts
        values, valid = convert(self.at(ends - _WORD), _KEPT[np.clip(digits, 0, _WORD)])
        if digits.size and digits.max() > _WORD:
            high, high_valid = convert(self.at(ends - 2 * _WORD), _KEPT[np.clip(digits - _WORD, 0, _WORD)])
            values = values + high * _number(weight)
            valid = valid & high_valid
        return values, valid & (digits >= 1) & (digits <= 2 * _WORD)


class _Convert:
    """The form of the two functions below."""

    def __call__(self, words: UInt64Array, kept: UInt64Array) -> tuple[UInt64Array, BoolArray]:
        """Value of the digits in the kept bytes, and whether they are digits."""
        raise NotImplementedError


class _Decimal(_Convert):
    def __call__(self, words: UInt64Array, kept: UInt64Array) -> tuple[UInt64Array, BoolArray]:
        words = words & kept
        digits = words & _each(0x0F)
        wrong = ((words & _each(0xF0)) ^ (_each(0x30) & kept)) | ((digits + _each(0x76)) & _each(0x80))
        pairs = digits * _number(10 * 2**8 + 1) >> _number(8)
        fours = (pairs & _number(0x00FF00FF00FF00FF)) * _number(100 * 2**16 + 1) >> _number(16)
        eights = (fours & _number(0x0000FFFF0000FFFF)) * _number(10_000 * 2**32 + 1) >> _number(32)
        return eights, np.equal(wrong, 0)


class _Hexadecimal(_Convert):
    def __call__(self, words: UInt64Array, kept: UInt64Array) -> tuple[UInt64Array, BoolArray]:
        words = words & kept
        letters = (words >> _number(6)) & _each(0x01)
        nibbles = (words & _each(0x0F)) + letters * _number(9)
        # Lower case is folded into upper case; then a digit's upper half is 3, a letter's 4.
        upper = (words & ~(letters << _number(5))) & _each(0xF0)
        wrong = upper ^ ((_each(0x30) & kept) + (letters << _number(4)))
        # A letter counts 10 or more, a digit less than 10.
        wrong |= (((nibbles + _each(6)) >> _number(4)) & _each(0x01)) ^ letters
        wrong |= nibbles & _each(0xF0)
        pairs = (nibbles & _each(0x0F)) * _number(16 * 2**8 + 1) >> _number(8)
        fours = (pairs & _number(0x00FF00FF00FF00FF)) * _number(256 * 2**16 + 1) >> _number(16)
        eights = (fours & _number(0x0000FFFF0000FFFF)) * _number(65_536 * 2**32 + 1) >> _number(32)
        return eights, np.equal(wrong, 0)


_decimal_word = _Decimal()
_hexadecimal_word = _Hexadecimal()
