"""Restarts seen across runs of one job. In: timeline.iteration, forecast.point. Out: which run goes on from which.

A run goes on from an earlier one where both lie on one curve at one scale, it starts after the earlier has ended, and
its first iteration is one that the earlier recorded too, but not the first of it. Clocks must count from the epoch.
Not handled: profilers record windows, so that this is the least that was repeated, not all.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from traceforge.forecast.scale_point import ScalePoint
from traceforge.store.database import Store

# Times before 2001 are those of clocks that do not count from the epoch.
_EARLIEST_NS = 10**18

_WINDOWS = """
SELECT run_id, MIN(iteration), MAX(iteration), MIN(start_ns), MAX(start_ns + duration_ns)
FROM timeline.iteration
GROUP BY run_id
"""


@dataclass(frozen=True, slots=True)
class Window:
    """What a run recorded: first and last iteration, and from when to when."""

    first_iteration: int
    last_iteration: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Restart:
    """A run that goes on from within an earlier one.

    Attributes:
        earlier: name of that run.
        iterations: recorded by both: repeated work.
        repeated_ns: the same in time, at the earlier run's pace.
        gap_ns: from the end of the earlier run to the start of the later.
    """

    earlier: str
    iterations: int
    repeated_ns: float
    gap_ns: int


def windows(store: Store) -> dict[int, Window]:
    """What each run recorded."""
    return {run_id: Window(*window) for run_id, *window in store.rows(_WINDOWS)}


def restarts(run_id: int, curve: Mapping[int, ScalePoint], recorded: Mapping[int, Window]) -> list[Restart]:
    """The runs on its curve that a run goes on from."""
    own, found = recorded[run_id], []
    for other, point in curve.items():
        earlier = recorded[other]
        if point.ranks != curve[run_id].ranks or not _EARLIEST_NS <= earlier.start_ns < earlier.end_ns <= own.start_ns:
            continue
        if earlier.first_iteration < own.first_iteration <= earlier.last_iteration:
            count = earlier.last_iteration - own.first_iteration + 1
            found.append(Restart(point.name, count, count * point.step_s * 1e9, own.start_ns - earlier.end_ns))
    return found
