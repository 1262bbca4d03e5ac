"""What a fault is. In: nothing. Out: the type that every file of `faults/` exposes as `FAULT`, and their list.

A fault changes a load: what hosts and devices have to do. What follows from it is left to the simulation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from traceforge.errors import PluginError, UsageError
from traceforge.registry import discover
from traceforge.synth.cluster import Cluster, Group
from traceforge.synth.load import Load, Stall
from traceforge.synth.program import Program, Role
from traceforge.synth.target import Target, ranks_struck
from traceforge.synth.wiring import Wiring

Link = tuple[int, ...]
SubjectKind = Literal["rank", "ranks", "host", "stage", "communicator", "link", "job"]

_SUBJECT_OF: dict[Target, SubjectKind] = {
    "rank": "rank", "node": "host", "stage": "stage", "link": "link", "hosts": "link", "expert": "ranks", "job": "job"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault of a scenario.

    Attributes:
        fault: name of the fault.
        place: number of the rank, node, or whatever else the fault says that it strikes; 0 where that is the job.
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
    """Where and when a fault strikes the ranks of one role; what it asks of other ranks is left to their own site.

    Attributes:
        role: the ranks, and what they run.
        iterations: affected iterations.
        place: rank or node.
        extra_ns: time to be lost in an affected iteration.
        rng: the fault's own random numbers.
    """

    cluster: Cluster
    role: Role
    iterations: NDArray[np.int64]
    place: int
    extra_ns: float
    rng: np.random.Generator

    @property
    def program(self) -> Program:
        """What the ranks run."""
        return self.role.program

    def is_struck(self, target: Target) -> bool:
        """Whether a fault strikes any of the ranks."""
        return bool(self.own(ranks_struck(self.cluster, target, self.place)))

    def own(self, ranks: Sequence[int]) -> list[int]:
        """Those of some ranks that have this role."""
        return [rank for rank in ranks if rank in self.role.ranks]

    def operations(self, *actions: str) -> list[int]:
        """Numbers of the operations of some actions."""
        return [n for n, operation in enumerate(self.program) if operation.action in actions]

    def before_first_meeting(self, *actions: str) -> list[int]:
        """The same, before the ranks first communicate; where none stands there, the copy of the batch."""
        meetings = self.operations("collective", "message")
        places = self.operations(*actions)
        return [place for place in places if not meetings or place < meetings[0]] or self.operations("copy")

    def block(self, operations: Sequence[int], ranks: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
        """Index of a load's array: affected iterations x operations x ranks."""
        return np.ix_(self.iterations, np.array(operations, dtype=np.int64), np.array(ranks, dtype=np.int64))

    @property
    def host_ranks(self) -> list[int]:
        """Ranks of the node that a fault of a node strikes."""
        return self.cluster.ranks_of(self.place)

    def slow_down(self, load: Load, ranks: list[int], factors: NDArray[np.float64]) -> None:
        """Stretch the compute of ranks by factors, shape (affected iterations, ranks)."""
        own = self.own(ranks)
        block = self.block(self.operations("compute"), own)
        factors = factors[:, [ranks.index(rank) for rank in own]]
        load.device_ns[block] = np.rint(load.device_ns[block] * factors[:, None, :])

    def lower_clock(self, load: Load, factors: NDArray[np.float64], held_by: int) -> None:
        """Stretch the compute of the rank by factors, shape (affected iterations,), as its device's clock falls.

        Args:
            held_by: NVML's bit of the reason.
        """
        self.slow_down(load, [self.place], factors[:, None])
        load.clock_share[self.iterations, self.place] = 1 / factors
        load.held_by[self.iterations, self.place] = np.where(factors > 1, held_by, 0)

    def compute_ns(self, load: Load) -> float:
        """Typical device time of a rank's compute in an iteration."""
        block = np.ix_(range(len(load.device_ns)), self.operations("compute"), self.role.ranks)
        return float(np.median(load.device_ns[block].sum(axis=1)))

    def stretch_transfers(self, load: Load, groups: list[Group], factors: NDArray[np.float64]) -> None:
        """Stretch the transfers of groups by factors, shape (affected iterations,)."""
        for group in groups:
            own = [n for n in self.operations("collective") if self.program[n].group == group.kind]
            block = self.block(own, self.own(group.ranks))
            load.device_ns[block] = np.rint(load.device_ns[block] * factors[:, None, None])
            if group.kind == "pipeline_parallel":
                self.stretch_messages(load, self._links(group), factors)

    def stretch_messages(self, load: Load, links: Sequence[Link], factors: NDArray[np.float64]) -> None:
        """Stretch the messages of links, each of which is a pair of sender and receiver."""
        for name, pairs in self._sent(links).items():
            block = np.ix_(self.iterations, np.array(pairs))
            load.message_ns[name][block] = np.rint(load.message_ns[name][block] * factors[:, None])

    def sent_ns(self, load: Load, links: Sequence[Link]) -> float:
        """What the messages of the first of some links take in an iteration."""
        return sum(float(np.median(load.message_ns[name][:, pairs[0]])) for name, pairs in self._sent(links).items())

    def _sent(self, links: Sequence[Link]) -> dict[str, list[int]]:
        """Names of the messages of links, with the numbers of the pairs among the ranks of the role."""
        peers = self.cluster.ranks_of_stage
        found: dict[str, list[int]] = {}
        for part in (part for operation in self.program for part in operation.parts if part.sends):
            pairs = zip(self.role.ranks, peers(part.peer), strict=True)
            own = [number for number, pair in enumerate(pairs) if pair in links]
            if own:
                found[part.message] = own
        return found

    def _links(self, group: Group) -> list[Link]:
        """Links between ranks of a group that take its path."""
        pairs = permutations(group.ranks, 2)
        return [pair for pair in pairs if self.cluster.path(pair) == group.path]

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
        own = list(self.role.ranks)
        duration[np.ix_(self.iterations, np.array(own))] = np.rint(extra_ns[:, own])
        load.stalls.append(Stall(operation, duration, name, category, drains_device))

    def factor_of(self, load: Load, groups: list[Group]) -> float:
        """By how much transfers of groups must grow for the extra time to be lost in them."""
        own = [group for group in groups if self.own(group.ranks)]
        if groups and not own:
            return 1.0
        spent = [
            float(np.median(load.device_ns[:, n, self.own(group.ranks)[0]]))
            for group in own[:1]
            for n in self.operations("collective")
            if self.program[n].group == group.kind
        ]
        spent += [self.sent_ns(load, self._links(group)) for group in own if group.kind == "pipeline_parallel"][:1]
        if not sum(spent):
            raise UsageError("no collective runs where the fault would strike", hint="choose another place or cluster")
        return 1 + self.extra_ns / sum(spent)


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of trouble.

    Attributes:
        name: the word used in scenarios.
        mode: the failure mode of which it is an example.
        target: what it strikes.
        description: what happens, in one sentence.
        apply: changes the load.
        groups: communicators whose transfers it slows; empty for others.
        wire: changes what NCCL finds of the machines, where the fault lasts for the whole run.
        cause: what refines the mode, as far as a timeline shows it.
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
    cause: str | None = None

    @property
    def subject_kind(self) -> SubjectKind:
        """What a right answer names: a rank, a host, a stage, a communicator, a link, or the job."""
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
