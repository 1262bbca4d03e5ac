"""What a thread did at each instant. In: stretches within one another. Out: pieces, each with its innermost one.

    forward   |----------------|              forward  |--|      |-----|
    call          |------|              ->    call         |------|

Idea: at each edge the depth goes up or down by one; the innermost stretch is the last that began at that depth.
Not handled: stretches that overlap without one lying within the other; each instant then has one of them.
"""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
_DEEPEST = 64


def innermost(starts_ns: Integers, ends_ns: Integers) -> tuple[Integers, Integers, Integers]:
    """Pieces in order of time: which stretch each belongs to, its start and its end."""
    known = np.flatnonzero(ends_ns > starts_ns)
    starts, ends = starts_ns[known], ends_ns[known]
    count = len(known)
    lasts = ends - starts
    # Of edges at one time the ends come first; the longer stretch begins first and ends last.
    time = np.concatenate([ends, starts])
    opens = np.repeat([False, True], count)
    order = np.lexsort((np.concatenate([lasts, -lasts]), opens, time))
    time, opens = time[order], opens[order]
    owner = np.tile(np.arange(count), 2)[order]
    depth = np.cumsum(np.where(opens, 1, -1))
    inner = np.full(len(time), -1)
    for level in range(1, min(int(depth.max(initial=0)), _DEEPEST) + 1):
        last = np.maximum.accumulate(np.where(opens & (depth == level), np.arange(len(time)), -1))
        at = (depth == level) & (last >= 0)
        inner[at] = owner[last[at]]
    lengths = np.diff(time, append=time[-1:])
    kept = np.flatnonzero((inner >= 0) & (lengths > 0))
    return known[inner[kept]], time[kept], time[kept] + lengths[kept]
