"""The offset of one clock against another. In: times of the same collectives on both. Out: `Offset`.

The idea: on a device a synchronising collective ends on all ranks together, so the differences of its ends lie on a
line, offset and drift; where the clock wanders, on a line of several pieces; where one clock is set in mid-run, on two
lines and a steep one between them. Fits are robust, so that stray ends do not
move them. All arithmetic is on differences of integers: setting a clock by some time moves its offset by exactly that
time. Not handled: a constant skew of the ends (such as a rank's place in a ring), which passes for offset.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceforge.align.clock_course import BILLION, ClockCourse, course_through
from traceforge.stats import MEDIAN_ERROR, huber_fit, mad_sd, median
from traceforge.thresholds import align as thresholds

Times = NDArray[np.int64]
Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Slope:
    """How fast differences grow: parts per billion, with standard error (infinite where unknown)."""

    ppb: float
    error_ppb: float

    @property
    def is_certain(self) -> bool:
        """Whether it differs from zero, and a crystal can drift so fast."""
        return thresholds.LEAST_DRIFT_ERRORS * self.error_ppb < abs(self.ppb) < thresholds.MOST_DRIFT_PPB


@dataclass(frozen=True, slots=True)
class Offset:
    """One clock against another.

    Attributes:
        offset_ns: how far it is ahead when it shows `raw_anchor_ns`; None when unaligned.
        residual_ns: how uncertain that is; None when unaligned.
        anchors: number of collectives it rests on.
        status: as in `align.clock.status`.
        drift_ppb: how much faster it runs, parts per billion.
        raw_anchor_ns: reading of this clock to which `offset_ns` belongs.
        half_error_ns: largest difference between fits of either half of the anchors, ns; None where unknown.
        slope: the drift as fitted, with its error.
        pieces: the offset over time where one line is not enough.
    """

    offset_ns: int | None
    residual_ns: int | None
    anchors: int
    status: str
    drift_ppb: int = 0
    raw_anchor_ns: int = 0
    half_error_ns: int | None = None
    slope: Slope = Slope(0.0, math.inf)
    pieces: ClockCourse | None = None

    @property
    def course(self) -> ClockCourse:
        """The offset over time, of one piece where one line is all there is."""
        if self.pieces is not None:
            return self.pieces
        one = ([self.raw_anchor_ns], [self.offset_ns or 0], [self.drift_ppb])
        return ClockCourse(*(np.array(values, dtype=np.int64) for values in one))


def common_end_offset(ends_ns: Times, other_ends_ns: Times, drift_ppb: int | None = None) -> Offset:
    """Offset from collectives that end together on both ranks.

    Args:
        ends_ns: ends on the reference's clock, shape (collectives,).
        other_ends_ns: ends of the same collectives on the other rank's clock.
        drift_ppb: the drift if known; fitted when None, and used if it is certain.
    """
    order = np.argsort(other_ends_ns, kind="stable")
    ends_ns, other_ends_ns = ends_ns[order], other_ends_ns[order]
    offset = _fitted(ends_ns, other_ends_ns, drift_ppb)
    if len(ends_ns) < 2 * thresholds.LEAST_ANCHORS:
        return offset
    instants = other_ends_ns[[0, len(order) // 2, -1]]
    halves = [_fitted(ends_ns[n::2], other_ends_ns[n::2], drift_ppb).course.at(instants) for n in (0, 1)]
    half_error = int(np.abs(halves[0] - halves[1]).max())
    # Ends may lie close to a course that is not theirs for all of the time.
    return replace(offset, residual_ns=max(offset.residual_ns or 0, half_error), half_error_ns=half_error)


def _fitted(ends_ns: Times, other_ends_ns: Times, drift_ppb: int | None) -> Offset:
    differences = other_ends_ns - ends_ns
    jump = jump_place(differences)
    if jump is not None:
        return _of_two_lines(ends_ns, other_ends_ns, jump, drift_ppb)
    return _of_one_course(ends_ns, other_ends_ns, drift_ppb)


class Jump(NamedTuple):
    """One of two clocks is set: places of the first difference that is not as before, and of the first as behind it."""

    until: int
    since: int


def jump_place(differences_ns: Times) -> Jump | None:
    """Where one of two clocks is set, of differences in order of time, shape (collectives,); or None.

    A clock that is set back may stand still until it is right: what ends meanwhile is on the way from before to behind.
    """
    least = thresholds.LEAST_DRIFT_ANCHORS // 2
    if len(differences_ns) < 2 * least:
        return None
    steps = np.diff(differences_ns)
    place = int(np.abs(steps).argmax())
    limit = max(thresholds.LEAST_JUMP_NS, thresholds.LEAST_JUMP_SPREADS * mad_sd(np.abs(np.delete(steps, place))))
    if abs(steps[place]) < limit:
        return None
    apart = np.flatnonzero(steps * np.sign(steps[place]) < limit)
    first = int(apart[apart < place].max(initial=-1)) + 1
    behind = int(apart[apart > place].min(initial=len(steps)))
    jump = Jump(first + 1, behind)
    if jump.until < least or jump.since > len(differences_ns) - least or jump.since - jump.until > least:
        return None
    # Any other step far out makes this one no exception.
    others, total = np.delete(steps, np.s_[first:behind]), abs(int(steps[first:behind].sum()))
    return jump if total >= thresholds.LEAST_JUMP_RATIO * int(np.abs(others).max()) else None


def _of_two_lines(ends_ns: Times, other_ends_ns: Times, jump: Jump, drift_ppb: int | None) -> Offset:
    """Two lines; from the last end before the jump to the first behind it, where nothing is known, a steep one."""
    sides = (np.s_[: jump.until], np.s_[jump.since :])
    parts = [_of_one_course(ends_ns[one], other_ends_ns[one], drift_ppb) for one in sides]
    knots = other_ends_ns[[0, jump.until - 1, jump.since]]
    before, after = (one.course for one in parts)
    offsets = np.array([*before.at(knots[:2]), *after.at(knots[2:])])
    steep = round(int(offsets[2] - offsets[1]) * BILLION / int(knots[2] - knots[1]))
    course = ClockCourse(knots, offsets, np.array([before.drift_ppb[-1], steep, after.drift_ppb[-1]]))
    anchor = exact_median(other_ends_ns)
    return replace(
        max(parts, key=lambda one: one.anchors),
        offset_ns=int(course.at(np.array([anchor]))[0]),
        residual_ns=max(one.residual_ns or 0 for one in parts),
        anchors=len(ends_ns),
        raw_anchor_ns=anchor,
        pieces=course,
    )


def _of_one_course(ends_ns: Times, other_ends_ns: Times, drift_ppb: int | None) -> Offset:
    differences = other_ends_ns - ends_ns
    anchor = exact_median(other_ends_ns)
    slope = _slope(other_ends_ns - anchor, differences)
    if drift_ppb is None:
        drift_ppb = round(slope.ppb) if slope.is_certain else 0
    level = differences - (other_ends_ns - anchor) * drift_ppb // BILLION
    offset = exact_median(level)
    line = Offset(offset, round(mad_sd(level)), len(differences), "fitted", drift_ppb, anchor, None, slope)
    pieces = _pieces(other_ends_ns, level - offset)
    if pieces is None:
        return line
    knots, bends, residual = pieces
    course = course_through(knots, offset + (knots - anchor) * drift_ppb // BILLION + bends)
    return replace(line, residual_ns=round(residual), pieces=course)


def _slope(elapsed_ns: Times, differences_ns: Times) -> Slope:
    """Slope of differences in order of time.

    The median of the slopes of pairs half a window apart (Theil and Sen's idea, at the cost of a sort) is not moved
    by stray ends.
    """
    count = len(elapsed_ns)
    if count < thresholds.LEAST_DRIFT_ANCHORS:
        return Slope(0.0, math.inf)
    elapsed = elapsed_ns.astype(np.float64)
    differences = (differences_ns - differences_ns[0]).astype(np.float64)
    half = count // 2
    runs = elapsed[-half:] - elapsed[:half]
    if runs.min() <= 0:
        return Slope(0.0, math.inf)
    slope = median((differences[-half:] - differences[:half]) / runs)
    # The pairs use each point once.
    error = MEDIAN_ERROR * mad_sd(differences - slope * elapsed) * math.sqrt(2 / half) / median(runs)
    return Slope(slope * BILLION, error * BILLION)


def _pieces(raw_ns: Times, level_ns: Times) -> tuple[Times, Times, float] | None:
    """Knots, offsets at them and residual, all ns, where the residuals of a line are autocorrelated.

    Knots are even in time, twice as many in each round, until the residuals are no longer autocorrelated.
    """
    elapsed = raw_ns - raw_ns[0]
    most = min(int(elapsed[-1]) // thresholds.LEAST_PIECE_NS, len(raw_ns) // thresholds.LEAST_PIECE_ANCHORS)
    level = level_ns.astype(np.float64)
    before = mad_sd(level)
    if most < 2 or not _is_autocorrelated(level):
        return None
    best = None
    count = 2
    while True:
        knots = np.linspace(0, int(elapsed[-1]), count + 1)
        basis = _hat_functions(elapsed.astype(np.float64), knots)
        bends = huber_fit(basis, level)
        left = level - basis @ bends
        if mad_sd(left) < thresholds.MOST_BENT_SPREAD * before:
            best = (raw_ns[0] + knots.astype(np.int64), np.rint(bends).astype(np.int64), mad_sd(left))
        if count == most or not _is_autocorrelated(left):
            return best
        count = min(2 * count, most)


def _is_autocorrelated(level: Reals) -> bool:
    """Whether neighbours are more alike than chance allows; stray ends are clipped."""
    limit = 3 * max(mad_sd(level), 1.0)
    centred = np.clip(level - median(level), -limit, limit)
    power = float(centred @ centred)
    chance = thresholds.LEAST_AUTOCORRELATION_ERRORS / math.sqrt(len(level))
    return power > 0 and float(centred[1:] @ centred[:-1]) / power > max(thresholds.LEAST_AUTOCORRELATION, chance)


def _hat_functions(elapsed: Reals, knots: Reals) -> Reals:
    """Weights of the knots at each instant, shape (instants, knots)."""
    eye = np.eye(len(knots))
    return np.stack([np.interp(elapsed, knots, row) for row in eye], axis=1)


def bounded_offset(starts_ns: Times, ends_ns: Times, other_starts_ns: Times, other_ends_ns: Times) -> Offset | None:
    """Offset from ends that are not simultaneous, kept within what order allows.

    On either rank a collective ends after it has started on the other, which bounds the offset from both sides. The
    residual is half the range of nine tenths of the end differences, or how far the bounds are away where that is less.
    None where no offset is feasible.
    """
    every = np.ones(len(ends_ns), dtype=np.bool_)
    return paired_offset(starts_ns, ends_ns, other_starts_ns, other_ends_ns, every, every)


def paired_offset(
    starts_ns: Times,
    ends_ns: Times,
    other_starts_ns: Times,
    other_ends_ns: Times,
    is_sent: NDArray[np.bool_],
    is_received: NDArray[np.bool_],
) -> Offset | None:
    """As `bounded_offset`, where only what was sent must have been started before the other ends it.

    Hosts keep time over the network: clocks that may agree as they are, by order and ends, are left alone, for ends
    that are not simultaneous are moved by whatever is slow.

    Args:
        is_sent: whether the reference sends to the other, which ends no earlier than the reference starts.
        is_received: whether it receives from it, and ends no earlier than the other starts.
    """
    low = max((other_starts_ns - ends_ns)[is_received].tolist(), default=None)
    high = min((other_ends_ns - starts_ns)[is_sent].tolist(), default=None)
    if low is not None and high is not None and low > high:
        return None
    differences = other_ends_ns - ends_ns
    early, late = np.quantile(differences - differences[0], [thresholds.STRAY_SHARE, 1 - thresholds.STRAY_SHARE])
    offset = exact_median(differences)
    offset = offset if high is None else min(offset, high)
    offset = offset if low is None else max(offset, low)
    residual = max(round((late - early) / 2), thresholds.SHARED_CLOCK_RESIDUAL_NS)
    is_allowed = (low is None or low <= 0) and (high is None or high >= 0)
    if is_allowed and abs(offset) <= thresholds.RESOLUTION_RESIDUALS * residual:
        offset = 0
    if low is not None and high is not None:
        # Ends of what is buffered lie far apart; by order, which cannot err, the offset is known better.
        residual = max(min(residual, max(high - offset, offset - low)), thresholds.SHARED_CLOCK_RESIDUAL_NS)
    return Offset(offset, residual, len(differences), "bounded")


def exact_median(values_ns: Times) -> int:
    """Median rounded down, exact: clocks may lie further apart than a float can tell ns."""
    base = int(values_ns[0])
    return base + math.floor(median(values_ns - base))
