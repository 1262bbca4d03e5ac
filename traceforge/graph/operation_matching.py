"""Which timeline event is which recorded operation. In: both sides as columns. Out: pairs, by three methods.

Idea: three methods, the most reliable first. (1) PyTorch repeats the handle of a RecordFunction in newer timelines. (2)
Older ones hold an external id that is the handle plus a constant, which the rarest common names give away. (3) Else the
operations of a thread, in order of their handles, stand in the timeline in order of their starts: stretches of names
that occur once on both sides are anchors, from which equal names are followed both ways.
Whatever the method, no pairs are used before their names were compared (`agreement`).
Not handled: threads whose operations the timeline shows on several tracks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import graph as thresholds

Int64s = NDArray[np.int64]
ABSENT = -1
"""Stands for a missing handle or external id."""
METHODS = ("rf_id", "external_id", "sequence")
"""Best first."""
# How far is searched: rare names, names in a stretch that is an anchor, places between two anchors, pairs of names.
_RAREST = 64
_ANCHOR_NAMES = (32, 8, 3)
_LARGEST_GAP = 2_000
_MOST_PAIRS = 200_000


@dataclass(frozen=True, slots=True)
class RecordedOperations:
    """Recorded operations of one trace, in any order.

    Attributes:
        handle: RecordFunction handle, > 0.
        name: number of the name, shared with `TimelineEvents`.
        thread: thread number.
    """

    handle: Int64s
    name: Int64s
    thread: Int64s


@dataclass(frozen=True, slots=True)
class TimelineEvents:
    """Host events of a timeline, by start, outer before inner.

    Attributes:
        handle: "Record function id", or `ABSENT`.
        external_id: "External id", or `ABSENT`.
        name: number of the name, shared with `RecordedOperations`.
        track: track number.
    """

    handle: Int64s
    external_id: Int64s
    name: Int64s
    track: Int64s


@dataclass(frozen=True, slots=True)
class Pairs:
    """Operations and events that are the same.

    Attributes:
        operation, event: places on either side, one a pair.
        occurrences: how often the trace's names occur in the timeline; more than 1 where it could lie elsewhere.
        offset: what was added to a handle to get the external id; 0 for other methods.
    """

    operation: Int64s
    event: Int64s
    occurrences: int = 1
    offset: int = 0


def pair(method: str, operations: RecordedOperations, events: TimelineEvents) -> Pairs:
    """Pairs by one of `METHODS`; none where it does not apply."""
    if method == "rf_id":
        return _same_number(operations.handle, events.handle)
    if method == "external_id":
        offset = _constant_offset(operations, events)
        if offset is None:
            return _NONE
        found = _same_number(operations.handle + offset, events.external_id)
        return Pairs(found.operation, found.event, offset=offset)
    return _by_sequence(operations, events)


def agreement(found: Pairs, operations: RecordedOperations, events: TimelineEvents) -> float:
    """Share of pairs with equal names; 0 where there are no pairs."""
    if not len(found.operation):
        return 0.0
    return float((operations.name[found.operation] == events.name[found.event]).mean())


_NOTHING = np.zeros(0, np.int64)
_NONE = Pairs(_NOTHING, _NOTHING)


def _same_number(wanted: Int64s, given: Int64s) -> Pairs:
    """Pairs of equal numbers; of repeated ones the first on either side."""
    usable = np.flatnonzero(given != ABSENT)
    numbers, first = np.unique(given[usable], return_index=True)
    if not len(numbers):
        return _NONE
    distinct, place = np.unique(wanted, return_index=True)
    slot = np.minimum(np.searchsorted(numbers, distinct), len(numbers) - 1)
    known = numbers[slot] == distinct
    order = np.argsort(place[known])
    return Pairs(place[known][order], usable[first[slot[known]]][order])


def _constant_offset(operations: RecordedOperations, events: TimelineEvents) -> int | None:
    """What most often lies between a handle and the external id of an event of the same, rare name."""
    usable = np.flatnonzero(events.external_id != ABSENT)
    names = events.name[usable]
    size = int(max(operations.name.max(initial=-1), names.max(initial=-1))) + 1
    many = np.bincount(operations.name, minlength=size) * np.bincount(names, minlength=size)
    rare = [int(name) for name in np.argsort(many, kind="stable") if many[name]][:_RAREST]
    differences: list[Int64s] = []
    taken = 0
    for name in rare:
        taken += int(many[name])
        if differences and taken > _MOST_PAIRS:
            break
        ours = operations.handle[operations.name == name][:_LARGEST_GAP]
        theirs = events.external_id[usable[names == name]][:_LARGEST_GAP]
        differences.append((theirs[None, :] - ours[:, None]).ravel())
    if not differences:
        return None
    values, counts = np.unique(np.concatenate(differences), return_counts=True)
    return int(values[np.argmax(counts)])


def _by_sequence(operations: RecordedOperations, events: TimelineEvents) -> Pairs:
    """Threads against tracks, the longest thread first; each track is used once."""
    order = np.argsort(operations.handle, kind="stable")
    free = {int(track): np.flatnonzero(events.track == track) for track in np.unique(events.track)}
    ours: list[Int64s] = []
    theirs: list[Int64s] = []
    occurrences = 1
    threads, sizes = np.unique(operations.thread, return_counts=True)
    for thread in threads[np.argsort(-sizes, kind="stable")]:
        places = order[operations.thread[order] == thread]
        found = {track: align(operations.name[places], events.name[on]) for track, on in free.items()}
        if not found:
            break
        best = max(found, key=lambda track: len(found[track].operation))
        ours.append(places[found[best].operation])
        theirs.append(free.pop(best)[found[best].event])
        occurrences = max(occurrences, found[best].occurrences)
    if not ours:
        return _NONE
    return Pairs(np.concatenate(ours), np.concatenate(theirs), occurrences)


def align(ours: Int64s, theirs: Int64s) -> Pairs:
    """Equal names of two sequences, in order: the whole of ours at its first place in theirs, else by anchors."""
    starts = list(_windows(ours, theirs))
    if starts:
        here = np.arange(len(ours))
        return Pairs(here, here + starts[0], occurrences=len(starts))
    for length in _ANCHOR_NAMES:
        anchors = _anchors(ours, theirs, length)
        if len(anchors):
            return _followed(ours, theirs, anchors)
    return _on_best_diagonal(ours, theirs)


def _windows(ours: Int64s, theirs: Int64s) -> Iterator[int]:
    """Where the whole of ours stands in theirs."""
    width = theirs.itemsize
    needle, text = ours.tobytes(), theirs.tobytes()
    place = text.find(needle) if needle else -1
    while place >= 0:
        if place % width == 0:
            yield place // width
            place = text.find(needle, place + len(needle))
        else:
            place = text.find(needle, place + 1)


def _stretches(names: Int64s, length: int) -> Int64s:
    """A number for each stretch of `length` names."""
    hashed = np.zeros(max(0, len(names) - length + 1), np.uint64)
    mixed = (names.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    for place in range(length):
        hashed = hashed * np.uint64(0xBF58476D1CE4E5B9) + mixed[place : place + len(hashed)]
    return hashed.view(np.int64)


def _anchors(ours: Int64s, theirs: Int64s, length: int) -> NDArray[np.int64]:
    """Places (ours, theirs) where stretches begin that occur once on both sides, in one order on both."""
    here, at_here, often_here = np.unique(_stretches(ours, length), return_index=True, return_counts=True)
    there, at_there, often_there = np.unique(_stretches(theirs, length), return_index=True, return_counts=True)
    _, left, right = np.intersect1d(
        here[often_here == 1], there[often_there == 1], assume_unique=True, return_indices=True
    )
    found = np.stack([at_here[often_here == 1][left], at_there[often_there == 1][right]], axis=1)
    found = found[np.argsort(found[:, 0])]
    return found[_longest_increasing(found[:, 1])]


def _longest_increasing(values: Int64s) -> Int64s:
    """Places of a longest increasing subsequence."""
    tails: list[int] = []
    tail_values: list[int] = []
    before = np.full(len(values), -1)
    for place, value in enumerate(values.tolist()):
        slot = int(np.searchsorted(tail_values, value)) if tail_values and value <= tail_values[-1] else len(tails)
        before[place] = tails[slot - 1] if slot else -1
        tails[slot : slot + 1] = [place]
        tail_values[slot : slot + 1] = [value]
    chosen = []
    place = tails[-1] if tails else -1
    while place >= 0:
        chosen.append(place)
        place = int(before[place])
    return np.array(chosen[::-1], np.int64)


def _followed(ours: Int64s, theirs: Int64s, anchors: NDArray[np.int64]) -> Pairs:
    """Equal names from anchor to anchor; what lies between two is compared as text is."""
    pairs: list[tuple[int, int]] = []
    left = right = 0
    for here, there in [*anchors.tolist(), [len(ours), len(theirs)]]:
        if here < left or there < right:
            continue
        pairs += _between(ours[left:here], theirs[right:there], left, right)
        left, right = here, there
        while left < len(ours) and right < len(theirs) and ours[left] == theirs[right]:
            pairs.append((left, right))
            left, right = left + 1, right + 1
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return Pairs(found[:, 0], found[:, 1])


def _between(ours: Int64s, theirs: Int64s, left: int, right: int) -> list[tuple[int, int]]:
    if not len(ours) or not len(theirs):
        return []
    if max(len(ours), len(theirs)) > _LARGEST_GAP:
        # Before the first anchor and behind the last one only what touches them can be matched.
        ours_end, theirs_end = ours[::-1][:_LARGEST_GAP], theirs[::-1][:_LARGEST_GAP]
        size = min(len(ours_end), len(theirs_end))
        same = int(np.argmin(np.append(ours_end[:size] == theirs_end[:size], False)))
        return [(left + len(ours) - same + k, right + len(theirs) - same + k) for k in range(same)]
    blocks = SequenceMatcher(None, ours.tolist(), theirs.tolist(), autojunk=False).get_matching_blocks()
    return [(left + a + k, right + b + k) for a, b, size in blocks for k in range(size)]


def _on_best_diagonal(ours: Int64s, theirs: Int64s) -> Pairs:
    """Where names repeat too much for anchors: equal names at the one shift that makes most of them equal."""
    if not len(ours) or not len(theirs):
        return _NONE
    length = min(_ANCHOR_NAMES[1], len(ours), len(theirs))
    here, there = _stretches(ours, length), _stretches(theirs, length)
    order = np.argsort(there, kind="stable")
    low, high = (np.searchsorted(there[order], here, side=side) for side in ("left", "right"))
    few = np.flatnonzero((high > low) & (np.cumsum(high - low) <= _MOST_PAIRS))
    if not len(few):
        return _NONE
    shifts = np.concatenate([order[low[place] : high[place]] - place for place in few.tolist()])
    values, counts = np.unique(shifts, return_counts=True)
    shift = int(values[np.argmax(counts)])
    begin, end = max(0, -shift), min(len(ours), len(theirs) - shift)
    places = np.arange(begin, end)
    same = places[ours[places] == theirs[places + shift]]
    return Pairs(same, same + shift, occurrences=int((counts >= thresholds.EQUALLY_LIKELY_SHARE * counts.max()).sum()))
