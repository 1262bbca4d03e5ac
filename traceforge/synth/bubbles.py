"""Why stages of a pipeline idle. In: a job that was run. Out: idle time by kind, rank and iteration, adding up.

Idle is a rank while neither compute, nor a copy, nor a collective of its stage runs on it; a message that waits or
moves is no work, nor is a collective in which stages meet.

The kinds follow from running the same programs without noise or fault, and with ever more of what is real:

    fill, drain   equal stages, messages and hosts of no time: before a rank's first backward pass, and from there on
    imbalance     each stage at its own duration
    transfer      messages at theirs
    launch        hosts at theirs
    late_peer     as it was, with noise and faults, but for messages
    transfer      messages as they were

Each is the difference to the run before, so that they sum to what was idle. A rank that is late itself idles less than
in the run before, and its `late_peer` is negative.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.events import SimulatedEvents
from traceforge.synth.load import Load, Noise, healthy_load
from traceforge.synth.program import ProgramOperation, Role, Roles
from traceforge.synth.scenario import Scenario, SimulatedJob
from traceforge.synth.simulate import simulate
from traceforge.synth.task import Coupling

Times = NDArray[np.float64]
Chosen = Callable[[ProgramOperation], bool]

_WITHOUT_NOISE = Noise(kernel=0, iteration=0, device=0, host=0, transfer=0, end_skew_ns=0)
_WORK = ("compute", "copy", "synchronise", "read")
# The first iteration differs from all others, which are alike.
_SIMULATED = 3


def bubbles_of(job: SimulatedJob) -> dict[str, Times]:
    """Idle time by kind, ns, shape (I, R)."""
    cluster, roles = job.scenario.cluster, job.roles
    rng = np.random.default_rng(0)
    own = healthy_load(cluster, roles, min(_SIMULATED, job.scenario.iterations), _WITHOUT_NOISE, rng)
    unhosted = replace(own, host_ns=np.zeros_like(own.host_ns), call_ns=np.zeros_like(own.call_ns), latency_ns=0)
    unmoved = replace(unhosted, message_ns={name: np.zeros_like(times) for name, times in own.message_ns.items()})
    equal = replace(unmoved, device_ns=_equal(own.device_ns, roles))
    ideal = _simulated(job.scenario, roles, equal)
    less_and_less_ideal = [_simulated(job.scenario, roles, load) for load in (unmoved, unhosted, own)]
    steps = [_idle(roles, events) for events in (ideal, *less_and_less_ideal)]
    fill = _fill(roles, ideal)
    found = {"fill": fill, "drain": steps[0] - fill}
    for kind, before, after in zip(("imbalance", "transfer", "launch"), steps[:-1], steps[1:], strict=True):
        found[kind] = after - before
    there = np.minimum(np.arange(job.scenario.iterations), len(own.host_ns) - 1)
    whole = {kind: times[there] for kind, times in found.items()}
    usual = replace(job.load, message_ns={name: times[there] for name, times in own.message_ns.items()})
    unslowed = _idle(roles, simulate(cluster, job.scenario.workload, roles, usual, job.scenario.coupling))
    whole["late_peer"] = unslowed - steps[-1][there]
    whole["transfer"] += _idle(roles, job.events) - unslowed
    return whole


def exposed_ns(job: SimulatedJob) -> dict[str, Times]:
    """Time in which a kind of communication runs and no work does, ns, shape (I, R); messages include their wait."""
    kinds = {operation.group for role in job.roles for operation in role.program if operation.group is not None}
    ends = job.events.iteration_ends_ns()
    busy = _busy(job.roles, job.events, ends, _is_work)
    found: dict[str, Times] = {}
    for kind in sorted(kinds):

        def is_either(operation: ProgramOperation, kind: str = kind) -> bool:
            return _is_work(operation) or operation.group == kind

        found[kind] = _busy(job.roles, job.events, ends, is_either) - busy
    return found


def _simulated(scenario: Scenario, roles: Roles, load: Load) -> SimulatedEvents:
    return simulate(scenario.cluster, scenario.workload, roles, load, Coupling())


def _equal(device_ns: Times, roles: Roles) -> Times:
    """Device times of stages of which each pass takes as long as that of the others on average."""
    equal = device_ns.copy()
    lengths: dict[str, list[float]] = {}
    for role in roles:
        for (work, _), places in _passes(role).items():
            lengths.setdefault(work, []).append(_length(role, places))
    for role in roles:
        for (work, _), places in _passes(role).items():
            mean = sum(lengths[work]) / len(lengths[work])
            block = np.ix_(np.arange(len(equal)), np.array(places), np.array(role.ranks))
            equal[block] *= mean / _length(role, places)
    return equal


def _passes(role: Role) -> dict[tuple[str, int], list[int]]:
    """Operations that compute, by pass and chunk, all micro-batches together."""
    found: dict[tuple[str, int], list[int]] = {}
    for n, operation in enumerate(role.program):
        if operation.action == "compute" and operation.work:
            found.setdefault((operation.work, operation.chunk), []).append(n)
    return found


def _length(role: Role, places: list[int]) -> float:
    return sum(role.program[n].device_ns for n in places)


def _is_work(operation: ProgramOperation) -> bool:
    return operation.action in _WORK


def _is_work_or_collective(operation: ProgramOperation) -> bool:
    return operation.action in _WORK or (operation.action == "collective" and operation.group != "pipeline_parallel")


def _idle(roles: Roles, events: SimulatedEvents) -> Times:
    ends = events.iteration_ends_ns()
    return np.diff(ends, prepend=0.0)[:, None] - _busy(roles, events, ends, _is_work_or_collective)


def _begins_backward(operation: ProgramOperation) -> bool:
    return operation.action == "compute" and operation.work.startswith("backward")


def _fill(roles: Roles, events: SimulatedEvents) -> Times:
    """Idle time before the first backward pass of each rank and iteration."""
    begins = np.concatenate([[0.0], events.iteration_ends_ns()[:-1]])
    result = np.zeros((len(begins), events.step_start_ns.shape[1]))
    for role in roles:
        first = next(n for n, one in enumerate(role.program) if _begins_backward(one))
        for rank in role.ranks:
            until = events.device_start_ns[:, first, rank]
            covered = _Coverage(role, events, rank, _is_work_or_collective)
            result[:, rank] = until - begins - (covered.until(until) - covered.until(begins))
    return result


def _busy(roles: Roles, events: SimulatedEvents, ends: Times, chosen: Chosen) -> Times:
    """Time of each iteration that the chosen operations cover, shape (I, R)."""
    result = np.zeros((len(ends), events.step_start_ns.shape[1]))
    for role in roles:
        for rank in role.ranks:
            result[:, rank] = np.diff(_Coverage(role, events, rank, chosen).until(ends), prepend=0.0)
    return result


class _Coverage:
    """The union of what some operations of a rank cover."""

    def __init__(self, role: Role, events: SimulatedEvents, rank: int, chosen: Chosen) -> None:
        places = [n for n, operation in enumerate(role.program) if chosen(operation)]
        start, end = (times[:, places, rank].ravel() for times in (events.device_start_ns, events.device_end_ns))
        order = np.argsort(start, kind="stable")
        start, end = start[order], np.maximum.accumulate(end[order])
        # What begins where something still runs adds what lies beyond that.
        start = np.maximum(start, np.concatenate([[0.0], end[:-1]]))
        self._at = np.stack([start, end], axis=1).ravel()
        self._covered = np.repeat(np.cumsum(end - start), 2)
        self._covered[::2] -= end - start

    def until(self, times: Times) -> Times:
        """How much is covered until some times."""
        covered: Times = np.interp(times, self._at, self._covered, left=0.0)
        return covered
