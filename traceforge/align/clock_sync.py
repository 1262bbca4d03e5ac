"""All clocks of a run against one. In: times of the collectives by rank. Out: `Offset` by rank, and components.

The lowest rank is the reference. Ranks that share a communicator with it are tied to it; ranks that share one with
those are tied to the one of least error, and so on, so that every clock is reached over as few ties as possible. Sends
and receives alone (stages of a pipeline) tie clocks by common ends, or bound an offset from both sides. Clocks of one
host share one drift unless their fits contradict that. A rank that no tie reaches takes the clock of one of its host;
without one it stays unaligned, and starts a component of its own.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.align.clock_course import ClockCourse
from traceforge.align.pairwise_offset import (
    Offset,
    Slope,
    bounded_offset,
    common_end_offset,
    exact_median,
    paired_offset,
)
from traceforge.thresholds import align as thresholds

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RankCalls:
    """A rank's matched calls that tie clocks, in order of collective; shapes (calls,), times raw ns.

    Attributes:
        clock: what host threads read: the host, or whatever one clock a file of several ranks states; None if unknown.
        common_end: whether by its nature the collective ends on all ranks together; of messages, whether the call
            carries no others, so that both ranks may end together.
        role: 1 where the rank sends to another one, -1 where it receives, 0 where all synchronise.
    """

    clock: str | None
    collective: NDArray[np.int64]
    communicator: NDArray[np.int64]
    arrival_ns: Times
    end_ns: Times
    on_device: NDArray[np.bool_]
    common_end: NDArray[np.bool_]
    role: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Tie:
    """What ties a rank: the rank whose clock is known, and its own clock against that."""

    known: int
    step: Offset


Calls = Mapping[int, RankCalls]


def solve(calls: Calls) -> dict[int, Offset]:
    """Offset of each rank against the lowest, `unaligned` where nothing ties it."""
    ranks = sorted(calls)
    ties = _spanning_ties(calls, ranks[0])
    solved = _chained(ranks[0], ties)
    pooled = _host_drifts(calls, solved)
    if pooled:
        for rank, tie in ties.items():
            if rank in pooled and tie.step.status == "fitted" and tie.step.pieces is None:
                known = solved[tie.known]
                drift_ppb = pooled[rank] - pooled.get(tie.known, known.drift_ppb)
                ties[rank] = _Tie(tie.known, _pair(calls[tie.known], calls[rank], drift_ppb) or tie.step)
        solved = _chained(ranks[0], ties)
    return {rank: solved.get(rank, Offset(None, None, 0, "unaligned")) for rank in ranks}


def components(calls: Calls, offsets: Mapping[int, Offset]) -> dict[int, int]:
    """Number of the component of each rank: 0 for the reference's, further ones for the unreachable."""
    number = {rank: 0 for rank, offset in offsets.items() if offset.offset_ns is not None}
    for rank in sorted(calls):
        if rank in number:
            continue
        label = max(number.values(), default=-1) + 1
        waiting = [rank]
        while waiting:
            known = waiting.pop()
            number[known] = label
            waiting += [
                other for other in calls if other not in number and _share_collectives(calls[known], calls[other])
            ]
    return number


def _spanning_ties(calls: Calls, reference: int) -> dict[int, _Tie]:
    """The tie of each reachable rank, in the order in which they are reached."""
    ties: dict[int, _Tie] = {}
    reached = {reference: 0.0}
    level = [reference]
    while True:
        found: dict[int, _Tie] = {}
        for rank in (r for r in calls if r not in reached):
            tie = _best_tie(calls, rank, level, reached)
            if tie is not None:
                found[rank] = tie
        if not found and (shared := _same_host(calls, reached)) is not None:
            found = dict([shared])
        if not found:
            return ties
        ties |= found
        reached |= {rank: math.hypot(reached[t.known], t.step.residual_ns or 0) for rank, t in found.items()}
        level = sorted(found, key=lambda rank: (reached[rank], rank))


