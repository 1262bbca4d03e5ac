"""How the calls of one rank fit those of its peers. In: kinds of calls and of what lies between them. Out: a `Fit`.

Idea: if the calls of one rank are those of the others without some, these are missing; if only the last ones are
missing, its recording may merely end earlier, and if only the first ones, begin later. Calls that are all alike do not
tell which it is; what the host does between the calls does: behind a call that is missing it fits the peers again.
Not handled: ranks that miss some calls and make others instead (they differ).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import graph as thresholds

EQUAL, SHORTER, MISSING, EXTRA, DIFFERS = "equal", "shorter", "missing", "extra", "differs"
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fit:
    """How one sequence fits a reference.

    Attributes:
        kind: equal; shorter (its first or last calls are absent from one of both); missing or extra (calls in the
            middle are); differs (another call stands in the place of one).
        place: of the first call that does not fit, in the longer sequence.
        last_place: last place at which that call may be; it is one of several where neighbours are alike.
        before: place, in the shorter sequence, of the call behind the gap.
        count: calls that only one of both has.
    """

    kind: str
    place: int = 0
    last_place: int = 0
    before: int = 0
    count: int = 0


def fit(reference: Sequence[str], own: Sequence[str], *, may_begin_later: bool = True) -> Fit:
    """How the calls of a rank fit those of its peers.

    Args:
        may_begin_later: whether one recording may lack the first calls of the other.
    """
    if len(own) == len(reference):
        return Fit(EQUAL) if list(own) == list(reference) else Fit(DIFFERS)
    is_missing = len(own) < len(reference)
    longer, fewer = (reference, own) if is_missing else (own, reference)
    place = _first_gap(longer, fewer)
    if place is None:
        return Fit(DIFFERS)
    count = len(longer) - len(fewer)
    if place == len(fewer) or (may_begin_later and _is_stretch(longer, fewer)):
        return Fit(SHORTER, place, place, place, count)
    first = place
    while first > 0 and fewer[first - 1] == longer[place]:
        first -= 1
    return Fit(MISSING if is_missing else EXTRA, first, place, place, count)


def _is_stretch(longer: Sequence[str], fewer: Sequence[str]) -> bool:
    """Whether the longer sequence holds the other one unbroken: its recording may begin later and end earlier."""
    starts = range(len(longer) - len(fewer) + 1)
    return any(list(longer[start : start + len(fewer)]) == list(fewer) for start in starts)


def _first_gap(longer: Sequence[str], fewer: Sequence[str]) -> int | None:
    """Place of the first call that only the longer sequence has; None unless it holds all others in order."""
    gap, at = None, 0
    for place, call in enumerate(longer):
        if at < len(fewer) and fewer[at] == call:
            at += 1
        elif gap is None:
            gap = place
    return gap if at == len(fewer) else None


def gap_by_surroundings(reference: Numbers, own: Numbers) -> Fit | None:
    """Where calls are missing by what surrounds them; None where the recording may merely end, or begin, elsewhere.

    Args:
        reference: kind of what the peer does before each call, and behind the last one; -1 where that is nothing.
        own: the same of the rank with fewer calls.
    """
    count, calls = len(reference) - len(own), len(own) - 1
    early = (own[:calls] == reference[:calls]) & (own[:calls] >= 0)
    late = (own == reference[count:]) & (own >= 0)
    before = np.concatenate([[0], np.cumsum(early)])
    behind = np.concatenate([np.cumsum(late[::-1])[::-1][1:], [0]])
    agreeing = before + behind
    best = int(agreeing.max())
    places = np.flatnonzero(agreeing == best)
    ends = int(agreeing[calls])
    if places[0] == 0 or best - ends < thresholds.LEAST_FOLLOWING_STRETCHES:
        return None
    return Fit(MISSING, int(places[0]), int(places[-1]), int(places[-1]), count)
