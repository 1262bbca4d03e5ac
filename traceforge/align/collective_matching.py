"""Partners of one communicator's calls. In: each rank's calls as arrays. Out: `Matching`, one row a collective.

Within a communicator all ranks issue the same collectives in the same order. Stated sequence numbers decide where
there are any; else equal sequences of (operation, size) are matched by position; else, where only calls that run side
by side stand in another order, by position among those of their kind; else equal sequences within an iteration; else,
or where windows begin in different iterations, sequences are aligned in time, and partners must be of one kind and run
at the same time (`sequence_alignment`). A match is rejected if, at a steady clock offset and at none, ranks would end
collectives before others start them. Where all have a root, as broadcasts do, only the root must have started (or end
last); beside others they tell nothing. Calls without a partner on every rank stay unmatched; ranks whose files are
truncated are matched as far as they go, and are absent from then on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from traceforge.align.pairwise_offset import Jump, jump_place
from traceforge.align.sequence_alignment import CallSequence, Numbers, align_sequences, is_renumbered, is_shifted
from traceforge.thresholds import align as thresholds

ABSENT = -1
# Enough collectives to check a match by.
_SAMPLE = 2_000


@dataclass(frozen=True, slots=True)
class Matching:
    """Collectives of one communicator.

    Attributes:
        method: how they were found.
        sequence: number of each collective, shape (collectives,).
        place: place of its call among the calls of each rank, ABSENT where a truncated file lacks it, shape
            (collectives, ranks).
    """

    method: str
    sequence: Numbers
    place: Numbers


def match(
    calls: Sequence[CallSequence], *, truncated: Sequence[bool] = (), from_first_to_second: bool = False
) -> Matching:
    """Collectives of one communicator.

    Args:
        calls: of each rank.
        truncated: whether each rank's file ends in the middle, so that it holds the first of its calls only; by default
            none does.
        from_first_to_second: two ranks, the first of which sends what the second receives.
    """
    if any(truncated) and from_first_to_second:
        shortest = min(map(len, calls))
        return _match_whole([own.until(shortest) for own in calls], from_first_to_second)
    if any(truncated):
        return _match_beginnings(calls, truncated)
    return _match_whole(calls, from_first_to_second)


def _match_beginnings(calls: Sequence[CallSequence], truncated: Sequence[bool]) -> Matching:
    """The ranks that are whole among themselves (or the longest one alone), then each other one as far as it goes."""
    by_length = sorted(range(len(calls)), key=lambda rank: (truncated[rank], -len(calls[rank]), rank))
    anchors = [rank for rank in by_length if not truncated[rank]] or by_length[:1]
    found = _match_whole([calls[rank] for rank in anchors])
    place = np.full((len(found.sequence), len(calls)), ABSENT, dtype=np.int64)
    place[:, anchors] = found.place
    first = calls[anchors[0]]
    for rank in by_length:
        if rank in anchors:
            continue
        pair = _match_first(first, calls[rank])
        of_anchor = np.full(len(first), ABSENT, dtype=np.int64)
        of_anchor[pair.place[:, 0]] = pair.place[:, 1]
        place[:, rank] = of_anchor[found.place[:, 0]]
        if len(anchors) == 1 and pair.method == "sequence_number":
            found = Matching(pair.method, first.stated, found.place)
    return Matching(found.method, found.sequence, place)


def _match_first(whole: CallSequence, first: CallSequence) -> Matching:
    """A whole sequence and one of which only the first calls are known."""
    found = _match_whole([whole.until(len(first)), first])
    if len(found.sequence) < thresholds.LEAST_PAIRED_SHARE * len(first):
        found = max(found, _match_whole([whole, first]), key=lambda one: len(one.sequence))
    return found


def _match_whole(calls: Sequence[CallSequence], from_first_to_second: bool = False) -> Matching:
    if len(calls) == 1:
        every = np.arange(len(calls[0]))
        return Matching("order", every, every[:, None])
    best = Matching("order", np.zeros(0, dtype=np.int64), np.zeros((0, len(calls)), dtype=np.int64))
    for method in (_by_stated_sequence, _by_order, _by_order_of_kind, _by_order_in_iteration, _by_alignment):
        found = method(calls)
        if len(found.sequence) <= len(best.sequence) or not _is_plausible(found, calls, from_first_to_second):
            continue
        if method in (_by_order, _by_order_of_kind, _by_order_in_iteration) and _is_shifted(found, calls):
            continue
        best = found
        if len(best.sequence) and method is not _by_order_in_iteration:
            return best
        if len(best.sequence) == min(map(len, calls)):
            return best
    return best


def _by_stated_sequence(calls: Sequence[CallSequence]) -> Matching:
    """By number; of several calls of one number (a coalesced group) by place among them."""
    if any((own.stated == ABSENT).any() or not len(own) for own in calls):
        return _none("sequence_number", len(calls))
    if _are_alike([own.stated for own in calls]) and (np.diff(calls[0].stated) > 0).all():
        # Nothing is missing: as many distinct numbers everywhere.
        every = np.arange(len(calls[0]))
        return _agreeing(calls, calls[0].stated, np.repeat(every[:, None], len(calls), axis=1))
    keys = [_numbered(own.stated) for own in calls]
    common = reduce(np.intersect1d, keys)
    places = [np.argsort(key, kind="stable")[np.searchsorted(np.sort(key), common)] for key in keys]
    place = np.stack(places, axis=1) if len(common) else np.zeros((0, len(calls)), dtype=np.int64)
    return _agreeing(calls, common >> _REPEATS_BITS, place)


def _agreeing(calls: Sequence[CallSequence], sequence: Numbers, place: Numbers) -> Matching:
    """Of calls of one number those that are of one kind."""
    reference = calls[0].kind[place[:, 0]]
    agreeing = np.ones(len(place), dtype=np.bool_)
    for own, places in zip(calls[1:], place.T[1:], strict=True):
        agreeing &= own.kind[places] == reference
    if agreeing.all():
        return Matching("sequence_number", sequence, place)
    return Matching("sequence_number", sequence[agreeing], place[agreeing])


_REPEATS_BITS = 16


def _numbered(stated: Numbers) -> Numbers:
    """Numbers made unique: in the low bits how often the number was there before."""
    order = np.argsort(stated, kind="stable")
    ordered = stated[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    since = np.arange(len(ordered)) - np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    repeats = np.empty_like(since)
    repeats[order] = since
    return (stated << _REPEATS_BITS) + np.minimum(repeats, (1 << _REPEATS_BITS) - 1)


def _by_order(calls: Sequence[CallSequence]) -> Matching:
    if not _are_alike([own.kind for own in calls]):
        return _none("order", len(calls))
    every = np.arange(len(calls[0]))
    return Matching("order", every, np.repeat(every[:, None], len(calls), axis=1))


def _by_order_of_kind(calls: Sequence[CallSequence]) -> Matching:
    """The nth call of each kind: threads that work side by side may begin two calls of unlike kinds in either order."""
    order = [np.argsort(own.kind, kind="stable") for own in calls]
    if not _are_alike([own.kind[place] for own, place in zip(calls, order, strict=True)]):
        return _none("order_of_kind", len(calls))
    place = np.stack(order, axis=1)
    place = place[np.argsort(place[:, 0])]
    if not all(_are_side_by_side(own, of_rank) for own, of_rank in zip(calls, place.T, strict=True)):
        return _none("order_of_kind", len(calls))
    return Matching("order_of_kind", place[:, 0], place)


def _are_side_by_side(own: CallSequence, place: Numbers) -> bool:
    """Whether calls that stand in another order here than in `place` all run at one moment."""
    is_settled = np.maximum.accumulate(place) == np.arange(len(place))
    first = np.flatnonzero(np.append(True, is_settled[:-1]))
    if not len(place) or len(first) == len(place):
        return True
    lasts = np.diff(np.append(first, len(place))) > 1
    begun = np.maximum.reduceat(own.arrival_ns, first)
    return bool((begun <= np.minimum.reduceat(own.end_ns, first))[lasts].all())


def _by_order_in_iteration(calls: Sequence[CallSequence]) -> Matching:
    places = [_by_iteration(own.iteration) for own in calls]
    common = set.intersection(*(set(own) for own in places)) - {ABSENT}
    found = [np.zeros((0, len(calls)), dtype=np.int64)]
    for iteration in sorted(common):
        own = [of_rank[iteration] for of_rank in places]
        if _are_alike([of_rank.kind[place] for of_rank, place in zip(calls, own, strict=True)]):
            found.append(np.stack(own, axis=1))
    place = np.concatenate(found)
    return Matching("order_in_iteration", np.arange(len(place)), place)


def _by_iteration(iteration: Numbers) -> Mapping[int, Numbers]:
    order = np.argsort(iteration, kind="stable")
    numbers, first = np.unique(iteration[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, first[1:]), strict=True))


def _by_alignment(calls: Sequence[CallSequence]) -> Matching:
    """Every rank aligned in time with the one that has most calls."""
    fullest = max(range(len(calls)), key=lambda rank: (len(calls[rank]), -rank))
    reference = calls[fullest]
    place = np.full((len(reference), len(calls)), ABSENT, dtype=np.int64)
    place[:, fullest] = np.arange(len(reference))
    for rank, own in enumerate(calls):
        if rank != fullest:
            pairs = align_sequences(reference, own)
            place[pairs[:, 0], rank] = pairs[:, 1]
    place = place[(place != ABSENT).all(axis=1)]
    return Matching("alignment", np.arange(len(place)), place)


def _are_alike(kinds: Sequence[Numbers]) -> bool:
    return all(np.array_equal(kinds[0], other) for other in kinds[1:])


def _none(method: str, ranks: int) -> Matching:
    return Matching(method, np.zeros(0, dtype=np.int64), np.zeros((0, ranks), dtype=np.int64))


def _is_plausible(matching: Matching, calls: Sequence[CallSequence], from_first_to_second: bool) -> bool:
    """Whether, with clocks as they are or that differ by a line, nobody ends before another has started.

    Where partners agree on the iteration at every place, a clock may be set once: then by a line on either side of it.
    """
    is_rooted = calls[0].is_rooted()[matching.place[:, 0]]
    # What a rank may end before another starts tells nothing where there is anything else.
    telling = matching.place if is_rooted.all() else matching.place[~is_rooted]
    some = telling[:: len(telling) // _SAMPLE + 1]
    in_order = _after_sender if from_first_to_second else _after_root if is_rooted.all() else _after_all
    if _share_in_order(some, calls, in_order) >= thresholds.LEAST_IN_ORDER_SHARE:
        return True
    jump = _setting(some, calls)
    parts = [] if jump is None else [some[: jump.until], some[jump.since :]]
    shares = [_share_in_order(part, calls, in_order) for part in parts]
    return bool(shares) and min(shares) >= thresholds.LEAST_IN_ORDER_SHARE


def _setting(place: Numbers, calls: Sequence[CallSequence]) -> Jump | None:
    """Where a clock was set, the same for all ranks that it parts from the first; or None."""
    iterations, ends = (
        np.stack([getattr(own, field)[of_rank] for own, of_rank in zip(calls, place.T, strict=True)], axis=1)
        for field in ("iteration", "end_ns")
    )
    if (iterations != iterations[:, :1]).any() or len(np.unique(iterations[:, 0])) < thresholds.LEAST_PAIRS:
        return None
    jumps = {jump_place(ends[:, rank] - ends[:, 0]) for rank in range(1, ends.shape[1])} - {None}
    if not jumps:
        return None
    # What ends just as a clock is set does so before on one rank, and behind on another.
    until, since = (list(places) for places in zip(*jumps, strict=True))
    return Jump(min(until), max(since)) if max(until) <= min(since) else None


def _share_in_order(
    place: Numbers, calls: Sequence[CallSequence], in_order: Callable[[Numbers, Numbers], float]
) -> float:
    """Share of collectives that no rank ends before those have started whom it needs.

    Args:
        in_order: that share, by arrivals and ends on one clock, both of shape (collectives, ranks), ns.
    """
    ends, arrivals = (
        np.stack([getattr(own, field)[of_rank] for own, of_rank in zip(calls, place.T, strict=True)], axis=1)
        for field in ("end_ns", "arrival_ns")
    )
    shift = _shift(ends)
    # Ranks that read one clock and do not end together are in order as they are.
    return max(in_order(arrivals - shift, ends - shift), in_order(arrivals, ends))


def _after_all(arrivals: Numbers, ends: Numbers) -> float:
    """Of collectives that need all ranks."""
    return _share(arrivals.max(axis=1), ends.min(axis=1))


def _after_sender(arrivals: Numbers, ends: Numbers) -> float:
    """Of what the first rank sends: it may be under way when the second one starts, and the first one be done."""
    return _share(arrivals[:, 0], ends[:, 1])


def _after_root(arrivals: Numbers, ends: Numbers) -> float:
    """Of what one rank sends to all, or gets from all, whichever rank and way fits best."""
    last_arrival, first_end = arrivals.max(axis=1), ends.min(axis=1)
    return max(*(_share(own, first_end) for own in arrivals.T), *(_share(last_arrival, own) for own in ends.T))


def _share(starts: Numbers, ends: Numbers) -> float:
    return float(np.mean(starts <= ends + thresholds.ORDER_TOLERANCE_NS))


def _is_shifted(matching: Matching, calls: Sequence[CallSequence]) -> bool:
    """Whether a rank's window begins elsewhere in the loop than the first one's."""
    some = matching.place[:_SAMPLE]
    kinds, ends, steps = (
        [getattr(own, field)[place] for own, place in zip(calls, some.T, strict=True)]
        for field in ("kind", "end_ns", "iteration")
    )
    return any(
        is_renumbered(steps[0], ends[0], step, end) or is_shifted(kinds[0], ends[0], kind, end)
        for kind, end, step in zip(kinds[1:], ends[1:], steps[1:], strict=True)
    )


def _shift(ends_ns: Numbers) -> Numbers:
    """Median difference to the first rank's ends, and its growth from one half to the other; like `ends_ns`."""
    differences = ends_ns - ends_ns[:, :1]
    base = differences[:1]
    apart = (differences - base).astype(np.float64)
    offset = np.median(apart, axis=0)
    half = len(ends_ns) // 2
    if len(ends_ns) >= thresholds.LEAST_DRIFT_ANCHORS:
        since = (ends_ns[:, :1] - ends_ns[:1, :1]).astype(np.float64)
        run = np.median(since[-half:] - since[:half])
        slope = np.median(apart[-half:] - apart[:half], axis=0) / max(run, 1.0)
        offset = np.median(apart - slope * since, axis=0) + slope * since
    result: Numbers = base + np.floor(offset).astype(np.int64)
    return result