def _best_tie(calls: Calls, rank: int, level: Sequence[int], reached: Mapping[int, float]) -> _Tie | None:
    """The tie of least error to the ranks reached last; of each communicator the member of least error is tried."""
    tried: set[int] = set()
    best: tuple[bool, float, _Tie] | None = None
    for known in level:
        shared = set(np.intersect1d(calls[known].communicator, calls[rank].communicator).tolist())
        if not shared - tried:
            continue
        tried |= shared
        step = _pair(calls[known], calls[rank])
        if step is None:
            continue
        order = (step.status != "fitted", math.hypot(reached[known], step.residual_ns or 0))
        if best is None or order < best[:2]:
            best = (*order, _Tie(known, step))
    return best[2] if best else None


def _same_host(calls: Calls, reached: Iterable[int]) -> tuple[int, _Tie] | None:
    """A rank not reached yet that reads the clock of one that is."""
    by_clock = {calls[rank].clock: rank for rank in sorted(reached, reverse=True) if calls[rank].clock is not None}
    for rank in calls:
        if rank not in reached and calls[rank].clock in by_clock:
            return rank, _Tie(
                by_clock[calls[rank].clock], Offset(0, thresholds.SAME_HOST_RESIDUAL_NS, 0, "shared_clock")
            )
    return None


def _chained(reference: int, ties: Mapping[int, _Tie]) -> dict[int, Offset]:
    solved = {reference: Offset(0, 0, 0, "reference", slope=Slope(0.0, 0.0))}
    for rank, tie in ties.items():
        solved[rank] = chain(solved[tie.known], tie.step)
    return solved


def chain(known: Offset, step: Offset) -> Offset:
    """A clock against the reference, from a known clock and its own step against that."""
    residual = round(math.hypot(known.residual_ns or 0, step.residual_ns or 0))
    slope = Slope(known.slope.ppb + step.slope.ppb, math.hypot(known.slope.error_ppb, step.slope.error_ppb))
    if step.status == "shared_clock" and not step.anchors:
        return replace(known, anchors=0, residual_ns=residual, status="shared_clock", slope=slope)
    course, known_course = step.course, known.course
    readings = _readings(course, known_course)
    offsets = course.at(readings) + known_course.at(readings - course.at(readings))
    drift_ppb = known.drift_ppb + step.drift_ppb
    is_one = known.pieces is None and step.pieces is None
    # A bound holds at all times and has no instant of its own. The line goes through that of the known clock, since the
    # drift that gathers from 0 on, in 1970, does not fit into 64 bits.
    anchor_ns = step.raw_anchor_ns or known.raw_anchor_ns + (step.offset_ns or 0)
    return Offset(
        _at(course, known_course, anchor_ns),
        residual,
        step.anchors,
        step.status,
        drift_ppb,
        anchor_ns,
        None if step.half_error_ns is None else round(math.hypot(known.half_error_ns or 0, step.half_error_ns)),
        slope,
        None if is_one else _joined(readings, offsets, course, known_course),
    )


def _readings(course: ClockCourse, known: ClockCourse) -> Times:
    """Readings of the new clock at which either clock's drift changes."""
    if len(course.raw_ns) == 1 and len(known.raw_ns) == 1:
        return course.raw_ns
    # The known clock's knots as the new clock shows them; drifts are small, so that one correction is enough.
    mapped = known.raw_ns + course.at(known.raw_ns + course.at(known.raw_ns))
    own = course.raw_ns if len(course.raw_ns) > 1 else course.raw_ns[:0]
    return np.unique(np.concatenate([own, mapped if len(known.raw_ns) > 1 else mapped[:0]]))


def _joined(readings: Times, offsets: Times, course: ClockCourse, known: ClockCourse) -> ClockCourse:
    own, others = course.piece(readings), known.piece(readings - course.at(readings))
    return ClockCourse(readings, offsets, course.drift_ppb[own] + known.drift_ppb[others])


def _at(course: ClockCourse, known: ClockCourse, raw_ns: int) -> int:
    instant = np.array([raw_ns])
    step = course.at(instant)
    return int((step + known.at(instant - step))[0])


