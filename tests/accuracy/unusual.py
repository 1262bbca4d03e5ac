"""The family of troubles that the others do not think of. In: the first seed. Out: cases.

Two hosts with unlike faults, a fault that goes from rank to rank of a host, a rank that stalls twice, everyone slow for
a stretch, very few iterations, a network and a rank at once, full memory under shards, a stage slow in backward alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from tests.accuracy.case import Case, Family
from tests.accuracy.conditions import CLOCKS, CLUSTERS
from traceforge.synth.clocks import ClockErrors
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario

_GROUP = "unusual"
_SHARDED = Workload(layers=6, gradient_bytes=600_000_000)
_STAGED = replace(Scenario(), cluster=Cluster(2, 4, pipeline_parallel=4), workload=Workload(8))


@dataclass(frozen=True, slots=True)
class _Job:
    """A job with its faults; `like` gives what else it is."""

    faults: tuple[Injection, ...]
    like: Scenario


def _plain(ranks: int, *faults: Injection, iterations: int = 20) -> _Job:
    return _Job(faults, Scenario(cluster=CLUSTERS[ranks], iterations=iterations))


def _in_turn(fault: str, severity: float) -> tuple[Injection, ...]:
    return tuple(Injection(fault, 4 + n, severity, first=n, every=4, trouble="host") for n in range(4))


def _on_both_hosts(first: int, last: int | None, severity: float) -> tuple[Injection, ...]:
    return tuple(Injection("host_slow_compute", host, severity, first, last, trouble="all") for host in range(2))


def _staged(schedule: str, *faults: Injection) -> _Job:
    return _Job(faults, replace(_STAGED, pipeline=Pipeline(schedule)))


_JOBS: Mapping[str, _Job] = {
    "two-hosts": _plain(16, Injection("host_slow_compute", 0, 0.12), Injection("host_input_stall", 2, 0.2)),
    "wanders-in-a-host": _plain(16, *_in_turn("compute_straggler", 0.25)),
    "wanders-in-a-host-input": _plain(16, *_in_turn("input_stall", 0.3)),
    "two-stalls": _plain(
        8,
        Injection("input_stall", 3, 2.0, first=5, last=5, trouble="twice"),
        Injection("input_stall", 3, 1.2, first=14, last=14, trouble="twice"),
    ),
    "all-for-a-stretch": _plain(8, *_on_both_hosts(7, 12, 0.3)),
    "all-since": _plain(8, *_on_both_hosts(12, None, 0.2)),
    "three-ranks": _plain(16, *(Injection("compute_straggler", rank, 0.2, trouble="three") for rank in (1, 6, 11))),
    "last-three": _plain(8, Injection("compute_straggler", 3, 0.4, first=17)),
    "two-of-a-host": _plain(8, Injection("gc_pause", 5, 0.3, 1, every=3), Injection("compute_straggler", 6, 0.2)),
    "network-and-rank": _plain(8, Injection("fabric_episode", 0, 0.5, 5, 10), Injection("compute_straggler", 6, 0.2)),
    "everyone-and-rank": _plain(8, Injection("job_checkpoint", 0, 1.0, 3, every=6), Injection("input_stall", 2, 0.15)),
    "one-host": _Job((Injection("compute_straggler", 3, 0.15),), Scenario(cluster=Cluster(1, 8))),
    "drifting": _Job(
        (Injection("thermal_drift", 5, 0.3),),
        Scenario(cluster=CLUSTERS[8], clocks=ClockErrors(2_000_000_000, 60_000, 100_000)),
    ),
    "shards-full-memory": _Job(
        (Injection("allocator_stall", 6, 0.4, first=2, every=3),),
        Scenario(cluster=Cluster(2, 4, shard=4), workload=_SHARDED),
    ),
    "experts-full-memory": _Job(
        (Injection("allocator_stall", 2, 0.3, first=1, every=2),), Scenario(cluster=Cluster(2, 4, expert_parallel=4))
    ),
    "slow-backward": _staged("1f1b", Injection("stage_slow_backward", 2, 0.25, first=8)),
    "slow-backward-split": _staged("zero_bubble", Injection("stage_slow_backward", 1, 0.25, first=8)),
    "stage-and-input": _staged(
        "1f1b", Injection("stage_slow_compute", 2, 0.25, first=8), Injection("input_stall", 0, 0.4, first=1, every=3)
    ),
}
_FEW: Mapping[str, Injection | None] = {
    "slow": Injection("compute_straggler", 5, 0.2),
    "input": Injection("input_stall", 2, 0.25),
    "host": Injection("host_slow_compute", 1, 0.15),
    "healthy": None,
}


def _unusual(first: int) -> Iterator[Case]:
    for number, (name, job) in enumerate(_JOBS.items()):
        yield _case(name, first + number, job)
    for number, (iterations, (kind, fault)) in enumerate(product((2, 3, 4), _FEW.items())):
        few = _plain(8, *([fault] if fault else []), iterations=iterations)
        yield _case(f"few{iterations}-{kind}", first + 40 + number, few)


def _case(name: str, seed: int, job: _Job) -> Case:
    clocks = job.like.clocks if job.like.clocks != ClockErrors() else list(CLOCKS.values())[seed % 3]
    return Case(
        _GROUP, replace(job.like, name=f"unusual-{name}-{seed}", seed=3200 + seed, clocks=clocks, faults=job.faults)
    )


FAMILIES = {_GROUP: Family("What happens in a hall of machines is more than anybody drew up a list of.", _unusual)}
