"""Families of faults that strike sets of ranks. In: the first seed. Out: cases.

A host, everyone, two ranks at once, and one rank by changing causes: whoever tests each rank and each cause alone finds
less than there is.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tests.accuracy.case import Case, Family
from tests.accuracy.conditions import CLOCKS, CLUSTERS, WORKLOADS
from traceforge.synth.clocks import ClockErrors
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.scenario import Scenario

_HOSTS = {"2x4": Cluster(2, 4), "4x4": Cluster(4, 4), "2x8": Cluster(2, 8), "4x8-tp4": Cluster(4, 8, 4)}
_OF_A_HOST = {
    "slow-6": Injection("host_slow_compute", 0, 0.06),
    "slow-12": Injection("host_slow_compute", 0, 0.12),
    "slow-late": Injection("host_slow_compute", 0, 0.15, first=8),
    "input-21": Injection("host_input_stall", 0, 0.21),
    "input-at-times": Injection("host_input_stall", 0, 0.4, first=1, every=4),
    "contended": Injection("host_contention", 0, 0.3),
}


def _host(first: int) -> Iterator[Case]:
    for number, (name, kind) in enumerate(product(_HOSTS, _OF_A_HOST)):
        if name != "4x8-tp4" or kind in ("slow-6", "input-21", "contended"):
            yield _of_a_host("host", f"{kind}-{name}", _HOSTS[name], kind, first + number, CLOCKS["skewed"])
    large = Cluster(8, 8, nodes_per_rack=4)
    yield _of_a_host("host", "slow-6-8x8", large, "slow-6", first + 50, CLOCKS["skewed"])


def _host_with_clocks(first: int) -> Iterator[Case]:
    drifting = ClockErrors(2_000_000_000, 60_000, 100_000)
    for number, (clocks, kind) in enumerate(product(("far off", "drifting"), _OF_A_HOST)):
        errors = CLOCKS.get(clocks, drifting)
        yield _of_a_host("host with clocks", f"{kind}-{clocks}", _HOSTS["4x4"], kind, first + number, errors)


def _of_a_host(group: str, name: str, cluster: Cluster, kind: str, seed: int, clocks: ClockErrors) -> Case:
    one = replace(_OF_A_HOST[kind], place=(5 * seed + 1) % cluster.nodes)
    workload = WORKLOADS["many buckets" if seed % 2 else "reads its loss"]
    made = Scenario(f"host-{name}-{seed}", 2000 + seed, 20, cluster=cluster, workload=workload, clocks=clocks)
    return Case(group, replace(made, faults=(one,)))


_OF_EVERYONE = ("job_pause", "job_checkpoint", "job_allocator_pause")


def _everyone_once(first: int) -> Iterator[Case]:
    for number, (fault, severity, size) in enumerate(product(_OF_EVERYONE, (3.0, 10.0), (8, 16))):
        seed = first + number
        at = 4 + seed % 13
        made = Scenario(f"{fault}-once-{severity:g}-{size}-{seed}", 2100 + seed, 20, cluster=CLUSTERS[size])
        yield Case("everyone once", replace(made, faults=(Injection(fault, 0, severity, at, at),)))


def _everyone_at_times(first: int) -> Iterator[Case]:
    for number, (fault, severity, size) in enumerate(product(_OF_EVERYONE, (0.5, 1.5), (8, 16))):
        seed = first + number
        one = Injection(fault, 0, severity, first=seed % 3, every=4 + seed % 3)
        made = Scenario(f"{fault}-at-times-{severity:g}-{size}-{seed}", 2150 + seed, 24, cluster=CLUSTERS[size])
        yield Case("everyone in some iterations", replace(made, faults=(one,)))


# Each cause takes its turn; causes of two modes, and of one.
_MIXES = {
    "three": ("gc_pause", "input_stall", "compute_straggler"),
    "of-the-host": ("gc_pause", "input_stall"),
    "seven": (
        "checkpoint_pause", "compute_straggler", "allocator_stall", "gc_pause", "input_stall", "launch_stall",
        "small_pauses",
    ),
}  # fmt: skip


def _mixed(first: int) -> Iterator[Case]:
    for number, (name, size, severity) in enumerate(product(_MIXES, (8, 16), (0.1, 0.3))):
        seed = first + number
        cluster, causes = CLUSTERS[size], _MIXES[name]
        rank = (7 * seed + 3) % cluster.ranks
        turns = tuple(
            Injection(cause, rank, severity, first=turn, every=len(causes), trouble="one rank")
            for turn, cause in enumerate(causes)
        )
        made = Scenario(f"mixed-{name}-{severity:g}-{size}-{seed}", 2200 + seed, 24, cluster=cluster)
        yield Case("mixed causes of a rank", replace(made, faults=turns))


_IN_PARALLEL = ("compute_straggler", "input_stall", "gc_pause", "launch_stall", "allocator_stall")


def _in_parallel(first: int) -> Iterator[Case]:
    for number, (fault, size, severity) in enumerate(product(_IN_PARALLEL, (8, 16), (0.08, 0.25))):
        seed = first + number
        cluster = CLUSTERS[size]
        one = (7 * seed + 3) % cluster.ranks
        # On another host.
        other = (one + cluster.devices + seed % 2) % cluster.ranks
        both = tuple(Injection(fault, rank, severity, trouble="both") for rank in (one, other))
        made = Scenario(f"{fault}-twice-{severity:g}-{size}-{seed}", 2250 + seed, 20, cluster=cluster)
        yield Case("two ranks in parallel", replace(made, faults=both))


FAMILIES = {
    "host": Family("A hot or badly fed host makes all its ranks alike, so that no rank stands out alone.", _host),
    "host with clocks": Family(
        "A host's clock errors and its slowness look alike to whoever trusts time stamps.", _host_with_clocks
    ),
    "everyone once": Family(
        "A pause of all ranks in one iteration has no culprit among them, and shares of it must not make one.",
        _everyone_once,
    ),
    "everyone in some iterations": Family(
        "Checkpoints and full memory return; the job is at fault, not whoever was last to go on.", _everyone_at_times
    ),
    "mixed causes of a rank": Family(
        "A sick machine shows by changing causes, of which none is much; the rank is what they share.", _mixed
    ),
    "two ranks in parallel": Family(
        "Removing one of two equally late ranks gains nothing, so tests of each alone find neither.", _in_parallel
    ),
}
