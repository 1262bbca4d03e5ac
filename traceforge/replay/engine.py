"""The replay itself. In: durations, groups, waits and starts as arrays. Out: when each rank ends each iteration.

One pure function. A rank works, arrives, goes on, and waits where it awaited; a collective ends a transfer after the
last arrival of its group. With the measured durations and no delay this rebuilds the trace exactly, in integers, for
any couplings. Without couplings everything here is a maximum or a sum, so that a delay can never make anything end
earlier: gains from pacing need a coupling that is measured and put in by the caller (see `coupling`).

Several variants (arms) of one run are replayed side by side, as a leading axis V of all arrays.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.replay.coupling import (
    NO_COUPLING,
    Baseline,
    Couplings,
    Cover,
    baseline,
    device_share,
    more_transfer,
    more_work,
    strengths,
    with_host_contention,
    without_host_contention,
)
from traceforge.replay.model import StepModel
from traceforge.replay.policy import Past
from traceforge.replay.rank_groups import Amounts, RankGroups, RankPartition, Times, rank_groups


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


@dataclass(frozen=True, slots=True)
class Arm:
    """One variant of a replay: who is delayed, by which couplings that matters, and whether the delay foresees."""

    delay: Delay | None = None
    couplings: Couplings = NO_COUPLING
    sees_future: bool = False


def measured(model: StepModel) -> Durations:
    """The durations as they were."""
    return Durations(_over_kinds(model.before_arrival_ns), _over_kinds(model.before_wait_ns), model.transfer_ns)


def _over_kinds(work_ns: Times) -> Times:
    """Sum over the last axis; a sum of whole slices is many times faster than numpy's over a short axis."""
    if work_ns.shape[-1] == 1:
        return work_ns[..., 0]
    total = np.zeros(work_ns.shape[:-1], dtype=np.int64)
    for kind in range(work_ns.shape[-1]):
        total += work_ns[..., kind]
    return total


def record(
    model: StepModel, host: NDArray[np.int64] | None = None, on_device: Collection[str] = ("compute",)
) -> Baseline:
    """The recorded run as couplings need it: a replay of the measured durations that keeps every arrival.

    Args:
        host: number of each rank's host, shape (R,); None where hosts are unknown.
        on_device: what the model calls work of the device (first part of `StepModel.kinds`).
    """
    met = rank_groups(model.group)
    arrival, begun = (np.zeros(model.group.shape, dtype=np.int64) for _ in range(2))
    run = _Iterations(model, measured(model), [Arm()], None, met)
    for i in range(len(model.start_ns)):
        run.iterate(i, model.start_ns[i][None, :], arrival_ns=arrival[i], begun_ns=begun[i])
    return baseline(model, met, arrival, begun, host, on_device)


def replay(
    model: StepModel,
    durations: Durations,
    delay: Delay | None = None,
    *,
    couplings: Couplings = NO_COUPLING,
    recorded: Baseline | None = None,
    unhindered: bool = False,
) -> Replay:
    """Run all iterations one after another.

    Between two iterations each rank pauses as long as it did in the trace.

    Args:
        recorded: the run before any change, with couplings; made from the model where it is not given.
        unhindered: waits cost nothing, as if all that couplings take for them were gone: what no pacing can beat.
    """
    return replay_arms(model, durations, [Arm(delay, couplings)], recorded=recorded, unhindered=unhindered)[0]


def replay_arms(
    model: StepModel,
    durations: Durations,
    arms: Sequence[Arm],
    *,
    recorded: Baseline | None = None,
    unhindered: bool = False,
) -> list[Replay]:
    """One replay an arm, at a cost that grows less than their number; arguments as of `replay`."""
    if recorded is None and any(arm.couplings != NO_COUPLING for arm in arms):
        recorded = record(model)
    run = _Iterations(model, durations, arms, recorded, rank_groups(model.group), unhindered=unhindered)
    count, ranks = model.start_ns.shape
    start, end, wait, injected, lasted = (np.zeros((count, len(arms), ranks), dtype=np.int64) for _ in range(5))
    total = np.zeros((len(arms), ranks), dtype=np.int64)
    pause = model.start_ns[1:] - model.end_ns[:-1]
    for i in range(count):
        start[i] = model.start_ns[0] if i == 0 else end[i - 1] + pause[i - 1]
        foreseen = run.slack(i, start[i]) if any(arm.sees_future for arm in arms) else None
        for v, arm in enumerate(arms):
            if arm.delay is not None:
                past = Past(wait[:i, v], injected[:i, v], lasted[:i, v], total[v])
                ahead = foreseen[v] if arm.sees_future and foreseen is not None else None
                injected[i, v] = arm.delay(past if ahead is None else past.foreseeing(ahead))
        end[i], wait[i] = run.iterate(i, start[i] + injected[i])
        lasted[i] = end[i] - start[i]
        total += lasted[i]
    return [Replay(start[:, v], end[:, v], wait[:, v], injected[:, v]) for v in range(len(arms))]


