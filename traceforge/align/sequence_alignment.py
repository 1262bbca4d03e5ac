"""Two ranks' calls laid side by side. In: kinds and times of both. Out: pairs of places that belong together.

For sequences that differ: events were lost, or the windows begin at different calls. First the offset of the clocks:
of all ways to shift one sequence against the other, the one under which ends agree best (a wrong shift leaves the
jitter of the iterations, the right one only that of the clocks; of equally good ones that which moves the clock
least). Then both are walked through together: partners are of one kind, overlap in time and have the closest ends.
Not handled: clocks that drift by more than the calls last.
"""

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import align as thresholds

Numbers = NDArray[np.int64]

_MANY_COMPARISONS = 200_000_000
_FEW_COMPARISONS = 20_000_000


def align_sequences(
    kind: Numbers, arrival_ns: Numbers, end_ns: Numbers,
    other_kind: Numbers, other_arrival_ns: Numbers, other_end_ns: Numbers,
) -> Numbers:  # fmt: skip
    """Pairs (place, other place) in order, shape (pairs, 2); none where they are fewer than three, or than half."""
    offset = best_offset(kind, end_ns, other_kind, other_end_ns)
    if offset is None:
        return np.zeros((0, 2), dtype=np.int64)
    pairs = _walk(kind, arrival_ns, end_ns, other_kind, other_arrival_ns - offset, other_end_ns - offset)
    enough = max(thresholds.LEAST_PAIRS, int(thresholds.LEAST_PAIRED_SHARE * min(len(kind), len(other_kind))))
    return pairs if len(pairs) >= enough else pairs[:0]


def is_shifted(kind: Numbers, end_ns: Numbers, other_kind: Numbers, other_end_ns: Numbers) -> bool:
    """Whether sequences that are alike fit far better when one is shifted, and the clocks lie closer then.

    So it is where windows of one loop begin in different iterations.
    """
    width, offset = _agreement(other_end_ns - end_ns)
    if width <= thresholds.ORDER_TOLERANCE_NS:
        return False
    best = _best_shift(kind, end_ns, other_kind, other_end_ns, _FEW_COMPARISONS)
    return best is not None and thresholds.LEAST_SHIFT_GAIN * best[0] < width and abs(best[1]) < abs(offset)


def best_offset(kind: Numbers, end_ns: Numbers, other_kind: Numbers, other_end_ns: Numbers) -> int | None:
    """How far the other clock is ahead, ns; None where no shift makes three calls agree in kind."""
    best = _best_shift(kind, end_ns, other_kind, other_end_ns, _MANY_COMPARISONS)
    return None if best is None else best[1]


def _best_shift(
    kind: Numbers, end_ns: Numbers, other_kind: Numbers, other_end_ns: Numbers, comparisons: int
) -> tuple[int, int] | None:
    """Width and offset, ns, of the shift under which ends agree best; None where no three calls agree in kind."""
    most = max(1, comparisons // max(min(len(kind), len(other_kind)), 1))
    found: list[tuple[int, int]] = []
    for shift in range(max(1 - len(other_kind), -most), min(len(kind), most)):
        own = slice(max(shift, 0), min(len(kind), len(other_kind) + shift))
        others = slice(own.start - shift, own.stop - shift)
        agreeing = np.flatnonzero(kind[own] == other_kind[others])
        if len(agreeing) >= thresholds.LEAST_PAIRS:
            found.append(_agreement((other_end_ns[others] - end_ns[own])[agreeing]))
    if not found:
        return None
    limit = thresholds.EQUAL_SHIFT_RATIO * min(found)[0]
    return min((pair for pair in found if pair[0] <= limit), key=lambda pair: abs(pair[1]))


def _agreement(apart_ns: Numbers) -> tuple[int, int]:
    """Narrowest range that holds a quarter of the differences, and its middle one, ns."""
    apart = np.sort(apart_ns)
    part = min(max(thresholds.LEAST_PAIRS, int(thresholds.AGREEING_SHARE * len(apart))), len(apart))
    widths = apart[part - 1 :] - apart[: len(apart) - part + 1]
    narrowest = int(widths.argmin())
    return int(widths[narrowest]), int(apart[narrowest + part // 2])


def _walk(
    kind: Numbers, arrival_ns: Numbers, end_ns: Numbers,
    other_kind: Numbers, other_arrival_ns: Numbers, other_end_ns: Numbers,
) -> Numbers:  # fmt: skip
    """Pairs of calls that fit, on one clock, each the closest of its neighbours."""
    kinds, arrivals, ends = kind.tolist(), arrival_ns.tolist(), end_ns.tolist()
    other_kinds, other_arrivals, other_ends = other_kind.tolist(), other_arrival_ns.tolist(), other_end_ns.tolist()

    def fits(i: int, j: int) -> bool:
        if i >= len(kinds) or j >= len(other_kinds) or kinds[i] != other_kinds[j]:
            return False
        return bool(max(arrivals[i], other_arrivals[j]) <= min(ends[i], other_ends[j]) + thresholds.ORDER_TOLERANCE_NS)

    pairs = []
    i = j = 0
    while i < len(kinds) and j < len(other_kinds):
        apart = abs(ends[i] - other_ends[j])
        if not fits(i, j):
            i, j = (i + 1, j) if ends[i] <= other_ends[j] else (i, j + 1)
        elif fits(i + 1, j) and abs(ends[i + 1] - other_ends[j]) < apart:
            i += 1
        elif fits(i, j + 1) and abs(ends[i] - other_ends[j + 1]) < apart:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
