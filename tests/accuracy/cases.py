"""The oldest families of the grid. In: seeds. Out: cases, each a scenario and what of its traces is there.

Each family asks one question: is a single fault found, are two, is a healthy run left alone, also where its
noise is not what anybody assumed, does it still work when ranks are missing or clocks are far off, on two ranks, over
many iterations, with groups in two dimensions, and is nobody accused when the culprit's own trace is missing.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, product

from tests.accuracy.case import Case, Family
from tests.accuracy.conditions import CLOCKS, CLUSTERS, COUPLINGS, GROUPED, NOISES, WORKLOADS, injection
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import faults
from traceforge.synth.scenario import Scenario

_NEEDS_GROUPS = ("far_nic", "p2p_lost")
# Those that strike one rank, one path or the whole job by chance; sets of ranks and of iterations have families.
_SINGLE = (
    "allocator_stall", "background_contention", "checkpoint_pause", "compute_straggler", "fabric_episode", "far_nic",
    "gc_pause", "input_stall", "launch_stall", "load_imbalance", "oversubscribed_uplink", "p2p_lost", "random_jitter",
    "slow_nic", "thermal_drift",
)  # fmt: skip


def single(seeds: range, sizes: tuple[int, ...]) -> Iterator[Case]:
    """Every fault alone, at several scales."""
    for size, seed, fault in product(sizes, seeds, _SINGLE):
        cluster = _cluster(fault, size)
        severity = (0.15, 0.25, 0.4)[(seed + size) % 3]
        clocks = list(CLOCKS.values())[seed % 3]
        workload = list(WORKLOADS.values())[(seed + size // 8) % 4]
        made = Scenario(f"{fault}-{size}-{seed}", seed, 20, cluster=cluster, clocks=clocks, workload=workload)
        yield Case("single", replace(made, faults=(injection(fault, cluster, seed, severity),)))


def disturbed(seeds: range) -> Iterator[Case]:
    """A single fault under noise, couplings and clocks that nobody assumed; some ranks' traces are missing."""
    common = ("compute_straggler", "input_stall", "gc_pause", "launch_stall", "fabric_episode", "allocator_stall")
    cluster = CLUSTERS[8]
    for seed, fault, noise in product(seeds, common, ("lasting", "rough", "heavy tail")):
        made = Scenario(f"{fault}-{noise}-{seed}", 100 + seed, 24, cluster=cluster, noise=NOISES[noise])
        made = replace(made, coupling=COUPLINGS["coupled" if seed % 2 else "none"])
        yield Case("other noise", replace(made, faults=(injection(fault, cluster, seed, 0.3),)))
    for seed, fault in product(seeds, common):
        made = Scenario(f"{fault}-missing-{seed}", 200 + seed, 20, cluster=cluster, clocks=CLOCKS["far off"])
        one = injection(fault, cluster, seed, 0.3)
        # The culprit's own trace is there.
        lost = [rank for rank in (0, 2, 6, 7) if rank != one.place][: 1 + seed % 3]
        yield Case("missing ranks", replace(made, faults=(one,)), frozenset(lost))


_PAIRS = (
    ("compute_straggler", "fabric_episode"),
    ("compute_straggler", "input_stall"),
    ("gc_pause", "launch_stall"),
    ("thermal_drift", "allocator_stall"),
    ("input_stall", "fabric_episode"),
    ("checkpoint_pause", "compute_straggler"),
    ("allocator_stall", "background_contention"),
    ("launch_stall", "compute_straggler"),
)


def pairs(seeds: range, sizes: tuple[int, ...]) -> Iterator[Case]:
    """Two faults at once, on different ranks."""
    for size, seed, (first, second) in product(sizes, seeds, _PAIRS):
        cluster = CLUSTERS[size]
        one = injection(first, cluster, seed, 0.25)
        other = injection(second, cluster, seed, 0.3)
        if faults()[second].target == "rank" and other.place == one.place:
            other = replace(other, place=(other.place + 1) % cluster.ranks)
        made = Scenario(f"{first}+{second}-{size}-{seed}", 300 + seed, 24, cluster=cluster)
        yield Case("two faults", replace(made, faults=(one, other)))


# On one rank; the modes differ, so that each has its own finding.
_SAME_RANK = (
    ("compute_straggler", "gc_pause"),
    ("thermal_drift", "input_stall"),
    ("compute_straggler", "allocator_stall"),
    ("checkpoint_pause", "compute_straggler"),
)


def same_rank(seeds: range) -> Iterator[Case]:
    """Two faults at once, on the same rank."""
    cluster = CLUSTERS[8]
    for seed, (first, second) in product(seeds, _SAME_RANK):
        one, other = (injection(fault, cluster, seed, 0.25) for fault in (first, second))
        made = Scenario(f"{first}+{second}-one-rank-{seed}", 500 + seed, 24, cluster=cluster)
        yield Case("two faults of a rank", replace(made, faults=(one, replace(other, place=one.place))))


