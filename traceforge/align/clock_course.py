"""A rank's clock against the common one over time. In: rows of align.clock_piece, or knots. Out: `ClockCourse`."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traceforge.store.database import Store

Times = NDArray[np.int64]

BILLION = 1_000_000_000
_AT_ONCE = 65_536  # readings: a few numbers of each stand beside it meanwhile

_PIECES = """
SELECT raw_anchor_ns, offset_ns, drift_ppb FROM align.clock_piece WHERE run_id = ? AND rank = ? ORDER BY raw_anchor_ns
"""

_ALL_PIECES = """
SELECT rank, raw_anchor_ns, offset_ns, drift_ppb FROM align.clock_piece WHERE run_id = ? ORDER BY rank, raw_anchor_ns
"""


@dataclass(frozen=True, slots=True)
class ClockCourse:
    """A clock's offset over time: from each knot on it grows by `drift_ppb` until the next; shapes (pieces,).

    The first piece holds before its knot, too.
    """

    raw_ns: Times
    offset_ns: Times
    drift_ppb: Times

    def piece(self, raw_ns: Times) -> Times:
        """Index of the piece that holds when the clock shows each of `raw_ns`."""
        return np.maximum(np.searchsorted(self.raw_ns, raw_ns, side="right") - 1, 0)

    def at(self, raw_ns: Times) -> Times:
        """How far the clock is ahead when it shows each of `raw_ns`, ns; the same as `align.ahead_ns` in SQL."""
        piece = self.piece(raw_ns)
        # Both round towards zero.
        grown = (raw_ns - self.raw_ns[piece]) * self.drift_ppb[piece]
        result: Times = self.offset_ns[piece] + np.sign(grown) * (np.abs(grown) // BILLION)
        return result

    def aligned(self, raw_ns: Times) -> Times:
        """Readings of the clock on the common clock, ns."""
        found = np.empty(len(raw_ns), dtype=np.int64)
        for first in range(0, len(raw_ns), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            found[some] = raw_ns[some] - self.at(raw_ns[some])
        return found

    def raw(self, aligned_ns: Times) -> Times:
        """What the clock shows at times of the common one; how far it is ahead hardly changes meanwhile."""
        return aligned_ns + self.at(aligned_ns + self.offset_ns[self.piece(aligned_ns)])


def read_course(store: Store, run_id: int, rank: int) -> ClockCourse:
    """The course of a rank's clock, from align.clock_piece."""
    return ClockCourse(*store.query(_PIECES, [run_id, rank]).to_numpy().T)


def read_courses(store: Store, run_id: int) -> dict[int, ClockCourse]:
    """The course of each rank's clock."""
    pieces = store.arrays(_ALL_PIECES, [run_id])
    ranks, first = np.unique(pieces.pop("rank"), return_index=True)
    edges = np.append(first, len(pieces["drift_ppb"])).tolist()
    return {
        rank: ClockCourse(*(values[since:until] for values in pieces.values()))
        for rank, (since, until) in zip(ranks.tolist(), pairwise(edges), strict=True)
    }


def course_through(knots_ns: Times, offsets_ns: Times) -> ClockCourse:
    """Pieces through offsets at knots. Each drift is whole ppb and aims from where the piece before truly ends."""
    offsets, drifts = [int(offsets_ns[0])], []
    for start, end, target in zip(knots_ns[:-1].tolist(), knots_ns[1:].tolist(), offsets_ns[1:].tolist(), strict=True):
        drifts.append(round((target - offsets[-1]) * BILLION / (end - start)))
        grown = (end - start) * drifts[-1]
        offsets.append(offsets[-1] + (abs(grown) // BILLION) * (1 if grown >= 0 else -1))
    return ClockCourse(knots_ns[:-1], np.array(offsets[:-1], dtype=np.int64), np.array(drifts, dtype=np.int64))
