"""Healthy runs in every shape that a faulty one has. In: the first seed. Out: cases in which nobody may be named.

Large couplings, clocks that are set, files that are cut or missing, groups in two dimensions, the smallest clusters,
hosts of many devices, uneven devices, and long runs.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tests.accuracy.case import Case, Family
from tests.accuracy.conditions import CLOCKS, CLUSTERS, GROUPED, NOISES, WORKLOADS
from traceforge.synth.clocks import ClockErrors
from traceforge.synth.cluster import Cluster
from traceforge.synth.scenario import Scenario
from traceforge.synth.task import Coupling

_GROUP = "healthy, other shapes"
_SHAPES = {"1x2": Cluster(1, 2), "2x1": Cluster(2, 1), "3x2": Cluster(3, 2), "1x8": Cluster(1, 8), "2x8": Cluster(2, 8)}


def _case(name: str, seed: int, cluster: Cluster, iterations: int = 20) -> Case:
    workload = list(WORKLOADS.values())[seed % 4]
    made = Scenario(f"healthy-{name}-{seed}", 2800 + seed, iterations, cluster=cluster, workload=workload)
    return Case(_GROUP, replace(made, clocks=list(CLOCKS.values())[seed % 3]))


def _with(case: Case, **changes: object) -> Case:
    return replace(case, scenario=replace(case.scenario, **changes))  # type: ignore[arg-type]  # names of its fields


def _coupled(first: int) -> Iterator[Case]:
    for seed, kappa, noise in product(range(first, first + 4), (0.5, 1.5), ("usual", "lasting", "rough")):
        case = _case(f"kappa{kappa:g}-{noise}", seed, CLUSTERS[8], 24)
        yield _with(case, coupling=Coupling(kappa=kappa), noise=NOISES[noise])


def _clocks_set(first: int) -> Iterator[Case]:
    for seed, step_ns in product(range(first, first + 4), (-8_000_000, 2_000_000, 40_000_000)):
        case = _case(f"step{step_ns // 1_000_000}ms", seed, CLUSTERS[8])
        yield _with(case, clocks=ClockErrors(step_ns=step_ns, step_node=seed % 2, step_at=0.2 + 0.15 * (seed % 5)))


def _files(first: int) -> Iterator[Case]:
    for seed, left in product(range(first, first + 4), (0.3, 0.6, 0.9)):
        yield replace(_case(f"cut{left:g}", seed, CLUSTERS[8]), cut=((seed % 8, left),))
    for seed, lost in product(range(first, first + 6), (1, 3)):
        ranks = {(3 * seed + 5 * number) % 8 for number in range(lost)}
        yield replace(_case(f"without{lost}", seed, CLUSTERS[8]), left_out=frozenset(ranks))


def _shapes(first: int) -> Iterator[Case]:
    for seed, (name, cluster) in product(range(first, first + 7), _SHAPES.items()):
        yield _case(name, seed, cluster)
    for seed, size in product(range(first, first + 4), (8, 16)):
        yield _case(f"2d-{size}", seed, GROUPED[size])
    for seed, noise in product(range(first, first + 4), NOISES):
        yield _with(_case(f"2x4-{noise}", seed, CLUSTERS[8], 40), noise=NOISES[noise])
    for seed, iterations in product(range(first, first + 4), (80, 160)):
        yield _case(f"long{iterations}", seed, CLUSTERS[4], iterations)


def _healthy(first: int) -> Iterator[Case]:
    yield from _coupled(first)
    yield from _clocks_set(first)
    yield from _files(first)
    yield from _shapes(first)


FAMILIES = {_GROUP: Family("An accusation of a healthy run costs a team its day, whatever the run's shape.", _healthy)}