def _host_drifts(calls: Calls, solved: Mapping[int, Offset]) -> dict[int, int]:
    """Drift of the ranks of each host that drift as one, ppb; hosts whose ranks contradict that are absent."""
    by_host: dict[str, list[int]] = {}
    for rank, offset in solved.items():
        host = calls[rank].clock
        if host is not None and offset.status in ("fitted", "reference") and math.isfinite(offset.slope.error_ppb):
            by_host.setdefault(host, []).append(rank)
    result: dict[int, int] = {}
    for members in by_host.values():
        slopes = [solved[rank].slope for rank in members]
        pooled = _pooled(slopes)
        apart = (abs(s.ppb - pooled.ppb) > thresholds.MOST_POOLED_ERRORS * s.error_ppb + 1 for s in slopes)
        if len(members) > 1 and not any(apart):
            drift_ppb = round(pooled.ppb) if pooled.is_certain else 0
            result |= {rank: drift_ppb for rank in members if solved[rank].status == "fitted"}
    return result


def _pooled(slopes: Sequence[Slope]) -> Slope:
    """Mean of slopes weighted by their precision."""
    weights = np.array([1 / max(slope.error_ppb, 1e-3) ** 2 for slope in slopes])
    mean = float(weights @ np.array([slope.ppb for slope in slopes]) / weights.sum())
    return Slope(mean, 1 / math.sqrt(float(weights.sum())))


def _share_collectives(one: RankCalls, other: RankCalls) -> bool:
    return bool(np.isin(one.collective, other.collective, assume_unique=True).any())


def _pair(reference: RankCalls, other: RankCalls, drift_ppb: int | None = None) -> Offset | None:
    """The other rank's clock against the reference's; None where nothing ties them."""
    _, own, others = np.intersect1d(reference.collective, other.collective, assume_unique=True, return_indices=True)
    if not len(own):
        return None
    role = reference.role[own]
    if (role != 0).all():
        return _pair_by_messages(reference, other, own, others)
    own, others = own[role == 0], others[role == 0]
    both = reference.on_device[own] & other.on_device[others]
    if both.sum() >= thresholds.LEAST_ANCHORS:
        common = both & reference.common_end[own]
        used = common if common.sum() >= thresholds.LEAST_COMMON_ENDS else both
        return common_end_offset(reference.end_ns[own[used]], other.end_ns[others[used]], drift_ppb)
    times = reference.arrival_ns[own], reference.end_ns[own], other.arrival_ns[others], other.end_ns[others]
    if reference.clock == other.clock is not None and not both.any() and _reads_one_clock(*times):
        return Offset(0, thresholds.SHARED_CLOCK_RESIDUAL_NS, len(own), "shared_clock")
    return bounded_offset(*times)


def _pair_by_messages(
    reference: RankCalls, other: RankCalls, own: NDArray[np.intp], others: NDArray[np.intp]
) -> Offset | None:
    """From common ends where both directions show that ends are common; else from the order of sends and receives.

    What waits in a buffer lets its sender end early, which moves the ends of one direction against the other's.
    """
    role, on_device = reference.role[own], reference.on_device[own] & other.on_device[others]
    common = reference.common_end[own] & other.common_end[others] & on_device
    ways = [common & (role > 0), common & (role < 0)]
    if min(int(way.sum()) for way in ways) >= thresholds.LEAST_ANCHORS:
        apart = other.end_ns[others] - reference.end_ns[own]
        if abs(exact_median(apart[ways[0]]) - exact_median(apart[ways[1]])) <= thresholds.LARGEST_END_GAP_NS:
            return common_end_offset(reference.end_ns[own[common]], other.end_ns[others[common]])
    bound = paired_offset(
        reference.arrival_ns[own], reference.end_ns[own], other.arrival_ns[others], other.end_ns[others],
        role > 0, role < 0,
    )  # fmt: skip
    is_host = reference.clock == other.clock is not None and not on_device.any()
    if is_host and bound is not None and abs(bound.offset_ns or 0) <= (bound.residual_ns or 0):
        return Offset(0, thresholds.SHARED_CLOCK_RESIDUAL_NS, len(own), "shared_clock")
    return bound


def _reads_one_clock(arrival_ns: Times, end_ns: Times, other_arrival_ns: Times, other_end_ns: Times) -> bool:
    """Whether two ranks of a host keep the order of one clock; their files may have times from different zeros."""
    early_ns = np.maximum(arrival_ns, other_arrival_ns) - np.minimum(end_ns, other_end_ns)
    return bool((early_ns > thresholds.LEAST_OUT_OF_ORDER_NS).mean() <= thresholds.MOST_OUT_OF_ORDER_SHARE)
