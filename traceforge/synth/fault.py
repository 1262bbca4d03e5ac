"""What a fault is. In: nothing. Out: the type that every file of `faults/` exposes as `FAULT`, and their list.

A fault changes a load: what hosts and devices have to do. What follows from it is left to the simulation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import PluginError, UsageError
from traceforge.registry import discover
from traceforge.synth.cluster import Cluster, Group
from traceforge.synth.load import Load, Stall
from traceforge.synth.program import Program
from traceforge.synth.wiring import Wiring

Target = Literal["rank", "node", "job"]
SubjectKind = Literal["rank", "ranks", "host", "communicator", "job"]

_SUBJECT_OF: dict[Target, SubjectKind] = {"rank": "rank", "node": "host", "job": "job"}


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault of a scenario.

    Attributes:
        fault: name of the fault.
        place: rank or node that it strikes, as the fault says; 0 where it strikes the job.
        severity: time it takes from an affected iteration, before anything hides it, over an undisturbed iteration's
            duration (about: what it costs the job is worked out by the simulation).
        first: first affected iteration.
        last: last one; None for the last of the run.
        every: affected are each `every`-th of these.
        trouble: injections that share this word are one trouble, reported and costed together; None: one of its own.
    """

    fault: str
    place: int = 0
    severity: float = 0.2
    first: int = 0
    last: int | None = None
    every: int = 1
    trouble: str | None = None

    def iterations(self, count: int) -> NDArray[np.int64]:
        """Affected iterations of a run of `count`."""
        last = count - 1 if self.last is None else min(self.last, count - 1)
        return np.arange(self.first, last + 1, self.every)


@dataclass(frozen=True, slots=True)
class Site:
    """Where and when a fault strikes.

    Attributes:
        iterations: affected iterations.
        place: rank or node.
        extra_ns: time to be lost in an affected iteration.
        rng: the fault's own random numbers.
    """

    cluster: Cluster
    program: Program
    iterations: NDArray[np.int64]
    place: int
    extra_ns: float
    rng: np.random.Generator

    def operations(self, *actions: str) -> list[int]:
        """Numbers of the operations of some actions."""
        return [n for n, operation in enumerate(self.program) if operation.action in actions]

    def block(self, operations: Sequence[int], ranks: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
        """Index of a load's array: affected iterations x operations x ranks."""
        return np.ix_(self.iterations, np.array(operations, dtype=np.int64), np.array(ranks, dtype=np.int64))

    @property
    def host_ranks(self) -> list[int]:
        """Ranks of the node that a fault of a node strikes."""
        return self.cluster.ranks_of(self.place)

    def slow_down(self, load: Load, ranks: list[int], factors: NDArray[np.float64]) -> None:
        """Stretch the compute of ranks by factors, shape (affected iterations, ranks)."""
        block = self.block(self.operations("compute"), ranks)
        load.device_ns[block] = np.rint(load.device_ns[block] * factors[:, None, :])

    def compute_ns(self, load: Load) -> float:
        """Typical device time of a rank's compute in an iteration."""
        return float(np.median(load.device_ns[:, self.operations("compute")].sum(axis=1)))

    def stretch_transfers(self, load: Load, groups: list[Group], factors: NDArray[np.float64]) -> None:
        """Stretch the transfers of groups by factors, shape (affected iterations,)."""
        for group in groups:
            own = [n for n in self.operations("collective") if self.program[n].group == group.kind]
            block = self.block(own, group.ranks)
            load.device_ns[block] = np.rint(load.device_ns[block] * factors[:, None, None])

    def slow_transfers(self, load: Load, groups: list[Group]) -> None:
        """Stretch the transfers of groups so that the extra time is lost in them, alike in all affected iterations."""
        self.stretch_transfers(load, groups, np.full(len(self.iterations), self.factor_of(load, groups)))

    def stall(
        self, load: Load, operation: int, extra_ns: float, *, name: str = "", category: str = "user_annotation",
        drains_device: bool = False,
    ) -> None:  # fmt: skip
        """Have the host of the rank stand still before an operation; see `Stall`."""
        alone = np.zeros((len(self.iterations), self.cluster.ranks))
        alone[:, self.place] = extra_ns
        self.stall_ranks(load, operation, alone, name=name, category=category, drains_device=drains_device)

    def stall_ranks(
        self, load: Load, operation: int, extra_ns: NDArray[np.float64], *, name: str = "",
        category: str = "user_annotation", drains_device: bool = False,
    ) -> None:  # fmt: skip
        """Have hosts stand still before an operation, each for its own time, shape (affected iterations, R)."""
        duration = np.zeros((len(load.host_ns), self.cluster.ranks))
        duration[self.iterations] = np.rint(extra_ns)
        load.stalls.append(Stall(operation, duration, name, category, drains_device))

    def factor_of(self, load: Load, groups: list[Group]) -> float:
        """By how much transfers of groups must grow for the extra time to be lost in them."""
        spent = [
            float(np.median(load.device_ns[:, n, group.ranks[0]]))
            for group in groups[:1]
            for n in self.operations("collective")
            if self.program[n].group == group.kind
        ]
        if not sum(spent):
            raise UsageError("no collective runs where the fault would strike", hint="choose another place or cluster")
        return 1 + self.extra_ns / sum(spent)


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of trouble.

    Attributes:
        name: the word used in scenarios.
        mode: the failure mode of which it is an example.
        target: a rank, a node, or the job as a whole.
        description: what happens, in one sentence.
        apply: changes the load.
        groups: communicators whose transfers it slows; empty for others.
        wire: changes what NCCL finds of the machines, where the fault lasts for the whole run.
        shows_as: kind of subject that traces can show; None where it is the target itself.
    """

    name: str
    mode: str
    target: Target
    description: str
    apply: Callable[[Load, Site], None]
    groups: Callable[[Cluster, int], list[Group]] = lambda _cluster, _place: []
    wire: Callable[[Wiring, int], None] = lambda _wiring, _place: None
    shows_as: SubjectKind | None = None

    @property
    def subject_kind(self) -> SubjectKind:
        """What a right answer names: a rank, a host, a communicator, or the job."""
        return self.shows_as or _SUBJECT_OF[self.target]


@cache
def faults() -> Mapping[str, Fault]:
    """All faults by name.

    Raises:
        PluginError: a file of `faults/` exposes something else.
    """
    found: dict[str, Fault] = {}
    for module, plugin in discover("traceforge.synth.faults", "FAULT").items():
        if not isinstance(plugin, Fault):
            raise PluginError("FAULT is not a Fault", where=f"traceforge.synth.faults.{module}")
        found[plugin.name] = plugin
    return found


def wiring_of(cluster: Cluster, injections: Sequence[Injection], iterations: int) -> Wiring:
    """What NCCL finds at the start of a job; faults that come or go later do not show in it."""
    wiring = Wiring(cluster)
    for injection in injections:
        if len(injection.iterations(iterations)) == iterations:
            faults()[injection.fault].wire(wiring, injection.place)
    return wiring


def crossing_nodes(cluster: Cluster) -> list[Group]:
    """Communicators that use the network."""
    return [group for group in cluster.groups() if group.path != "node"]
