"""The grid. In: nothing. Out: cases, each a scenario and what of its traces is there.

Each group of cases asks one question: is a single fault found, are two, is a healthy run left alone, also where its
noise is not what anybody assumed, does it still work when ranks are missing or clocks are far off, on two ranks, over
many iterations, with groups in two dimensions, and is nobody accused when the culprit's own trace is missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product

from traceforge.synth.clocks import ClockErrors
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection, faults
from traceforge.synth.load import Noise
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario
from traceforge.synth.simulate import Coupling


@dataclass(frozen=True, slots=True)
class Case:
    """One run to be judged.

    Attributes:
        group: the question it belongs to.
        left_out: ranks whose traces are missing.
    """

    group: str
    scenario: Scenario
    left_out: frozenset[int] = frozenset()


CLUSTERS = {
    4: Cluster(2, 2),
    8: Cluster(2, 4),
    16: Cluster(4, 4, nodes_per_rack=2),
    32: Cluster(4, 8, 4, nodes_per_rack=2),
    64: Cluster(8, 8, nodes_per_rack=4),
}
# A device's path shows only against its peers': these faults need several groups.
_GROUPED = {
    8: Cluster(2, 4, 2),
    16: Cluster(4, 4, 4),
    32: Cluster(4, 8, 4),
    64: Cluster(8, 8, 8, nodes_per_rack=4),
}
_NEEDS_GROUPS = ("far_nic", "p2p_lost")

CLOCKS = {
    "one clock": ClockErrors(0, 0, 0),
    "skewed": ClockErrors(),
    "far off": ClockErrors(50_000_000, 20_000, 50_000),
}

NOISES = {
    "usual": Noise(),
    "quiet": Noise(kernel=0.01, iteration=0.001, lasting=0.0, device=0.001, transfer=0.01),
    "lasting": Noise(iteration=0.01, lasting=0.9),
    "uneven devices": Noise(device=0.006),
    "rough": Noise(kernel=0.05, iteration=0.01, device=0.004, transfer=0.15, host=0.3),
    "heavy tail": Noise(tail_probability=0.001, tail_share=1.0),
    "rare stalls": Noise(tail_probability=0.0002, tail_share=5.0),
}

COUPLINGS = {"none": Coupling(), "coupled": Coupling(kappa=0.2, eta_wait=0.1, eta_transfer=0.1)}

WORKLOADS = {
    "reads its loss": Workload(),
    "runs ahead": Workload(reads_loss_every=0),
    "frees memory": Workload(frees_memory=True),
    "many buckets": Workload(layers=6, buckets=6, forward_ns=1_500_000),
}


def injection(fault: str, cluster: Cluster, seed: int, severity: float) -> Injection:
    """A fault at a place and time that depend on the seed."""
    befalls = faults()[fault].target
    count = {"rank": cluster.ranks, "node": cluster.nodes, "job": 1}[befalls]
    place = (7 * seed + 3) % count
    if fault in ("fabric_episode", "oversubscribed_uplink", "slow_nic"):
        # What is slow from the first iteration to the last has nothing to be compared with.
        return Injection(fault, place, 2 * severity, 6 + seed % 4, None if seed % 2 else 14)
    if fault in ("gc_pause", "checkpoint_pause", "input_stall") and seed % 2:
        return Injection(fault, place, 2 * severity, first=seed % 3, every=4)
    if fault == "compute_straggler" and seed % 3 == 1:
        return Injection(fault, place, severity, first=5, last=13)
    return Injection(fault, place, severity)


def single(seeds: range, sizes: tuple[int, ...]) -> Iterator[Case]:
    """Every fault alone, at several scales."""
    for size, seed, fault in product(sizes, seeds, faults()):
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
    for size, seed, fault in product(sizes, seeds, faults()):
        cluster = _GROUPED[size]
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
    clusters = {"8": CLUSTERS[8], "2d-16": _GROUPED[16]}
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
        return _GROUPED[max(size, 8)]
    if fault == "oversubscribed_uplink":
        # Someone must cross the racks.
        return replace(CLUSTERS[size], nodes_per_rack=max(1, CLUSTERS[size].nodes // 2))
    return CLUSTERS[size]


# Seeds below are for development; those of the results are used for nothing else.
_FRESH = 1000


def quick() -> list[Case]:
    """The part that runs with the other tests: about half a minute."""
    seeds = range(1)
    return [
        *single(seeds, (8,)),
        *list(pairs(seeds, (8,)))[:3],
        *healthy(range(2), (4,)),
    ]


def full() -> list[Case]:
    """All of it: less than fifteen minutes of two cores.

    Up to 16 ranks come first, in an order of which any part is a fair sample, so that a run may be stopped.
    """
    first, two, three = (range(_FRESH, _FRESH + count) for count in (1, 2, 3))
    cases = [
        *single(three, (4, 8, 16)),
        *single(first, (32, 64)),
        *pairs(two, (8, 16)),
        *pairs(first, (32,)),
        *same_rank(two),
        *two_dimensional(first, (8, 16)),
        *small_or_long(first),
        *without_culprit(two),
        *disturbed(two),
        *healthy(three, (4, 8)),
        *healthy(first, (16, 32, 64)),
    ]
    return sorted(cases, key=_order)


def _order(case: Case) -> tuple[bool, bytes]:
    return case.scenario.cluster.ranks > 16, sha256(case.scenario.name.encode()).digest()
