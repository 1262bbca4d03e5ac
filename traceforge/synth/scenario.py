"""A whole job. In: a scenario, as an object or as TOML. Out: its simulation, and what each fault costs.

What a fault costs is found by simulating again with the same draws: without it (removed alone), and with it and
nothing else (added alone). Where faults hide one another the two differ. A trouble, which is one fault or several, is
costed the same way as a whole.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import UsageError
from traceforge.synth.clocks import ClockErrors, Clocks, draw_clocks
from traceforge.synth.cluster import Cluster
from traceforge.synth.events import SimulatedEvents
from traceforge.synth.experts import Experts, route
from traceforge.synth.fault import Injection, Site, faults
from traceforge.synth.load import Load, Noise, healthy_load
from traceforge.synth.nccl_grammar import NcclLogs
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Program, Role, Roles, Workload
from traceforge.synth.programs.expert_parallel import expert_program
from traceforge.synth.programs.pipelined import pipelined_roles
from traceforge.synth.programs.replicated import replicated_program
from traceforge.synth.programs.sharded import sharded_program
from traceforge.synth.simulate import simulate
from traceforge.synth.target import places_of
from traceforge.synth.task import Coupling
from traceforge.synth.telemetry_settings import Telemetry
from traceforge.synth.trouble import Trouble, troubles_of

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that makes a run; the same scenario always makes the same files.

    Attributes:
        first_step: number of the first recorded iteration.
        execution_traces: whether execution traces are written beside the timelines.
    """

    name: str = "healthy"
    seed: int = 0
    iterations: int = 20
    first_step: int = 5
    execution_traces: bool = False
    cluster: Cluster = field(default_factory=Cluster)
    workload: Workload = field(default_factory=Workload)
    noise: Noise = field(default_factory=Noise)
    clocks: ClockErrors = field(default_factory=ClockErrors)
    coupling: Coupling = field(default_factory=Coupling)
    nccl: NcclLogs = field(default_factory=NcclLogs)
    pipeline: Pipeline = field(default_factory=Pipeline)
    experts: Experts = field(default_factory=Experts)
    telemetry: Telemetry = field(default_factory=Telemetry)
    faults: tuple[Injection, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulatedJob:
    """A scenario that has been run.

    Attributes:
        load: what everything took, faults included.
        events: when everything happened, true time.
        functions: most record functions that an operation has.
    """

    scenario: Scenario
    roles: Roles
    load: Load
    events: SimulatedEvents
    clocks: Clocks
    functions: int

    def program_of(self, rank: int) -> Program:
        """What a rank runs in an iteration."""
        return next(role.program for role in self.roles if rank in role.ranks)


@dataclass(frozen=True, slots=True)
class FaultCost:
    """What faults cost, ns by iteration, shape (I,).

    Attributes:
        duration_ns: iterations as they were.
        healthy_ns: iterations without any fault.
        removed_ns: by fault, time saved were it alone not there.
        added_ns: by fault, time lost were it the only one.
        troubles: what a right answer names.
        trouble_removed_ns: by trouble, time saved were all of it not there.
        trouble_added_ns: by trouble, time lost were nothing else there.
    """

    duration_ns: Times
    healthy_ns: Times
    removed_ns: list[Times]
    added_ns: list[Times]
    troubles: list[Trouble]
    trouble_removed_ns: list[Times]
    trouble_added_ns: list[Times]


def run(scenario: Scenario) -> SimulatedJob:
    """Simulate a scenario.

    Raises:
        UsageError: a fault is not known, or strikes what the cluster does not have.
    """
    roles = roles_of(scenario)
    load = _load(scenario, roles)
    events = simulate(scenario.cluster, scenario.workload, roles, load, scenario.coupling)
    rng = np.random.default_rng([scenario.seed, 1])
    clocks = draw_clocks(scenario.cluster, scenario.clocks, rng, float(events.iteration_ends_ns()[-1]))
    functions = max(2, *(2 * len(operation.parts) for role in roles for operation in role.program))
    return SimulatedJob(scenario, roles, load, events, clocks, functions)


def cost_of(scenario: Scenario) -> FaultCost:
    """What each fault costs, and each trouble."""
    everything = tuple(range(len(scenario.faults)))
    known: dict[tuple[int, ...], Times] = {}

    def lasts(kept: tuple[int, ...]) -> Times:
        if kept not in known:
            known[kept] = _durations(scenario, kept)
        return known[kept]

    def removed(numbers: tuple[int, ...]) -> Times:
        return lasts(everything) - lasts(tuple(one for one in everything if one not in numbers))

    def added(numbers: tuple[int, ...]) -> Times:
        return lasts(numbers) - lasts(())

    troubles = troubles_of(scenario.cluster, scenario.faults)
    return FaultCost(
        lasts(everything),
        lasts(()),
        [removed((number,)) for number in everything],
        [added((number,)) for number in everything],
        troubles,
        [removed(one.numbers) for one in troubles],
        [added(one.numbers) for one in troubles],
    )


def _durations(scenario: Scenario, kept: Sequence[int]) -> Times:
    roles = roles_of(scenario)
    load = _load(scenario, roles, kept)
    events = simulate(scenario.cluster, scenario.workload, roles, load, scenario.coupling)
    return np.diff(events.iteration_ends_ns(), prepend=0.0)


def roles_of(scenario: Scenario) -> Roles:
    """The programs of a scenario's ranks.

    Raises:
        UsageError: its parts do not go together.
    """
    cluster = scenario.cluster
    if cluster.pipeline_parallel > 1:
        return pipelined_roles(cluster, scenario.workload, scenario.pipeline)
    return (Role(_common_program(scenario), tuple(range(cluster.ranks))),)


def _common_program(scenario: Scenario) -> Program:
    """What all ranks run, where they run the same."""
    cluster, workload = scenario.cluster, scenario.workload
    kinds = {group.kind for group in cluster.groups()}
    if cluster.shard > 1:
        return sharded_program(workload, cluster.shard, is_replicated="replicate" in kinds)
    if cluster.expert_parallel > 1:
        return expert_program(workload, scenario.experts, cluster)
    return replicated_program(
        workload, is_tensor_parallel="tensor_parallel" in kinds, is_data_parallel="data_parallel" in kinds
    )


def _load(scenario: Scenario, roles: Roles, kept: Sequence[int] | None = None) -> Load:
    """The load with some of the faults (by default all); a fault draws the same numbers whoever else is there."""
    rng = np.random.default_rng([scenario.seed, 0])
    load = healthy_load(scenario.cluster, roles, scenario.iterations, scenario.noise, rng)
    if scenario.cluster.expert_parallel > 1:
        route(load, scenario.cluster, roles[0].program, scenario.experts, rng)
    if not scenario.faults or kept == ():
        return load
    events = simulate(scenario.cluster, scenario.workload, roles, load, scenario.coupling)
    typical_ns = float(np.median(np.diff(events.iteration_ends_ns(), prepend=0.0)))
    for number, injection in enumerate(scenario.faults):
        _check(injection, scenario.cluster)
        if kept is None or number in kept:
            for role in roles:
                site = Site(
                    scenario.cluster,
                    role,
                    injection.iterations(scenario.iterations),
                    injection.place,
                    injection.severity * typical_ns,
                    np.random.default_rng([scenario.seed, 2, number]),
                )
                if site.is_struck(faults()[injection.fault].target):
                    faults()[injection.fault].apply(load, site)
    return load


def _check(injection: Injection, cluster: Cluster) -> None:
    if injection.fault not in faults():
        known = ", ".join(faults())
        raise UsageError(f"there is no fault `{injection.fault}`", hint=f"choose one of: {known}")
    count = places_of(cluster, faults()[injection.fault].target)
    if not 0 <= injection.place < count:
        raise UsageError(f"the cluster has no {faults()[injection.fault].target} {injection.place}")


def scenario_of(text: str, where: str) -> Scenario:
    """A scenario written as TOML: one table a part, `[[faults]]` for each fault.

    Raises:
        UsageError: not TOML, or it names something that does not exist.
    """
    try:
        scenario: Scenario = _filled(Scenario, tomllib.loads(text), where)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"no TOML: {error}", where=where) from error
    return scenario