class _Awaited:
    """Whose ends ranks await: `place` as `StepModel.awaited`, shape (I, P, R), negative where none is awaited."""

    def __init__(self, place: NDArray[np.int64]) -> None:
        self.place = place
        self._first: list[list[int]] = place.min(axis=2).tolist()
        self._last: list[list[int]] = place.max(axis=2).tolist()

    def reached(self, i: int, p: int, ends: Sequence[Times], time: Times) -> Times:
        """End that each rank awaits, or its own time, shape (V, R); `time` itself where no rank awaits one."""
        last = self._last[i][p]
        if last < 0 or last == self._first[i][p]:
            return time if last < 0 else ends[last]
        result, awaited = time, self.place[i, p]
        for place in np.unique(awaited).tolist():
            if place >= 0:
                result = np.where(awaited == place, ends[place], result)
        return result


class _Iterations:
    """What all iterations of a replay share."""

    def __init__(
        self,
        model: StepModel,
        durations: Durations,
        arms: Sequence[Arm],
        recorded: Baseline | None,
        met: RankGroups,
        *,
        unhindered: bool = False,
    ) -> None:
        self._durations, self._recorded, self._unhindered = durations, recorded, unhindered
        self._awaited = _Awaited(model.awaited)
        behind = model.queued if model.behind is None else model.behind
        self._behind = None if behind is None else _Awaited(behind)
        self._calls: list[int] = model.calls.tolist()
        # Ranks of several roles join different numbers of collectives.
        self._joined = None if model.role is None else np.maximum((model.group >= 0).sum(axis=1), 1)
        self._layout: list[list[RankPartition]] = [[met.layouts[n] for n in row] for row in met.at.tolist()]
        places = np.arange(model.awaited.shape[1])[:, None]
        self._own_end = _for_all_ranks(model.awaited == places)
        self._idle_between = _for_all_ranks(durations.before_wait_ns == 0)
        self._given = strengths([arm.couplings for arm in arms])
        if _has_absent_ranks(model):
            # Where ranks meet at different places, who waits for whom on a host does not follow from their arrivals.
            self._given = replace(self._given, host=None)
        self._overlap = recorded is not None and self._given.overlap
        if recorded is not None and self._overlap:
            parts = model.before_arrival_ns, model.before_wait_ns
            self._share = [device_share(work, recorded.device_kinds) for work in parts]
            self._tail_begin = model.end_ns

    def iterate(
        self, i: int, start_ns: Times, *, arrival_ns: Times | None = None, begun_ns: Times | None = None
    ) -> tuple[Times, Times]:
        """End of iteration `i` and mean wait in it, shape (V, R), for starts of that shape.

        Args:
            arrival_ns: where to note the first arm's arrivals, shape (P, R).
            begun_ns: where to note when its collectives began, their streams being free, shape (P, R).
        """
        calls, given = self._calls[i], self._given
        ends: list[Times] = []
        time, waited = start_ns, np.zeros(start_ns.shape, dtype=np.int64)
        under_way: tuple[Times, Times] | None = None
        for p in range(calls):
            time = self._arrive(i, p, time, under_way)
            begun = self._begun(i, p, time, ends)
            if arrival_ns is not None and begun_ns is not None:
                arrival_ns[p], begun_ns[p] = time[0], begun[0]
            layout = self._layout[i][p]
            last = layout.latest(begun)
            wait = last - begun
            waited += wait
            end = last + self._durations.transfer_ns[i, p]
            if given.spread is not None and self._recorded is not None:
                mean = np.zeros((1, 1)) if self._unhindered else layout.mean(wait)
                more = more_transfer(given.spread, mean, self._recorded.spread_ns[i, p])
                end = np.maximum(end + more, np.minimum(end, last))
            ends.append(end)
            if self._overlap:
                under_way = (last, end)
            if not self._idle_between[i][p]:
                time = time + self._work(i, p, time, under_way)
            if self._own_end[i][p]:
                time = np.maximum(time, end)
            elif (reached := self._awaited.reached(i, p, ends, time)) is not time:
                time = np.maximum(time, reached)
        joined = max(calls, 1) if self._joined is None else self._joined[i]
        return self._arrive(i, calls, time, under_way), waited // joined

    def slack(self, i: int, start_ns: Times) -> Times:
        """How long each rank may be delayed before iteration `i` without anything ending later, shape (V, R).

        Up to its first wait a rank may come later by the least of its waits, and of the time for which it is blocked.
        """
        arms, ranks = start_ns.shape
        arrival = np.zeros((self._calls[i], ranks), dtype=np.int64)
        result = np.zeros((arms, ranks), dtype=np.int64)
        for v in range(arms):
            self._slack_of(i, start_ns[v : v + 1], arrival, result[v])
        return result

    def _slack_of(self, i: int, start_ns: Times, arrival: Times, result: Times) -> None:
        ends: list[Times] = []
        time, free = start_ns, np.full(start_ns.shape, np.iinfo(np.int64).max)
        is_free = np.ones(start_ns.shape, dtype=bool)
        for p in range(self._calls[i]):
            time = time + self._durations.before_arrival_ns[i, p]
            last = self._layout[i][p].latest(self._begun(i, p, time, ends))
            free = np.where(is_free, np.minimum(free, last - time), free)
            ends.append(last + self._durations.transfer_ns[i, p])
            time = time + self._durations.before_wait_ns[i, p]
            reached = self._awaited.reached(i, p, ends, time)
            waits = self._awaited.place[i, p] >= 0
            free = np.where(is_free & waits, np.minimum(free, reached - time), free)
            is_free &= ~waits
            time = np.maximum(time, reached)
            if not is_free.any():
                break
        result[:] = np.where(is_free, 0, np.maximum(free, 0))[0]

    def _begun(self, i: int, p: int, time: Times, ends: Sequence[Times]) -> Times:
        """When the collective at place `p` begins on each rank that arrives at `time`: once its stream is free."""
        before = time if self._behind is None else self._behind.reached(i, p, ends, time)
        return time if before is time else np.maximum(time, before)

    def _arrive(self, i: int, p: int, time: Times, under_way: tuple[Times, Times] | None) -> Times:
        """When each rank has done its work before arrival `p`, or before the end of the iteration."""
        work, recorded = self._durations.before_arrival_ns[i, p], self._recorded
        begin, time = time, time + work
        if recorded is None:
            return time
        if self._overlap and under_way is not None:
            then_end = recorded.arrival_ns[i, p] if p < self._calls[i] else self._tail_begin[i]
            then = self._cover(recorded, i, p - 1, then_end - recorded.before_arrival_ns[i, p])
            time = time + more_work(work, self._share[0][i, p], self._given, self._now(begin, under_way), then)
        if self._given.host is not None and recorded.host is not None and p < self._calls[i]:
            return self._among_hosts(time, recorded.arrival_ns[i, p], recorded.host, self._given.host)
        return time

    def _among_hosts(self, time: Times, then_ns: Times, host: NDArray[np.int64], phi: Amounts) -> Times:
        """Arrivals as waiting ranks of the same host make them, from those with the recorded contention in them."""
        origin, then = time.min(), (then_ns - then_ns.min())[None, :].astype(np.float64)
        base = (time - origin) - (then - without_host_contention(then, host, phi))
        moved = base if self._unhindered else with_host_contention(base, host, phi)
        arrival: Times = np.rint(moved).astype(np.int64) + origin
        return arrival

    def _work(self, i: int, p: int, time: Times, under_way: tuple[Times, Times] | None) -> Times:
        """Work between arrival `p` and the wait after it, ns."""
        work: Times = self._durations.before_wait_ns[i, p]
        if under_way is None or self._recorded is None:
            return work
        then = self._cover(self._recorded, i, p, self._recorded.arrival_ns[i, p])
        more: Times = more_work(work, self._share[1][i, p], self._given, self._now(time, under_way), then)
        return work + more

    def _now(self, begin: Times, under_way: tuple[Times, Times]) -> Cover:
        """What covers a stretch that begins now."""
        last, end = under_way
        return Cover(begin, begin, begin + end - last) if self._unhindered else Cover(begin, last, end)

    def _cover(self, recorded: Baseline, i: int, p: int, begin_ns: Times) -> Cover:
        """What covered a stretch in the recorded run: the collective at place `p`."""
        last = self._layout[i][p].latest(recorded.begun_ns[i, p])
        return Cover(begin_ns, last, last + recorded.transfer_ns[i, p])


def _has_absent_ranks(model: StepModel) -> bool:
    """Whether some ranks take no part in some meetings, as in pipelines."""
    is_real = np.arange(model.group.shape[1]) < model.calls[:, None]
    return bool((model.group[is_real] < 0).any())


def _for_all_ranks(holds: NDArray[np.bool_]) -> list[list[bool]]:
    """Where it holds on all ranks, by iteration and place."""
    found: list[list[bool]] = np.logical_and.reduce(holds, axis=2).tolist()
    return found