def two_dimensional(seeds: range, sizes: tuple[int, ...]) -> Iterator[Case]:
    """Every fault alone, where each rank belongs to a tensor-parallel and to a data-parallel group."""
    for size, seed, fault in product(sizes, seeds, _SINGLE):
        cluster = GROUPED[size]
        if fault == "oversubscribed_uplink":
            cluster = replace(cluster, nodes_per_rack=max(1, cluster.nodes // 2))
        workload = list(WORKLOADS.values())[(seed + size // 8) % 4]
        made = Scenario(f"{fault}-2d-{size}-{seed}", 600 + seed, 20, cluster=cluster, workload=workload)
        yield Case("two dimensions", replace(made, faults=(injection(fault, cluster, seed, 0.3),)))


_SMALL = {"2": Cluster(1, 2), "2x1": Cluster(2, 1), "3x2": Cluster(3, 2), "1x8": Cluster(1, 8)}


def small_or_long(seeds: range) -> Iterator[Case]:
    """Faults of a rank on the smallest clusters and on odd ones, and over many iterations."""
    for seed, (name, cluster), fault in product(seeds, _SMALL.items(), _OF_A_RANK):
        made = Scenario(f"{fault}-{name}-{seed}", 700 + seed, 20, cluster=cluster)
        yield Case("other shapes", replace(made, faults=(injection(fault, cluster, seed, 0.3),)))
    for seed, fault in product(seeds, _OF_A_RANK):
        made = Scenario(f"{fault}-long-{seed}", 750 + seed, 80, cluster=CLUSTERS[8])
        one = injection(fault, CLUSTERS[8], seed, 0.3)
        yield Case("other shapes", replace(made, faults=(replace(one, first=20 + seed % 20, last=None),)))


_OF_A_RANK = ("compute_straggler", "thermal_drift", "input_stall", "gc_pause", "launch_stall", "allocator_stall")


def without_culprit(seeds: range) -> Iterator[Case]:
    """The trace of the one rank that is at fault is missing: the others must not be accused, nor the network."""
    clusters = {"8": CLUSTERS[8], "2d-16": GROUPED[16]}
    for seed, (name, cluster), fault in product(seeds, clusters.items(), _OF_A_RANK):
        one = injection(fault, cluster, seed, 0.3)
        if seed % 2:
            # What comes and goes stands out of the recorded ranks' own time.
            one = replace(one, first=6, last=13, every=1)
        made = Scenario(f"{fault}-lost-{name}-{seed}", 800 + seed, 20, cluster=cluster)
        yield Case("culprit missing", replace(made, faults=(one,)), frozenset({one.place}))


def healthy(seeds: range, sizes: tuple[int, ...]) -> Iterator[Case]:
    """Nothing is wrong, under all kinds of noise, short runs and long ones."""
    for size, seed, (noise, made_of) in product(sizes, seeds, NOISES.items()):
        name = f"healthy-{noise}-{size}-{seed}"
        workload = list(WORKLOADS.values())[seed % 4]
        clocks = list(CLOCKS.values())[seed % 3]
        made = Scenario(name, 400 + seed, (10, 20, 30)[seed % 3], cluster=CLUSTERS[size], noise=made_of)
        made = replace(made, workload=workload, clocks=clocks, coupling=list(COUPLINGS.values())[seed % 2])
        yield Case("healthy" if noise in ("usual", "quiet") else "healthy, other noise", made)


def _cluster(fault: str, size: int) -> Cluster:
    if fault in _NEEDS_GROUPS:
        return GROUPED[max(size, 8)]
    if fault == "oversubscribed_uplink":
        # Someone must cross the racks.
        return replace(CLUSTERS[size], nodes_per_rack=max(1, CLUSTERS[size].nodes // 2))
    return CLUSTERS[size]


def _seeds(first: int, count: int) -> range:
    return range(first, first + count)


def _of_all_noises(first: int) -> Iterator[Case]:
    yield from healthy(_seeds(first, 3), (4, 8))
    yield from healthy(_seeds(first, 1), (16, 32, 64))


def _of_group(name: str, cases: Callable[[int], Iterator[Case]]) -> Callable[[int], Iterator[Case]]:
    return lambda first: (case for case in cases(first) if case.group == name)


def _disturbed(first: int) -> Iterator[Case]:
    return disturbed(_seeds(first, 2))


FAMILIES = {
    "single": Family(
        "One fault of one rank, path or network is what most users come with, on clusters of all sizes.",
        lambda first: chain(single(_seeds(first, 3), (4, 8, 16)), single(_seeds(first, 1), (32, 64))),
    ),
    "two faults": Family(
        "Where two things are wrong, fixing the one that was named must gain what was promised.",
        lambda first: chain(pairs(_seeds(first, 2), (8, 16)), pairs(_seeds(first, 1), (32,))),
    ),
    "two faults of a rank": Family(
        "A rank may have two unlike troubles, each with a remedy of its own.", lambda first: same_rank(_seeds(first, 2))
    ),
    "two dimensions": Family(
        "Delays pass through tensor-parallel groups before they show in data-parallel ones.",
        lambda first: two_dimensional(_seeds(first, 1), (8, 16)),
    ),
    "other shapes": Family(
        "With two ranks there is no majority, and over many iterations noise has more chances.",
        lambda first: small_or_long(_seeds(first, 1)),
    ),
    "culprit missing": Family(
        "Whose file is missing cannot be named, and nobody may be accused in its place.",
        lambda first: without_culprit(_seeds(first, 2)),
    ),
    "other noise": Family(
        "Real runs are rougher than anybody assumes, and waiting slows other work.",
        _of_group("other noise", _disturbed),
    ),
    "missing ranks": Family("Some files are lost, and the culprit's is there.", _of_group("missing ranks", _disturbed)),
    "healthy": Family("A tool that accuses a healthy run is switched off.", _of_group("healthy", _of_all_noises)),
    "healthy, other noise": Family(
        "Heavy tails and drifting speeds are no faults.", _of_group("healthy, other noise", _of_all_noises)
    ),
}
