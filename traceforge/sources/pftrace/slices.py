"""Slices of the host: begins and ends paired. In: type, track and time of every track event. Out: when each ends.

Idea: the writer puts all begins of a group before all its ends, in equal order; where that fits, the n-th end is that
of the n-th begin, whatever overlaps. Elsewhere an end closes the slice of its track that began last.
Not handled: ends that stand before their begins.
"""

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
BEGIN, END, INSTANT = 1, 2, 3


def ends_ns(kinds: Int64s, tracks: Int64s, times_ns: Int64s) -> tuple[Int64s, NDArray[np.bool_]]:
    """When the slice of each event ends, and whether it ends at all; of all but begins nothing is said.

    Args:
        kinds, tracks, times_ns: of the events in the order of the file, of shape (events,).
    """
    ends, has_end = np.zeros(len(kinds), np.int64), np.zeros(len(kinds), np.bool_)
    bounds = np.flatnonzero(np.diff(kinds, prepend=-1, append=-1))
    left: list[int] = []
    place = 0
    while place < len(bounds) - 1:
        first, middle = int(bounds[place]), int(bounds[place + 1])
        last = int(bounds[place + 2]) if place + 2 < len(bounds) else middle
        begins, closes = np.arange(first, middle), np.arange(middle, last)
        is_group = kinds[first] == BEGIN and last > middle and kinds[middle] == END and not left
        if is_group and len(begins) == len(closes) and (tracks[begins] == tracks[closes]).all():
            ends[begins], has_end[begins] = times_ns[closes], True
            place += 2
        else:
            left += begins.tolist()
            place += 1
    _pair_nested(np.array(left, np.int64), kinds, tracks, times_ns, ends, has_end)
    return ends, has_end


def _pair_nested(
    left: Int64s, kinds: Int64s, tracks: Int64s, times_ns: Int64s, ends: Int64s, has_end: NDArray[np.bool_]
) -> None:
    """Pair what is in no group, track by track in the order of time; ends come first at equal times."""
    chosen = left[np.isin(kinds[left], (BEGIN, END))] if len(left) else left
    order = chosen[np.lexsort((chosen, -kinds[chosen], times_ns[chosen], tracks[chosen]))]
    open_ones: list[int] = []
    track = None
    for one in order.tolist():
        if tracks[one] != track:
            open_ones, track = [], tracks[one]
        if kinds[one] == BEGIN:
            open_ones.append(one)
        elif open_ones:
            begun = open_ones.pop()
            ends[begun], has_end[begun] = times_ns[one], True
