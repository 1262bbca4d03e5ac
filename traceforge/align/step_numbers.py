"""Numbers of marked steps that ranks count differently. In: steps and calls of each rank. Out: steps of one count.

A profiler that starts later on one rank may count from 0 there, too. The first call of a step on the widest group tells
which steps are the same: by its name, where traces state sequence numbers, else by its end, on ranks of one host, whose
clocks agree: a collective ends on all of its members at once. Clocks of several hosts may differ by steps, but by as
much in each: of all shifts, the one in which the difference hardly changes is right, if it changes more in all others.
What most ranks count stands.
Not handled: ranks of several hosts whose calls have no names, where steps take so equally long that none stands out.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from statistics import median

import numpy as np
from numpy.typing import NDArray

from traceforge.align.rank_trace import Step, Steps
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.thresholds import align as thresholds
from traceforge.units import plural

_CALLS = """
SELECT rank, raw_issue_ns, raw_end_ns, COALESCE(process_group_name, '') || ':' || CAST(stated_sequence AS VARCHAR)
FROM align.call
WHERE run_id = ? AND is_linked AND is_intact
QUALIFY COALESCE(group_size, 0) = MAX(COALESCE(group_size, 0)) OVER (PARTITION BY rank)
ORDER BY rank, raw_issue_ns, call_id
"""
# Clocks that do not count from an epoch begin with each process.
_HOSTS = "SELECT rank, host FROM align.rank WHERE run_id = ? AND raw_first_ns >= ? AND host IS NOT NULL"


@dataclass(frozen=True, slots=True)
class FirstCall:
    """The first call that a rank issues in a step.

    Attributes:
        name: on all ranks alike; None where the trace states none.
        end_ns: on the rank's own clock.
    """

    name: str | None
    end_ns: int


FirstCalls = Mapping[int, FirstCall]
"""By number of the step."""


def with_common_numbers(store: Store, run_id: int, steps: Mapping[int, Steps]) -> dict[int, Steps]:
    """The steps of a run, numbered as most ranks do; adds an issue where some rank counts differently."""
    hosts = {rank: str(host) for rank, host in store.query(_HOSTS, [run_id, thresholds.EARLIEST_EPOCH_NS]).iter_rows()}
    if not _may_differ(steps, hosts):
        return dict(steps)
    moved = {rank: by for rank, by in shifts_of(_first_calls(store, run_id, steps), hosts).items() if by}
    if moved:
        store.append("meta.issue", issue_rows(run_id, None, "align", [_renumbered(len(moved))]))
    return {
        rank: [replace(step, iteration=step.iteration + moved.get(rank, 0)) for step in own]
        for rank, own in steps.items()
    }


def _may_differ(steps: Mapping[int, Steps], hosts: Mapping[int, str]) -> bool:
    """Whether ranks have other steps than others, or begin the same ones at other times."""
    if len({tuple(step.iteration for step in own) for own in steps.values()}) > 1:
        return True
    begun = [own[0].start_ns for rank, own in steps.items() if rank in hosts and own]
    half_ns = median([step.end_ns - step.start_ns for own in steps.values() for step in own] or [0]) / 2
    return len(begun) > 1 and max(begun) - min(begun) >= half_ns


def _first_calls(store: Store, run_id: int, steps: Mapping[int, Steps]) -> dict[int, FirstCalls]:
    found: dict[int, FirstCalls] = {}
    for (key,), calls in store.query(_CALLS, [run_id]).group_by("rank", maintain_order=True):
        rank = int(str(key))
        _, issued, ended, names = (column.to_list() for column in calls)
        found[rank] = {
            step.iteration: FirstCall(names[at], ended[at])
            for step, at in _firsts(steps.get(rank, []), np.array(issued))
        }
    return found


def _firsts(steps: Steps, issued_ns: NDArray[np.int64]) -> list[tuple[Step, int]]:
    """Steps with the place of the first call in each."""
    places = np.searchsorted(issued_ns, [step.start_ns for step in steps]).tolist()
    of_step = zip(steps, places, strict=True)
    return [(step, at) for step, at in of_step if at < len(issued_ns) and issued_ns[at] < step.end_ns]


def shifts_of(calls: Mapping[int, FirstCalls], hosts: Mapping[int, str]) -> dict[int, int]:
    """What to add to the numbers of each rank's steps, so that they are those of most ranks.

    Args:
        calls: of each rank.
        hosts: of the ranks whose clocks count from an epoch.
    """
    reference = max(calls, key=lambda rank: (len(calls[rank]), -rank), default=None)
    if reference is None:
        return {}
    found = {reference: 0}
    for rank, own in calls.items():
        shift = _by_names(own, calls[reference])
        if shift is None and rank in hosts and reference in hosts:
            of_one = hosts[rank] == hosts[reference]
            shift = (_by_ends if of_one else _by_course)(own, calls[reference])
        if shift is not None:
            found[rank] = shift
    usual = Counter(found.values()).most_common(1)[0][0]
    return {rank: found.get(rank, usual) - usual for rank in calls}


def _by_names(own: FirstCalls, reference: FirstCalls) -> int | None:
    """What turns a rank's numbers into those of the reference; None where their calls do not say."""
    number = {call.name: iteration for iteration, call in reference.items() if call.name is not None}
    shifts = [number[call.name] - iteration for iteration, call in own.items() if call.name in number]
    if len(shifts) < thresholds.LEAST_STEPS or len(set(shifts)) > 1:
        return None
    return shifts[0]


