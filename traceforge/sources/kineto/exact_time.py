"""Times as written, exactly. In: JSON tokens in µs, one a line. Out: int64 nanoseconds, no float on the way.

Idea: with the decimal points taken out, all tokens of a batch are integers that numpy parses in one call; the number
of digits behind each point then says what to multiply by. Digits beyond the nanosecond round half to even. Tokens of
another form (exponents, numbers in quotes, more than 18 digits) take an exact path of their own, one by one.
Not handled: times beyond ±2^62 ns (about 146 years), which count as out of range.
"""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LIMIT_NS = 2**62
_NEWLINE, _POINT = 10, 46
_POWERS = 10 ** np.arange(19, dtype=np.int64)
_LONGEST_EVEN_TOKEN = 32
_ODD = (b"e", b"E", b'"', b"n")  # true, false and null hold one of these, too
_PLAIN = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
_NUMBER = re.compile(rb"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,9}))?")

Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Times:
    """Exact times of a batch.

    Attributes:
        values_ns: shape (tokens,); 0 where not known.
        known: shape (tokens,); False where the token is absent, null, unreadable or out of range.
        unreadable: positions of tokens that are present but no numbers.
        out_of_range: positions of those beyond ±2^62 ns.
    """

    values_ns: Int64Array
    known: BoolArray
    unreadable: tuple[int, ...] = ()
    out_of_range: tuple[int, ...] = ()


def to_nanoseconds(tokens: bytes) -> Times:
    """Exact times of tokens in µs.

    Args:
        tokens: JSON scalars, each ended by a newline; an empty line is an absent value. Validated by a JSON
            decoder before: what starts like a number is one.
    """
    if any(mark in tokens for mark in _ODD):
        return _with_odd_tokens(tokens)
    buffer = np.frombuffer(tokens, np.uint8)
    lengths, places = _even_layout(buffer) or _layout(buffer)
    known = lengths > 0
    values = np.zeros(len(known), np.int64)
    if not known.any():
        return Times(values, known)
    digits = np.fromstring(tokens.replace(b".", b""), np.int64, sep="\n")
    values[known], exact = _scale(digits, places[known])
    if exact.all():
        return Times(values, known)
    doubtful = np.flatnonzero(known)[~exact]
    return _one_by_one(tokens.split(b"\n"), doubtful.tolist(), Times(values, known))


def _even_layout(buffer: npt.NDArray[np.uint8]) -> tuple[Int64Array, Int64Array] | None:
    """The same as `_layout`, where all tokens look like the first one; else None."""
    ends = np.flatnonzero(buffer[:_LONGEST_EVEN_TOKEN] == _NEWLINE)
    if not len(ends) or len(buffer) % (width := int(ends[0]) + 1):
        return None
    count = len(buffer) // width
    points = np.flatnonzero(buffer[:width] == _POINT)
    for mark, place in ((_NEWLINE, width - 1), *((_POINT, place) for place in points)):
        if not (buffer[place::width] == mark).all():
            return None
    if np.count_nonzero(buffer == _NEWLINE) > count or np.count_nonzero(buffer == _POINT) > count * len(points):
        return None
    places = width - 2 - int(points[0]) if len(points) else 0
    return np.full(count, width - 1), np.full(count, places)


def _layout(buffer: npt.NDArray[np.uint8]) -> tuple[Int64Array, Int64Array]:
    """Length of every token, and its digits behind the decimal point (0 without one)."""
    marks = np.flatnonzero((buffer == _NEWLINE) | (buffer == _POINT))
    is_end = buffer[marks] == _NEWLINE
    ends = np.flatnonzero(is_end)
    lengths = np.diff(marks[ends], prepend=-1) - 1
    gaps = np.diff(marks, prepend=-1) - 1
    has_point = ~is_end[ends - 1]
    has_point[:1] = ends[:1] > 0
    return lengths, np.where(has_point, gaps[ends], 0)


def _scale(digits: Int64Array, places: Int64Array) -> tuple[Int64Array, BoolArray]:
    """Nanoseconds from digits without their point, and where they are surely exact.

    A number that int64 cannot hold was parsed as the largest int64, so it is never taken for exact.
    """
    least, most = places.min(), places.max()
    if least == most == 3:
        return digits, np.abs(digits) <= LIMIT_NS
    if most <= 3:
        factors = _POWERS[3 - places] if least < most else _POWERS[3 - least]
        return digits * factors, np.abs(digits) <= LIMIT_NS // factors
    factors = _POWERS[np.clip(3 - places, 0, 3)]
    divisors = _POWERS[np.clip(places - 3, 0, 18)]
    exact = (np.abs(digits) <= LIMIT_NS // factors) & (places <= 21)
    return _divide_half_even(digits * factors, divisors), exact


def _divide_half_even(numbers: Int64Array, divisors: Int64Array) -> Int64Array:
    quotients, remainders = np.divmod(numbers, divisors)
    above = remainders > divisors - remainders
    tie = remainders == divisors - remainders
    rounded: Int64Array = quotients + (above | (tie & (quotients % 2 == 1)))
    return rounded


def _with_odd_tokens(tokens: bytes) -> Times:
    lines = tokens.split(b"\n")[:-1]
    odd = [index for index, line in enumerate(lines) if line and not _PLAIN.fullmatch(line)]
    plain = list(lines)
    for index in odd:
        plain[index] = b""
    return _one_by_one(lines, odd, to_nanoseconds(b"\n".join(plain) + b"\n"))


def _one_by_one(lines: list[bytes], places: list[int], times: Times) -> Times:
    """The same times, with the tokens at the given places read by exact integer arithmetic."""
    values, known = times.values_ns.copy(), times.known.copy()
    unreadable, out_of_range = list(times.unreadable), list(times.out_of_range)
    for index in places:
        known[index], values[index] = False, 0
        if lines[index] == b"null":
            continue
        try:
            values[index] = exact_nanoseconds(lines[index])
            known[index] = True
        except OverflowError:
            out_of_range.append(index)
        except ValueError:
            unreadable.append(index)
    return Times(values, known, tuple(unreadable), tuple(out_of_range))


def exact_nanoseconds(token: bytes) -> int:
    """One token in µs, a number or a number in quotes, as ns; digits beyond round half to even.

    Raises:
        ValueError: it is no number.
        OverflowError: it is beyond ±2^62 ns.
    """
    match = _NUMBER.fullmatch(token.strip(b'"').strip())
    if match is None or not (match[2] or match[3]):
        raise ValueError("no number")
    digits = (match[2] + (match[3] or b"")).lstrip(b"0")
    if not digits:
        return 0
    shift = int(match[4] or 0) - len(match[3] or b"") + 3
    if len(digits) + shift > 19:
        raise OverflowError("beyond ±2^62 ns")
    if len(digits) + shift < 0:
        return 0
    magnitude = _shifted(digits, shift)
    if magnitude > LIMIT_NS:
        raise OverflowError("beyond ±2^62 ns")
    return -magnitude if match[1] == b"-" else magnitude


def _shifted(digits: bytes, shift: int) -> int:
    """The integer `digits` times 10**shift, rounded half to even."""
    if shift >= 0:
        return int(digits + b"0" * shift)
    whole = int(digits[:shift] or b"0")
    rest = digits[shift:].rjust(-shift, b"0").rstrip(b"0")
    if rest > b"5" or (rest == b"5" and whole % 2 == 1):
        return whole + 1
    return whole
