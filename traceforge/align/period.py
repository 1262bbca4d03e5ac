"""After how many calls or kernels a sequence repeats itself. In: what was run, in order. Out: the period, or None.

Idea: the sequence is compared with itself, one period later. Layers repeat within a step, and must not be taken for
steps: a period that holds more of the kinds that were run is the better one.
Not handled: steps that differ in what they run, beyond a few calls of a sequence.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import align as thresholds


@dataclass(frozen=True, slots=True)
class Period:
    """How a sequence repeats itself.

    Attributes:
        length: after how many tokens.
        held: kinds of tokens that stand at some place of most turns.
    """

    length: int
    held: int


def period_of(tokens: Sequence[str]) -> int | None:
    """Smallest number of tokens after which a sequence repeats itself three times or more; None where it does not.

    Layers repeat within a step: a period that leaves out a kind of call that a longer one holds is not the step's. A
    sequence of equal tokens has no period.
    """
    return _period(tuple(tokens))


@lru_cache(maxsize=16)  # ranks of one role call the same sequence
def _period(tokens: tuple[str, ...]) -> int | None:
    number = {token: place for place, token in enumerate(dict.fromkeys(tokens))}
    sequence = np.array([number[token] for token in tokens], dtype=np.int32)
    found = _best(sequence, _places(sequence), range(2, len(sequence) // thresholds.LEAST_STEPS + 1))
    return found.length if found else None


def kernel_period(names: NDArray[np.int32]) -> int | None:
    """The period of the kernels of a stream; None where too many kinds of them lie outside of what repeats.

    A single pass through a model repeats its layers, too. What goes before and behind them is then of no turn: where
    it is there, layers are what was found.

    Args:
        names: a number for each name, from 0 without holes, in the order in which the kernels ran; shape (kernels,).
    """
    places = _places(names)
    found = _best(names, places, _distances(places))
    if found is None or found.held < thresholds.LEAST_HELD_KINDS * len(places):
        return None
    return found.length


def _places(sequence: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    """Where each kind stands."""
    order = np.argsort(sequence, kind="stable")
    return np.split(order, np.cumsum(np.bincount(sequence))[:-1]) if len(sequence) else []


def _distances(places: Sequence[NDArray[np.int64]]) -> list[int]:
    """Periods to try: after how many kernels the rarest of those that recur come again, ascending.

    A kind may stand several times in a turn, so that the second or third next one counts as well.
    """
    found: set[int] = set()
    recurring = sorted((at for at in places if len(at) >= thresholds.LEAST_STEPS), key=len)
    for at in recurring[: thresholds.PERIOD_KINDS]:
        for later in range(1, thresholds.PERIOD_TIMES + 1):
            distances, times = np.unique(at[later:] - at[:-later], return_counts=True)
            found.update(distances[2 * times > len(at) - later].tolist())
    return sorted(found)


def _best(sequence: NDArray[np.int32], places: Sequence[NDArray[np.int64]], periods: Iterable[int]) -> Period | None:
    """The shortest of some periods among those that hold most kinds; two kinds at least."""
    total = len(sequence)
    regular = [at for at in places if len(at) >= thresholds.LEAST_STEPS]
    best = Period(0, 1)
    for period in periods:
        if period * thresholds.LEAST_STEPS > total:
            break
        same = int(np.count_nonzero(sequence[period:] == sequence[:-period]))
        if same < thresholds.LEAST_REPEATED_SHARE * (total - period):
            continue
        held = sum(_is_in_turn(at, period, total) for at in regular)
        if held > best.held:
            best = Period(period, held)
    return best if best.length else None


def _is_in_turn(at: NDArray[np.int64], period: int, total: int) -> bool:
    """Whether a kind of call stands at some place of most turns.

    Args:
        at: its places in the sequence.
        period: calls a turn.
        total: calls in all.
    """
    times = np.bincount(at % period, minlength=period)
    turns = (total - np.arange(period) + period - 1) // period
    return bool(np.any(2 * times > turns))
