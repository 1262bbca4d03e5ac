"""Families of faults that differ in when they strike and what they drag along. In: the first seed. Out: cases.

Once, for a while, on one rank after the other, often but little, and with transfers that suffer from late arrivals.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tests.accuracy.case import Case, Family
from tests.accuracy.cases import injection
from tests.accuracy.conditions import CLUSTERS, WORKLOADS
from traceforge.synth.fault import Injection
from traceforge.synth.scenario import Scenario
from traceforge.synth.task import Coupling

_OF_A_RANK = ("gc_pause", "checkpoint_pause", "input_stall", "compute_straggler", "allocator_stall")


def _once(first: int) -> Iterator[Case]:
    for number, (fault, size) in enumerate(product(_OF_A_RANK, (8, 16))):
        seed = first + number
        cluster = CLUSTERS[size]
        at = 3 + seed % 15
        one = Injection(fault, (7 * seed + 3) % cluster.ranks, 4.0, at, at)
        made = Scenario(f"{fault}-once-{size}-{seed}", 2300 + seed, 20, cluster=cluster)
        yield Case("once", replace(made, faults=(one,)))


def _episode(first: int) -> Iterator[Case]:
    for number, (fault, size) in enumerate(product((*_OF_A_RANK, "launch_stall"), (8, 16))):
        seed = first + number
        cluster = CLUSTERS[size]
        begin = 4 + seed % 9
        one = Injection(fault, (7 * seed + 3) % cluster.ranks, 0.4, begin, begin + 6)
        made = Scenario(f"{fault}-episode-{size}-{seed}", 2350 + seed, 24, cluster=cluster)
        yield Case("episode", replace(made, faults=(one,)))


def _rotating(first: int) -> Iterator[Case]:
    kinds = product(("rotating_straggler", "rotating_pause"), (0.2, 0.8), (4, 8, 16))
    for number, (fault, severity, size) in enumerate(kinds):
        seed = first + number
        made = Scenario(f"{fault}-{severity:g}-{size}-{seed}", 2400 + seed, 32, cluster=CLUSTERS[size])
        yield Case("rotating", replace(made, faults=(Injection(fault, 0, severity),)))


def _small_pauses(first: int) -> Iterator[Case]:
    for number, (severity, size, workload) in enumerate(
        product((0.06, 0.1), (8, 16), ("reads its loss", "many buckets"))
    ):
        seed = first + number
        cluster = CLUSTERS[size]
        one = Injection("small_pauses", (7 * seed + 3) % cluster.ranks, severity)
        name = f"small_pauses-{severity:g}-{size}-{seed}"
        made = Scenario(name, 2450 + seed, 24, cluster=cluster, workload=WORKLOADS[workload])
        yield Case("small pauses", replace(made, faults=(one,)))


_DRAGGING = {
    "all-along": lambda fault, place: Injection(fault, place, 0.25),
    "for-a-while": lambda fault, place: Injection(fault, place, 0.4, 7, 15),
    "at-times": lambda fault, place: Injection(fault, place, 0.5, 1, None, 3),
}


def _coupled(first: int) -> Iterator[Case]:
    kinds = product(("compute_straggler", "input_stall", "gc_pause"), (0.5, 1.5), _DRAGGING)
    for number, (fault, kappa, when) in enumerate(kinds):
        seed = first + number
        cluster = CLUSTERS[16 if number % 6 == 0 else 8]
        one = _DRAGGING[when](fault, (7 * seed + 3) % cluster.ranks)
        name = f"{fault}-{when}-kappa{kappa:g}-{seed}"
        made = Scenario(name, 2500 + seed, 24, cluster=cluster, coupling=Coupling(kappa=kappa))
        yield Case("coupled", replace(made, faults=(one,)))


def _slowed(first: int) -> Iterator[Case]:
    kinds = product(("compute_straggler", "load_imbalance", "input_stall"), (0.3, 0.6), (4, 8, 16))
    for number, (fault, eta, size) in enumerate(kinds):
        seed = first + number
        cluster = CLUSTERS[size]
        coupling = Coupling(eta_wait=eta, eta_transfer=eta / 2)
        one = injection(fault, cluster, seed, (0.15, 0.3)[number % 2])
        made = Scenario(f"{fault}-eta{eta:g}-{size}-{seed}", 2550 + seed, 24, cluster=cluster, coupling=coupling)
        yield Case("slowed", replace(made, faults=(one,)))


FAMILIES = {
    "once": Family("One long pause of one rank is what users see and ask about; it has no second sample.", _once),
    "episode": Family(
        "Trouble that comes and goes leaves other iterations to compare with, and must be dated.", _episode
    ),
    "rotating": Family(
        "Where another rank is late each time nobody is the culprit, and all of it is lost all the same.", _rotating
    ),
    "small pauses": Family(
        "A few per cent in every iteration are a day of a month, and lie near what noise makes.", _small_pauses
    ),
    "coupled": Family(
        "Where late arrivals slow transfers down the network looks guilty of what a rank does.", _coupled
    ),
    "slowed": Family(
        "Ranks that wait for a slow one are slower while they wait, so that it seems less slow than it is.", _slowed
    ),
}
