"""Alignment of two ranks' calls in time. In: kinds and times of both. Out: pairs of positions that belong together.

For sequences that differ: events were lost, or the windows begin at different calls. First the offset of the clocks:
of all ways to shift one sequence against the other, the one under which ends agree best (a wrong shift leaves the
jitter of the iterations, the right one only that of the clocks; of equally good ones that which moves the clock
least). Then both are merged in order of time: partners are of one kind, overlap in time unless the collective has a
root, and have the closest ends.
Not handled: clocks that drift by more than the calls last.
"""

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import align as thresholds

Numbers = NDArray[np.int64]

_MANY_COMPARISONS = 200_000_000
_FEW_COMPARISONS = 20_000_000


@dataclass(frozen=True, slots=True)
class CallSequence:
    """CallSequence of one rank in order of issue, shape (calls,); times in ns on the rank's own clock.

    Attributes:
        kind: equal for calls of the same operation and, where it is the same on all ranks, size.
        stated: sequence number that the trace states, -1 where it states none.
        iteration: iteration of the call, -1 outside of all.
        rooted: 1 where the collective has a root: a rank may end it before another starts; empty where none has.
    """

    kind: Numbers
    stated: Numbers
    iteration: Numbers
    arrival_ns: Numbers
    end_ns: Numbers
    rooted: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        """Number of calls."""
        return len(self.kind)

    def until(self, count: int) -> "CallSequence":
        """The first calls."""
        return CallSequence(*(getattr(self, one.name)[:count] for one in fields(self)))

    def is_rooted(self) -> NDArray[np.bool_]:
        """Whether each call is of a collective with a root."""
        return self.rooted == 1 if len(self.rooted) else np.zeros(len(self), dtype=np.bool_)


def align_sequences(reference: CallSequence, other: CallSequence) -> Numbers:
    """Pairs (place, other place) in order, shape (pairs, 2); none where they are too few of the shorter sequence."""
    best = _best_shift(reference.kind, reference.end_ns, other.kind, other.end_ns, _MANY_COMPARISONS)
    if best is None:
        return np.zeros((0, 2), dtype=np.int64)
    pairs = _merge(reference, other, best[1])
    enough = max(thresholds.LEAST_PAIRS, int(thresholds.LEAST_PAIRED_SHARE * min(len(reference), len(other))))
    return pairs if len(pairs) >= enough else pairs[:0]


def is_shifted(kind: Numbers, end_ns: Numbers, other_kind: Numbers, other_end_ns: Numbers) -> bool:
    """Whether equal sequences agree far better when one is shifted, and the clocks are closer then.

    This happens where windows of one loop begin in different iterations.
    """
    width, offset = agreement(other_end_ns - end_ns)
    if width <= thresholds.ORDER_TOLERANCE_NS:
        return False
    best = _best_shift(kind, end_ns, other_kind, other_end_ns, _FEW_COMPARISONS)
    return best is not None and thresholds.LEAST_SHIFT_GAIN * best[0] < width and abs(best[1]) < abs(offset)


def is_renumbered(iteration: Numbers, end_ns: Numbers, other_iteration: Numbers, other_end_ns: Numbers) -> bool:
    """Whether equal sequences pair iterations of different numbers, always apart by as many, and clocks deny that.

    Steps that take nearly the same time agree under any shift; clocks are far closer where the numbers are equal.
    """
    counted = (iteration >= 0) & (other_iteration >= 0)
    ahead = np.unique((other_iteration - iteration)[counted])
    numbers, first = np.unique(iteration[counted], return_index=True)
    if len(ahead) != 1 or not ahead[0] or len(numbers) <= 1:
        return False
    lasting = np.median(np.diff(end_ns[counted][first]) / np.diff(numbers))
    apart_ns = float(np.median((other_end_ns - end_ns)[counted]))
    return bool(thresholds.LEAST_SHIFT_GAIN * abs(apart_ns - ahead[0] * lasting) < abs(apart_ns))


def _best_shift(
    kind: Numbers, end_ns: Numbers, other_kind: Numbers, other_end_ns: Numbers, comparisons: int
) -> tuple[int, int] | None:
    """Width and offset, ns, of the shift under which ends agree best; None where too few calls agree in kind."""
    most = max(1, comparisons // max(min(len(kind), len(other_kind)), 1))
    found: list[tuple[int, int]] = []
    for shift in range(max(1 - len(other_kind), -most), min(len(kind), most)):
        own = slice(max(shift, 0), min(len(kind), len(other_kind) + shift))
        others = slice(own.start - shift, own.stop - shift)
        agreeing = np.flatnonzero(kind[own] == other_kind[others])
        if len(agreeing) >= thresholds.LEAST_PAIRS:
            found.append(agreement((other_end_ns[others] - end_ns[own])[agreeing]))
    if not found:
        return None
    limit = thresholds.EQUAL_SHIFT_RATIO * min(found)[0]
    return min((pair for pair in found if pair[0] <= limit), key=lambda pair: abs(pair[1]))


def agreement(apart_ns: Numbers) -> tuple[int, int]:
    """Narrowest range that holds a quarter of the differences, and its middle one, ns."""
    apart = np.sort(apart_ns)
    part = min(max(thresholds.LEAST_PAIRS, int(thresholds.AGREEING_SHARE * len(apart))), len(apart))
    widths = apart[part - 1 :] - apart[: len(apart) - part + 1]
    narrowest = int(widths.argmin())
    return int(widths[narrowest]), int(apart[narrowest + part // 2])


def _merge(reference: CallSequence, other: CallSequence, ahead_ns: int) -> Numbers:
    """Pairs of calls that fit, each the closest of its neighbours, where the other clock is ahead by so much."""
    kinds, arrivals, ends = (values.tolist() for values in (reference.kind, reference.arrival_ns, reference.end_ns))
    shifted = (other.kind, other.arrival_ns - ahead_ns, other.end_ns - ahead_ns)
    other_kinds, other_arrivals, other_ends = (values.tolist() for values in shifted)
    rooted = reference.is_rooted().tolist()

    def fits(i: int, j: int) -> bool:
        if i >= len(kinds) or j >= len(other_kinds) or kinds[i] != other_kinds[j]:
            return False
        if rooted[i]:
            return True
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
