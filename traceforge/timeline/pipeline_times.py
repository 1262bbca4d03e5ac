"""What the ranks of a pipeline measured. In: turns and when each rank is spare. Out: `RankTimes`, ns by iteration.

Spare is a rank while neither compute, nor a copy, nor a collective of its own stage runs on it. It is quiet while no
message runs either: then its host is late, unless what the next turn needs was not sent yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceforge.timeline.layers import Intervals, Times, covered_before, intersect


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Times of one rank in iterations, ns; shapes (iterations,) or (iterations, turns).

    Attributes:
        spare: of each iteration.
        exchanging: of that, while messages run or stages meet, by phase.
        launch: of that, where the host is late.
        turns: busy from the end of the turn before to the end of each; `late` the host's lateness therein.
        before, behind, after: busy before the first turn, behind the last one, and once stages have met.
    """

    spare: Times
    exchanging: Mapping[str, Times]
    launch: Times
    turns: Times
    late: Times
    before: Times
    behind: Times
    after: Times


@dataclass(frozen=True, slots=True)
class RankStory:
    """What is known of a rank.

    Attributes:
        windows: start and end of each iteration, shape (iterations, 2).
        starts, ends: of its turns, shape (iterations, turns).
        ready: when what each turn needs was sent; the start of the turn before where it needs nothing.
        met: start and end of the collective in which stages meet, shape (iterations, 2); the window's end without one.
        spare, quiet: when it is.
        phases: when it is in each phase of communication.
    """

    windows: Times
    starts: Times
    ends: Times
    ready: Times
    met: Times
    spare: Intervals
    quiet: Intervals
    phases: Mapping[str, Intervals]


def times_of(story: RankStory) -> RankTimes:
    """What a rank measured."""
    spare, quiet = _Covered(story.spare), _Covered(intersect(story.quiet, story.spare))
    begins, stops = story.windows[:, 0], story.windows[:, 1]
    since = np.maximum(begins, np.concatenate([[begins[0]], story.ends[:-1, -1]]))
    first, last = np.maximum(story.starts[:, 0], since), np.maximum(story.ends[:, -1], since)
    before = np.concatenate([first[:, None], story.ends[:, :-1]], axis=1)
    ends = np.maximum(story.ends, before)
    waiting_until = np.clip(story.ready, before, np.maximum(story.starts, before))
    late = quiet.between(waiting_until, ends)
    # Before its first turn a rank may be late with anything once what it needs was sent.
    late[:, 0] += quiet.between(np.clip(story.ready[:, 0], since, first), first)
    met = np.clip(story.met, last[:, None], np.maximum(stops, last)[:, None])
    stops = np.maximum(stops, last)
    return RankTimes(
        spare.between(*story.windows.T),
        {phase: _Covered(intersect(story.spare, one)).between(*story.windows.T) for phase, one in story.phases.items()},
        late.sum(axis=1) + quiet.between(last, stops),
        ends - before - spare.between(before, ends),
        late,
        first - since - spare.between(since, first),
        met[:, 0] - last - spare.between(last, met[:, 0]),
        stops - met[:, 1] - spare.between(met[:, 1], stops),
    )


class _Covered:
    """How much of any stretch some intervals cover."""

    def __init__(self, intervals: Intervals) -> None:
        self._starts, self._durations = intervals.starts_ns, intervals.ends_ns - intervals.starts_ns

    def between(self, since: Times, until: Times) -> Times:
        """From instants to later ones, ns."""
        covered = [
            covered_before(self._starts, self._durations, one.ravel()).reshape(one.shape) for one in (since, until)
        ]
        result: Times = covered[1] - covered[0]
        return result
