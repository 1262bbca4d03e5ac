"""Generated jobs run again with one thing changed. In: a kind of job and a seed. Out: scenarios, and truths.

The job is simulated again with the same draws; only what the edit speaks of is different. What collectives take in
another form follows from the generator's links, by arithmetic of its own.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.synth.cluster import LINKS, Cluster
from traceforge.synth.events import no_events
from traceforge.synth.experts import reroute
from traceforge.synth.fault import Injection
from traceforge.synth.load import Load
from traceforge.synth.program import ProgramOperation, Role, Roles, Workload
from traceforge.synth.runner import Runner
from traceforge.synth.scenario import Scenario, SimulatedJob, run
from traceforge.synth.task import Coupling, Meetings, StreamTask

Times = NDArray[np.float64]

ITERATIONS = 14
SYNCHRONISED = ("data_parallel", "replicate")
"""Groups whose ranks hold the same parameters."""


@dataclass(frozen=True, slots=True)
class EditedRun:
    """A job, and what is changed in it.

    Attributes:
        edit: as on the command line.
        ends_ns: when each iteration is over, with the change.
        samples_share: samples of an iteration, as a share of those without it.
    """

    family: str
    scenario: Scenario
    edit: str
    ends_ns: Callable[[SimulatedJob], Times]
    samples_share: float = 1.0


class _LocalRunner(Runner):
    """A role whose groups of replicas meet in every so many iterations only."""

    every = 1

    def _collect(self, task: StreamTask) -> None:
        if task.operation.group in SYNCHRONISED and self._i % self.every != self.every - 1:
            task.last_arrival = task.end = task.start
            return
        super()._collect(task)


def _simulated(scenario: Scenario, roles: Roles, load: Load, every: int = 1) -> Times:
    iterations, operations, ranks = load.host_ns.shape
    events, meetings = no_events((iterations, operations, ranks), len(load.stalls)), Meetings(load)
    runners = [
        _LocalRunner(scenario.cluster, scenario.workload, role, load, scenario.coupling, events, meetings)
        for role in roles
    ]
    for i in range(iterations):
        for runner in runners:
            runner.every = every
            runner.begin(i)
        while not all(runner.is_done for runner in runners):
            assert any(runner.advance() for runner in runners)
        meetings.forget()
    return events.iteration_ends_ns()


def _scaled(actions: tuple[str, ...], factor: float) -> Callable[[SimulatedJob], Times]:
    def ends_ns(job: SimulatedJob) -> Times:
        load = deepcopy(job.load)
        for role in job.roles:
            for n, operation in enumerate(role.program):
                if operation.action in actions:
                    load.device_ns[:, n, list(role.ranks)] *= factor
        if "message" in actions:
            load.message_ns = {name: np.rint(factor * own) for name, own in load.message_ns.items()}
        load.device_ns[:] = np.rint(load.device_ns)
        return _simulated(job.scenario, job.roles, load)

    return ends_ns


def _without_faults(job: SimulatedJob) -> Times:
    return run(replace(job.scenario, faults=())).events.iteration_ends_ns()


def _local(every: int) -> Callable[[SimulatedJob], Times]:
    return lambda job: _simulated(job.scenario, job.roles, deepcopy(job.load), every)


def _taking(job: SimulatedJob, takes_ns: Callable[[ProgramOperation], float | None]) -> Times:
    """The job with collectives that take something else, noise as before."""
    load, cluster = deepcopy(job.load), job.scenario.cluster
    for role in job.roles:
        for n, operation in enumerate(role.program):
            other = takes_ns(operation) if operation.action == "collective" else None
            if other is not None:
                load.device_ns[:, n] *= other / _base_ns(cluster, operation)
    return _simulated(job.scenario, job.roles, load)


def _base_ns(cluster: Cluster, operation: ProgramOperation) -> float:
    group = next(one for one in cluster.groups() if one.kind == operation.group)
    return LINKS[group.path].collective_ns(operation.collective, operation.size_bytes, len(group.ranks))


def _in_two_levels(job: SimulatedJob) -> Times:
    """All-reduces over several hosts reduce within hosts, then between them, rail by rail."""
    cluster = job.scenario.cluster

    def takes_ns(operation: ProgramOperation) -> float | None:
        group = next(one for one in cluster.groups() if one.kind == operation.group)
        hosts = len({cluster.node_of(rank) for rank in group.ranks})
        each = len(group.ranks) // hosts
        if operation.collective != "all_reduce" or hosts == 1 or each == 1:
            return None
        size = operation.size_bytes
        return LINKS["node"].all_reduce_ns(size, each) + LINKS["rack"].all_reduce_ns(size / each, hosts)

    return _taking(job, takes_ns)


def _evenly_routed(job: SimulatedJob) -> Times:
    """Every expert gets as many tokens as the others of its layer."""
    load, (role,) = deepcopy(job.load), job.roles
    for layer, sent in list(load.tokens.items()):
        even = np.repeat(sent.mean(axis=2, keepdims=True), sent.shape[2], axis=2)
        reroute(load, role.program, layer, even)
    return _simulated(job.scenario, job.roles, load)


def _fewer_hosts(job: SimulatedJob) -> Times:
    """The job without its last host; collectives go through fewer ranks."""
    old = job.scenario.cluster
    new = replace(old, nodes=old.nodes - 1)
    load, kept = deepcopy(job.load), slice(0, new.ranks)
    for n, operation in enumerate(job.roles[0].program):
        if operation.action == "collective":
            is_group = any(one.kind == operation.group for one in new.groups())
            load.device_ns[:, n] *= _base_ns(new, operation) / _base_ns(old, operation) if is_group else 0.0
    for name in ("host_ns", "call_ns", "device_ns", "end_skew_ns"):
        setattr(load, name, getattr(load, name)[:, :, kept])
    load.stalls = [replace(stall, duration_ns=stall.duration_ns[:, kept]) for stall in load.stalls]
    # It still issues collectives in which it is alone now.
    roles = (Role(job.roles[0].program, tuple(range(new.ranks))),)
    return _simulated(replace(job.scenario, cluster=new), roles, load)


def _workload(rng: np.random.Generator, **changes: float | bool) -> Workload:
    layers = int(rng.integers(3, 6))
    drawn = Workload(
        layers=layers,
        forward_ns=float(rng.uniform(1e6, 4e6)),
        buckets=int(rng.choice([2, 3, layers])),
        gradient_bytes=int(np.exp(rng.uniform(np.log(4e7), np.log(1.2e9)))),
        reads_loss_every=int(rng.choice([1, 1, 4])),
    )
    return replace(drawn, **changes)  # type: ignore[arg-type]


def _data_parallel(rng: np.random.Generator) -> Scenario:
    nodes, devices = ((2, 2), (2, 4), (4, 2))[int(rng.integers(3))]
    return Scenario(cluster=Cluster(nodes, devices), workload=_workload(rng))


def _tensor_parallel(rng: np.random.Generator) -> Scenario:
    nodes, devices, tensor = ((2, 4, 2), (2, 4, 4), (4, 2, 2))[int(rng.integers(3))]
    workload = _workload(rng, activation_bytes=int(rng.uniform(8e6, 6e7)))
    return Scenario(cluster=Cluster(nodes, devices, tensor), workload=workload)


def _sharded(rng: np.random.Generator) -> Scenario:
    nodes, devices, shard = ((2, 2, 4), (2, 2, 2), (2, 4, 4))[int(rng.integers(3))]
    return Scenario(cluster=Cluster(nodes, devices, shard=shard), workload=_workload(rng))


def _pipeline(rng: np.random.Generator) -> Scenario:
    workload = _workload(rng, layers=4, reads_loss_every=1)
    return Scenario(cluster=Cluster(2, 2, pipeline_parallel=2), workload=workload)


def _experts(rng: np.random.Generator) -> Scenario:
    nodes, devices, experts = ((1, 4, 4), (1, 8, 4), (2, 4, 4))[int(rng.integers(3))]
    job = Scenario(cluster=Cluster(nodes, devices, expert_parallel=experts), workload=_workload(rng))
    if rng.random() < 0.5:
        return replace(job, experts=replace(job.experts, spread=float(rng.uniform(0.1, 0.5))))
    severity = float(rng.uniform(0.1, 0.5))
    return replace(job, faults=(Injection("hot_expert", place=int(rng.integers(experts)), severity=severity),))


def _slowed(rng: np.random.Generator) -> Scenario:
    scenario = _data_parallel(rng)
    place, severity = int(rng.integers(scenario.cluster.ranks)), float(rng.uniform(0.1, 0.5))
    return replace(scenario, faults=(Injection("compute_straggler", place=place, severity=severity),))


def _coupled(rng: np.random.Generator) -> Scenario:
    scenario = _slowed(rng)
    return replace(scenario, iterations=40, coupling=Coupling(eta_wait=float(rng.uniform(0.2, 0.6))))


_MAKERS: Mapping[str, Callable[[np.random.Generator], Scenario]] = {
    "data parallel": _data_parallel,
    "tensor and data parallel": _tensor_parallel,
    "sharded": _sharded,
    "pipeline": _pipeline,
    "experts": _experts,
    "a slow rank": _slowed,
    "a slow rank, waiting slows compute": _coupled,
}
FAMILIES = tuple(_MAKERS)


def runs(family: str, seed: int) -> list[EditedRun]:
    """A job of a family, with every edit that suits it."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    made = _MAKERS[family](rng)
    length = max(ITERATIONS, made.iterations) if made.coupling.eta_wait else ITERATIONS
    scenario = replace(made, name=f"{family} {seed}", seed=seed, iterations=length)
    cluster = scenario.cluster
    transfer, compute = float(rng.choice([0.25, 0.5, 2.0, 4.0])), float(rng.choice([0.3, 0.6, 1.5]))
    found = [
        (f"scale_transfer:factor={transfer:g}", _scaled(("collective", "message"), transfer), 1.0),
        (f"scale_compute:factor={compute:g}", _scaled(("compute",), compute), 1.0),
    ]
    if family == "experts":
        found.append(("even_experts", _evenly_routed, 1.0))
    elif scenario.faults:
        found.append((f"fix_rank:rank={scenario.faults[0].place}", _without_faults, 1.0))
    kinds = {group.kind for group in cluster.groups()}
    if kinds & set(SYNCHRONISED) and cluster.pipeline_parallel == 1:
        found.append(("local_sgd:every=3", _local(3), 1.0))
    if family in ("data parallel", "tensor and data parallel"):
        share = (cluster.nodes - 1) / cluster.nodes
        found.append((f"drop_host:host=node{cluster.nodes - 1}", _fewer_hosts, share))
        if cluster.devices > cluster.tensor_parallel:
            found.append(("hierarchical:within_speed=6.67", _in_two_levels, 1.0))
    return [EditedRun(family, scenario, edit, ends_ns, share) for edit, ends_ns, share in found]
