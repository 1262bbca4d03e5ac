"""Generated jobs at several scales. In: a kind of job and a seed. Out: what runs at each scale show, and the truth.

A point is worked out from the simulated times themselves, by arithmetic of its own; `test_forecasts` checks that
trace files of the same job give the same point. Not covered: racks that a trace does not name.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.forecast.order_statistics import slowest_of
from traceforge.forecast.scale_point import Lateness, ScalePoint, StepTerms
from traceforge.synth.cluster import LINKS, Cluster, Link
from traceforge.synth.fault import Injection
from traceforge.synth.load import Noise
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, SimulatedJob, run

Times = NDArray[np.float64]
Maker = Callable[[int, np.random.Generator], Scenario]

RECORDED = 10
TRUE_ITERATIONS = 80


@dataclass(frozen=True, slots=True)
class ScaledJob:
    """A job at several scales.

    Attributes:
        make: the scenario at a number of ranks.
        scales: numbers of ranks that are measured.
        targets: numbers of ranks that are asked for.
        fabric: link between hosts; None for the usual one.
        is_named: whether the traces name hosts.
    """

    family: str
    seed: int
    make: Callable[[int], Scenario]
    scales: tuple[int, ...]
    targets: tuple[int, ...]
    fabric: Link | None = None
    is_named: bool = True

    def points(self) -> list[ScalePoint]:
        """What the runs show."""
        with _fabric(self.fabric):
            return [point_of(run(self._at(ranks)), is_named=self.is_named) for ranks in self.scales]

    def truth(self, ranks: int) -> float:
        """Throughput at a number of ranks, of many iterations, in iterations a second times ranks."""
        with _fabric(self.fabric):
            ends = run(replace(self.make(ranks), iterations=TRUE_ITERATIONS)).events.iteration_ends_ns()
        return ranks * 1e9 / float(np.diff(ends).mean())

    def _at(self, ranks: int) -> Scenario:
        # Each run draws its own noise, as on a cluster.
        made = self.make(ranks)
        return replace(made, iterations=RECORDED, seed=1_000 * self.seed + ranks)


@contextmanager
def _fabric(link: Link | None) -> Iterator[None]:
    usual = LINKS["rack"]
    LINKS["rack"] = link or usual
    try:
        yield
    finally:
        LINKS["rack"] = usual


def point_of(job: SimulatedJob, *, is_named: bool = True) -> ScalePoint:
    """The point of a simulated run."""
    ends = job.events.iteration_ends_ns()
    steps = np.diff(ends)
    spans, exposed, hidden, waiting = _spent(job)
    own = spans - exposed - waiting
    cluster = job.scenario.cluster
    terms = StepTerms(*(float(x.mean()) / 1e9 for x in (own, exposed, hidden, waiting)))
    group_ranks, crossing = _groups(job)
    facts: dict[str, str | float] = {}
    if is_named:
        facts |= {"hosts": cluster.nodes, "spans_hosts": "yes" if crossing >= 0.5 else "no"}
    if group_ranks is not None:
        facts["group_ranks"] = group_ranks
    return ScalePoint(
        name=f"n{cluster.ranks}",
        ranks=cluster.ranks,
        throughput=cluster.ranks * 1e9 / float(steps.mean()),
        error=float(steps.std(ddof=1) / len(steps) ** 0.5 / steps.mean()),
        cv=float(steps.std(ddof=1) / steps.mean()),
        terms=terms,
        facts=facts,
        lateness=_lateness(own),
    )


def _groups(job: SimulatedJob) -> tuple[float | None, float]:
    """Of the groups that reduce, gather and scatter: their mean size, and the share that crosses hosts, by time."""
    cluster = job.scenario.cluster
    sizes, times, crossing = [], [], []
    for role in job.roles:
        for n, operation in enumerate(role.program):
            if operation.action == "collective" and operation.group:
                numbers = cluster.group_numbers(operation.group)
                members = np.flatnonzero(numbers == numbers[role.ranks[0]])
                sizes.append(len(members))
                crossing.append(cluster.path(members.tolist()) != "node")
                times.append(float(job.load.device_ns[:, n, role.ranks[0]].mean()))
    if not sum(times):
        return None, float(cluster.nodes > 1)
    return float(np.average(sizes, weights=times)), float(np.average(crossing, weights=times))


def _lateness(own: Times) -> Mapping[int, Lateness]:
    if own.shape[1] < 2:
        return {}
    found = {factor: slowest_of(own, factor * own.shape[1], np.random.default_rng(0)) for factor in (1, 2, 4)}
    return {factor: Lateness(one.mean / 1e9, one.low / 1e9, one.high / 1e9) for factor, one in found.items()}


def _spent(job: SimulatedJob) -> tuple[Times, Times, Times, Times]:
    """Span, exposed and hidden transfer, and exposed waiting by iteration and rank, ns, shape (I, R) each."""
    events = job.events
    iterations, _, ranks = events.device_start_ns.shape
    result = np.zeros((4, iterations, ranks))
    lasts = _last_arrivals(job)
    ends = np.maximum(events.step_end_ns, events.device_end_ns.max(axis=1))
    for rank in range(ranks):
        program = job.program_of(rank)
        meets = np.array([operation.action in ("collective", "message") for operation in program])
        works = np.array([operation.action not in ("collective", "message", "await") for operation in program])
        for i in range(iterations):
            start = events.device_start_ns[i, : len(program), rank]
            end = events.device_end_ns[i, : len(program), rank]
            last = np.clip(lasts[i, : len(program), rank], start, end)
            busy = end > start
            span = float(ends[i, rank] - events.step_start_ns[i, rank])
            result[:, i, rank] = (
                span,
                *_cover(
                    (start[works & busy], end[works & busy]),
                    (start[meets & busy], last[meets & busy], end[meets & busy]),
                ),
            )
    return result[0], result[1], result[2], result[3]


def _cover(work: tuple[Times, Times], meetings: tuple[Times, Times, Times]) -> tuple[float, float, float]:
    """Transfer that work does not hide, transfer that it hides, and waiting that it does not hide."""
    cuts = np.unique(np.concatenate([*work, *meetings]))
    if len(cuts) < 2:
        return 0.0, 0.0, 0.0
    middle, length = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)

    def within(low: Times, high: Times) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = ((low[:, None] <= middle) & (middle < high[:, None])).any(axis=0)
        return inside

    computes = within(*work)
    transfers, waits = within(meetings[1], meetings[2]), within(meetings[0], meetings[1])
    return (
        float(length[transfers & ~computes].sum()),
        float(length[transfers & computes].sum()),
        float(length[waits & ~transfers & ~computes].sum()),
    )


def _last_arrivals(job: SimulatedJob) -> Times:
    """When the last member of each communication was there; of messages, their end less what they take."""
    events, cluster = job.events, job.scenario.cluster
    last = events.device_start_ns.copy()
    for role in job.roles:
        ranks = np.array(role.ranks)
        for n, operation in enumerate(role.program):
            if operation.action == "collective" and operation.group:
                numbers = cluster.group_numbers(operation.group)
                for number in np.unique(numbers[ranks]):
                    own = ranks[numbers[ranks] == number]
                    last[:, n, own] = events.device_start_ns[:, n, own].max(axis=1, keepdims=True)
            elif operation.action == "message":
                sent = [job.load.message_ns[part.message] for part in operation.parts]
                last[:, n, ranks] = events.device_end_ns[:, n, ranks] - np.max(sent, axis=0)
    return last


def _data_parallel(per_host: int, rng: np.random.Generator) -> Callable[[int], Scenario]:
    workload = Workload(
        layers=int(rng.integers(2, 4)),
        forward_ns=float(rng.uniform(1.5e6, 6e6)),
        buckets=int(rng.integers(1, 3)),
        gradient_bytes=int(rng.uniform(0.5e8, 4e8)),
    )
    seed = int(rng.integers(2**30))

    def make(ranks: int) -> Scenario:
        devices = min(per_host, ranks)
        return Scenario(f"n{ranks}", seed + ranks, cluster=Cluster(ranks // devices, devices), workload=workload)

    return make


def _healthy_across(seed: int, rng: np.random.Generator) -> ScaledJob:
    per_host = int(rng.choice([1, 2, 4]))
    return ScaledJob("healthy, all across hosts", seed, _data_parallel(per_host, rng), _from(2 * per_host), (64, 128))


def _from(first: int) -> tuple[int, ...]:
    return tuple(n for n in (2, 4, 8, 16, 32) if n >= first)


def _both_regimes(seed: int, rng: np.random.Generator) -> ScaledJob:
    return ScaledJob("healthy, inside and across hosts", seed, _data_parallel(8, rng), (4, 8, 16, 32), (64, 128))


def _unnamed(seed: int, rng: np.random.Generator) -> ScaledJob:
    job = _both_regimes(seed, rng)
    return replace(job, family="the same, hosts not named", is_named=False)


def _slow_links(seed: int, rng: np.random.Generator) -> ScaledJob:
    link = Link(float(rng.uniform(6_000, 20_000)), float(rng.uniform(4, 15)))
    is_named = bool(seed % 2)
    family = f"slow links between hosts, {'named' if is_named else 'not named'}"
    return replace(_both_regimes(seed, rng), family=family, fabric=link, is_named=is_named)


def _one_host(seed: int, rng: np.random.Generator) -> ScaledJob:
    """All runs within one host; the job asked for is across hosts."""
    return ScaledJob("never across hosts", seed, _data_parallel(8, rng), (2, 4, 8), (16, 32))


def _jitter(seed: int, rng: np.random.Generator) -> ScaledJob:
    noise = Noise(kernel=float(rng.uniform(0.03, 0.1)), iteration=float(rng.uniform(0.01, 0.05)))
    job = _healthy_across(seed, rng)
    return replace(job, family="jitter of all ranks", make=lambda n: replace(job.make(n), noise=noise))


def _pauses(seed: int, rng: np.random.Generator) -> ScaledJob:
    fault = Injection("random_jitter", severity=float(rng.uniform(0.05, 0.3)))
    job = _healthy_across(seed, rng)
    return replace(job, family="one rank or another pauses", make=lambda n: replace(job.make(n), faults=(fault,)))


def _straggler(seed: int, rng: np.random.Generator) -> ScaledJob:
    """A slow rank that exists only from some scale on."""
    first = int(rng.choice([16, 32]))
    severity = float(rng.uniform(0.08, 0.3))
    job = _healthy_across(seed, rng)

    def make(ranks: int) -> Scenario:
        made = job.make(ranks)
        faults = (Injection("compute_straggler", place=first - 1, severity=severity),) if ranks >= first else ()
        return replace(made, faults=faults)

    return replace(job, family="straggler from 16 or 32 ranks on", make=make)


def _hierarchical(seed: int, rng: np.random.Generator) -> ScaledJob:
    """Shards within a host, replicas across: what crosses is divided by the devices of a host."""
    job = _data_parallel(4, rng)

    def make(ranks: int) -> Scenario:
        made = job(ranks)
        return replace(made, cluster=replace(made.cluster, shard=4))

    return ScaledJob("hierarchical (shards in a host)", seed, make, (8, 16, 32), (64, 128))


def _sharded(seed: int, rng: np.random.Generator) -> ScaledJob:
    per_host = int(rng.choice([1, 2, 4]))
    job = _data_parallel(per_host, rng)

    def make(ranks: int) -> Scenario:
        made = job(ranks)
        return replace(made, cluster=replace(made.cluster, shard=ranks))

    return ScaledJob("sharded over all ranks", seed, make, _from(2 * per_host), (64, 128))


def _pipeline(seed: int, rng: np.random.Generator) -> ScaledJob:
    job = _data_parallel(2, rng)
    microbatches = int(rng.choice([2, 4]))

    def make(ranks: int) -> Scenario:
        made = job(ranks)
        cluster = replace(made.cluster, pipeline_parallel=2)
        made = replace(made, workload=replace(made.workload, layers=2))
        return replace(made, cluster=cluster, pipeline=Pipeline(microbatches=microbatches))

    return ScaledJob("pipeline of two stages", seed, make, (4, 8, 16, 32), (64, 128))


FAMILIES: Mapping[str, Callable[[int, np.random.Generator], ScaledJob]] = {
    "across": _healthy_across, "regimes": _both_regimes, "unnamed": _unnamed, "slow_links": _slow_links,
    "one_host": _one_host, "jitter": _jitter, "pauses": _pauses, "straggler": _straggler,
    "hierarchical": _hierarchical, "sharded": _sharded, "pipeline": _pipeline,
}  # fmt: skip
"""What is generated, by name."""


def jobs(family: str, seeds: range) -> Iterator[ScaledJob]:
    """The jobs of a family."""
    for seed in seeds:
        yield FAMILIES[family](seed, np.random.default_rng([seed, list(FAMILIES).index(family)]))
