"""Compute calls of a rank to turns of a pipeline. In: `PipelineWork`, sends and receives. Out: `Turns`, in order.

A turn is a pass of one micro-batch through the layers of one chunk. Idea: between two turns stands a send or a receive,
or the direction changes; autograd's engine launches what goes backward. Kernels that are neither autograd's nor seen
before the first backward work of their iteration compute gradients of weights if they recur between turns, and belong
to the optimizer otherwise. Annotations that name turns decide where there are any.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import timeline as thresholds
from traceforge.timeline.pipeline_work import LETTERS, NONE, Integers, PipelineWork

FORWARD, BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT = range(len(LETTERS))


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns of one rank in order of launch; shapes (turns,).

    Attributes:
        iteration: in which its host launched it.
        letter: place in `LETTERS`.
        stage, microbatch: as an annotation says, `NONE` where none does.
        issue_ns: when the host launched its first call, on the common clock.
        start_ns, end_ns: of its first and its last call, likewise.
        first: place of its first call among those of `RankTurns`.
        calls: how many there are.
    """

    iteration: Integers
    letter: Integers
    stage: Integers
    microbatch: Integers
    issue_ns: Integers
    start_ns: Integers
    end_ns: Integers
    first: Integers
    calls: Integers

    def take(self, places: Integers | NDArray[np.bool_]) -> "Turns":
        """Some of them."""
        return Turns(*(getattr(self, field.name)[places] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class RankTurns:
    """Turns of a rank, and the calls that they consist of, by launch; shapes of times (calls,)."""

    turns: Turns
    issues_ns: Integers
    starts_ns: Integers
    ends_ns: Integers

    def of(self, iteration: int) -> "RankTurns":
        """Those of one iteration."""
        return RankTurns(
            self.turns.take(self.turns.iteration == iteration), self.issues_ns, self.starts_ns, self.ends_ns
        )


def turns_of(work: PipelineWork, iteration: Integers, marks_ns: Integers) -> RankTurns:
    """The turns of a rank.

    Args:
        work: its compute calls.
        iteration: of each call, `NONE` outside of all.
        marks_ns: when its host issued sends and receives, on its own clock, ascending.
    """
    letter = _letters(work, iteration)
    kept = np.flatnonzero(letter != NONE)
    letter, iteration, turn = letter[kept], iteration[kept], work.turn[kept]
    mark = np.searchsorted(marks_ns, work.launch_ns[kept])
    begins = np.ones(len(kept), dtype=np.bool_)
    begins[1:] = np.any([np.diff(one) != 0 for one in (letter, iteration, turn, mark)], axis=0)
    first = np.flatnonzero(begins)
    issues, starts, ends = (times[kept] for times in (work.issue_ns, work.start_ns, work.end_ns))
    if not len(first):
        return RankTurns(Turns(*(np.zeros(0, dtype=np.int64) for _ in fields(Turns))), issues, starts, ends)
    said = turn[first]
    stage, microbatch = (_at(values, said) for values in (work.stage, work.microbatch))
    found = Turns(
        iteration[first], letter[first], stage, microbatch, issues[first],
        np.minimum.reduceat(starts, first), np.maximum.reduceat(ends, first),
        first, np.diff(np.append(first, len(kept))),
    )  # fmt: skip
    return RankTurns(_with_split_backward(found), issues, starts, ends)


def _letters(work: PipelineWork, iteration: Integers) -> Integers:
    """What each call is part of, `NONE` for no turn."""
    result = np.where(work.is_backward, BACKWARD, NONE)
    for number in np.unique(iteration[iteration != NONE]).tolist():
        own = np.flatnonzero(iteration == number)
        if np.any(work.turn[own] != NONE):
            result[own] = _at(work.letter, work.turn[own])
            continue
        backward = np.flatnonzero(work.is_backward[own])
        if not len(backward):
            result[own] = FORWARD
            continue
        plain = own[~work.is_backward[own]]
        first, last = own[backward[0]], own[backward[-1]]
        is_known = np.isin(work.name[plain], work.name[plain[plain < first]])
        # What the optimizer launches is new behind the last backward work.
        is_between = np.isin(work.name[plain], work.name[plain[(plain > first) & (plain < last)]])
        forward = is_known & (plain < last)
        result[plain] = np.select([forward, is_between & ~is_known], [FORWARD, BACKWARD_WEIGHT], NONE)
    result[iteration == NONE] = NONE
    return result


def _with_split_backward(turns: Turns) -> Turns:
    """Name backward work after its parts in iterations where gradients of weights have turns of their own."""
    letter = turns.letter.copy()
    kept = np.ones(len(letter), dtype=np.bool_)
    lasting = turns.end_ns - turns.start_ns
    for number in np.unique(turns.iteration).tolist():
        own = turns.iteration == number
        backward, weight = (own & (letter == one) for one in (BACKWARD, BACKWARD_WEIGHT))
        if np.any(turns.microbatch[own] != NONE) or not weight.any():
            continue
        if lasting[weight].sum() >= thresholds.LEAST_WEIGHT_SHARE * lasting[backward].sum():
            letter[backward] = BACKWARD_INPUT
        else:
            kept &= ~weight
    return replace(turns, letter=letter).take(kept)


def counted(found: RankTurns, letter: int, expected: int) -> Turns | None:
    """The turns of a letter in an iteration, as many as messages show, or None where they are unknown.

    What is too much is short: it belongs to no turn. Where there are too few, some hold several that launch as much
    each, one right after the other.
    """
    turns = found.turns.take(found.turns.letter == letter)
    if len(turns.letter) >= expected:
        longest = np.argsort(turns.start_ns - turns.end_ns, kind="stable")[:expected]
        return turns.take(np.sort(longest))
    calls, rest = divmod(int(turns.calls.sum()), expected)
    if rest or not calls or np.any(turns.calls % calls):
        return None
    place = np.repeat(np.arange(len(turns.letter)), turns.calls // calls)
    first = turns.first[place] + calls * (np.arange(expected) - np.searchsorted(place, place))
    inside = first[:, None] + np.arange(calls)
    starts, ends = found.starts_ns[inside].min(axis=1), found.ends_ns[inside].max(axis=1)
    return replace(
        turns.take(place), issue_ns=found.issues_ns[first], start_ns=starts, end_ns=ends,
        first=first, calls=np.full(expected, calls),
    )  # fmt: skip


def _at(values: Integers, places: Integers) -> Integers:
    if not len(values):
        return np.full(len(places), NONE)
    result: Integers = np.where(places == NONE, NONE, values[places])
    return result
