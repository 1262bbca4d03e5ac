"""The replay itself. In: durations, groups, waits and starts as arrays. Out: when each rank ends each iteration.

One pure function. A rank works, arrives, goes on, and waits where it awaited; a collective ends a transfer after the
last arrival of its group. With the measured durations and no delay this rebuilds the trace exactly, in integers.
Everything here is a maximum or a sum, so that a delay can never make anything end earlier: gains from pacing need a
coupling that is measured and put in by the caller.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.model import StepModel
from traceforge.replay.policy import Past

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Replay:
    """Outcome of a replay.

    Attributes:
        start_ns: start of each iteration on each rank, shape (I, R).
        end_ns: end, shape (I, R).
        wait_ns: mean over the iteration's collectives of the time between a rank's arrival and the last one's,
            shape (I, R).
        delay_ns: delay injected before each iteration, shape (I, R).
    """

    start_ns: Times
    end_ns: Times
    wait_ns: Times
    delay_ns: Times


@dataclass(frozen=True, slots=True)
class Durations:
    """What a replay may change; shapes as in `StepModel`, work summed over kinds."""

    before_arrival_ns: Times
    before_wait_ns: Times
    transfer_ns: Times


# Delay before the next iteration, shape (R,), from the past.
Delay = Callable[[Past], Times]


def measured(model: StepModel) -> Durations:
    """The durations as they were."""
    return Durations(model.before_arrival_ns.sum(axis=3), model.before_wait_ns.sum(axis=3), model.transfer_ns)


def replay(model: StepModel, durations: Durations, delay: Delay | None = None) -> Replay:
    """Run all iterations one after another.

    Between two iterations each rank pauses as long as it did in the trace.
    """
    count, ranks = model.start_ns.shape
    start, end, wait, injected = (np.zeros((count, ranks), dtype=np.int64) for _ in range(4))
    pause = model.start_ns[1:] - model.end_ns[:-1]
    for i in range(count):
        start[i] = model.start_ns[0] if i == 0 else end[i - 1] + pause[i - 1]
        if delay is not None:
            injected[i] = delay(Past(wait[:i], injected[:i], end[:i] - start[:i]))
        end[i], wait[i] = replay_iteration(model, durations, i, start[i] + injected[i])
    return Replay(start, end, wait, injected)


def replay_iteration(model: StepModel, durations: Durations, i: int, start_ns: Times) -> tuple[Times, Times]:
    """End of iteration `i` and mean wait in it, both shape (R,), for given starts."""
    time = start_ns.copy()
    calls = int(model.calls[i])
    ends = np.zeros((calls, len(time)), dtype=np.int64)
    waited = np.zeros(len(time), dtype=np.int64)
    everyone = np.arange(len(time))
    for p in range(calls):
        time = time + durations.before_arrival_ns[i, p]
        last = last_of_group(time, model.group[i, p])
        waited += last - time
        ends[p] = last + durations.transfer_ns[i, p]
        time = time + durations.before_wait_ns[i, p]
        awaited = model.awaited[i, p]
        reached = ends[np.maximum(awaited, 0), everyone]
        time = np.where(awaited >= 0, np.maximum(time, reached), time)
    return time + durations.before_arrival_ns[i, calls], waited // max(calls, 1)


def last_of_group(times_ns: Times, group: NDArray[np.int64]) -> Times:
    """For each rank the latest time within its group, shape (R,)."""
    if (group == group[0]).all():
        return np.full_like(times_ns, times_ns.max())
    _, index = np.unique(group, return_inverse=True)
    latest = np.full(index.max() + 1, np.iinfo(np.int64).min)
    np.maximum.at(latest, index, times_ns)
    result: Times = latest[index]
    return result
