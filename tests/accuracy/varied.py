"""Steps that vary alike on all ranks. In: the first seed. Out: cases, with one trouble each or none.

Sequence lengths and packed batches make one step longer than the next for everybody. Who is slow is slow against its
peers of the same step, what it costs grows with the step, and a long step is nobody's fault.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from tests.accuracy.case import Case, Family
from tests.accuracy.conditions import CLOCKS, CLUSTERS, WORKLOADS
from traceforge.synth.fault import Injection
from traceforge.synth.load import Noise
from traceforge.synth.scenario import Scenario

_GROUP, _HEALTHY = "varied steps", "healthy, varied steps"
_FAULTS: Mapping[str, Injection] = {
    "slow": Injection("compute_straggler", 5, 0.15),
    "slow-for-a-stretch": Injection("compute_straggler", 2, 0.3, 6, 18),
    "host": Injection("host_slow_compute", 1, 0.15),
    "input": Injection("input_stall", 3, 0.4, 1, every=4),
    "pauses": Injection("gc_pause", 6, 0.5, 2, every=5),
    "network": Injection("fabric_episode", 0, 0.6, 8, 16),
}


def _varied(first: int) -> Iterator[Case]:
    kinds = product(range(first, first + 2), (0.08, 0.25), (8, 16), _FAULTS)
    for number, (seed, step, ranks, fault) in enumerate(kinds):
        yield Case(_GROUP, replace(_job(f"{fault}-{ranks}", seed, number, step, ranks), faults=(_FAULTS[fault],)))


def _healthy(first: int) -> Iterator[Case]:
    for number, (seed, step, ranks) in enumerate(product(range(first, first + 5), (0.05, 0.15, 0.4), (4, 8))):
        yield Case(_HEALTHY, _job(f"healthy-{ranks}", seed, 60 + number, step, ranks))


def _job(name: str, seed: int, number: int, step: float, ranks: int) -> Scenario:
    return Scenario(
        f"varied-{name}-{step:g}-{seed}", 3_600 + 97 * number + seed, 30,
        cluster=CLUSTERS[ranks], workload=list(WORKLOADS.values())[number % 4],
        clocks=list(CLOCKS.values())[number % 3], noise=Noise(step=step),
    )  # fmt: skip


FAMILIES = {
    _GROUP: Family("Sequence lengths make steps longer or shorter for everybody, and hide who is slow.", _varied),
    _HEALTHY: Family("A step that is longer for everybody is nobody's fault.", _healthy),
}