_PARTS = {
    "cluster": Cluster,
    "workload": Workload,
    "noise": Noise,
    "clocks": ClockErrors,
    "coupling": Coupling,
    "nccl": NcclLogs,
    "pipeline": Pipeline,
    "experts": Experts,
    "telemetry": Telemetry,
}


def _filled(kind: Any, table: dict[str, Any], where: str) -> Any:
    known = {one.name: one for one in fields(kind)}
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            raise UsageError(f"unknown key `{name}`", where=where, hint=f"known are: {', '.join(known)}")
        if kind is Scenario and name in _PARTS and isinstance(value, dict):
            values[name] = _filled(_PARTS[name], value, f"{where}, [{name}]")
        elif kind is Scenario and name == "faults" and isinstance(value, list):
            values[name] = tuple(_filled(Injection, one, f"{where}, [[faults]]") for one in value)
        elif isinstance(value, str | int | float | bool):
            values[name] = value
        elif (
            isinstance(value, list)
            and all(isinstance(item, int) for item in value)
            and "tuple" in str(known[name].type)
        ):
            values[name] = tuple(value)
        else:
            raise UsageError(f"`{name}` is of the wrong type", where=where)
    return kind(**values)


def table_of(part: Any) -> dict[str, Any]:
    """A scenario, or a part of it, as plain values."""
    result = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if is_dataclass(value):
            value = table_of(value)
        elif isinstance(value, tuple):
            value = [table_of(item) if is_dataclass(item) else item for item in value]
        result[one.name] = value
    return result