def _by_ends(own: FirstCalls, reference: FirstCalls) -> int | None:
    """The same from when the calls end, on one clock."""
    numbers, ends = _ends(reference)
    mine, ended = _ends(own)
    together = np.abs(ends[:, None] - ended) <= thresholds.SAME_HOST_RESIDUAL_NS
    at, own_at = np.nonzero(together)
    if not len(at):
        return None
    shift, alike = Counter((numbers[at] - mine[own_at]).tolist()).most_common(1)[0]
    common = len(np.intersect1d(numbers, mine + shift))
    return shift if alike >= max(thresholds.LEAST_STEPS, thresholds.LEAST_IN_ORDER_SHARE * common) else None


def _by_course(own: FirstCalls, reference: FirstCalls) -> int | None:
    """The same on two clocks, which differ by as much in each step."""
    numbers, ends = _ends(reference)
    mine, ended = _ends(own)
    if not len(numbers) or not len(mine):
        return None
    shifts = range(int(numbers[0] - mine[-1]), int(numbers[-1] - mine[0]) + 1)
    least = max(thresholds.LEAST_STEPS, min(len(numbers), len(mine)) / 2)
    changes: list[tuple[float, int]] = []
    for shift in shifts:
        _, at, own_at = np.intersect1d(numbers, mine + shift, return_indices=True)
        if len(at) >= least:
            apart = np.abs(np.diff(ends[at] - ended[own_at]))
            changes.append((float(np.quantile(apart, thresholds.LEAST_IN_ORDER_SHARE)), shift))
    best, *others = sorted(changes) or [(inf, 0)]
    is_distinct = all(change >= thresholds.DISTINCT_CHANGE_RATIO * best[0] for change, _ in others)
    return best[1] if others and is_distinct and best[0] <= thresholds.SAME_HOST_RESIDUAL_NS else None


def _ends(calls: FirstCalls) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    numbers = sorted(calls)
    return np.array(numbers, np.int64), np.array([calls[one].end_ns for one in numbers], np.int64)


def _renumbered(ranks: int) -> Issue:
    detail = (
        f"{plural(ranks, 'rank')} number their steps otherwise than most; they are renumbered by common collectives"
    )
    return Issue("steps_renumbered", "info", ranks, None, detail)
