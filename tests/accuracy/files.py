"""Families of faults of which the files tell only a part. In: the first seed. Out: cases.

A file that ends early, files that are not there, and a clock that is set in the middle of the run. What is left
suffices for an answer, or the right answer is that it does not.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from tests.accuracy.case import Case, Family
from tests.accuracy.conditions import CLUSTERS
from traceforge.synth.clocks import ClockErrors
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.scenario import Scenario

_FOUR_HOSTS = Cluster(4, 4)
_STRUCK = {
    "compute": Injection("compute_straggler", 5, 0.25),
    "input": Injection("input_stall", 5, 0.3),
    "gc-at-times": Injection("gc_pause", 5, 0.6, first=1, every=3),
}


def _truncated(first: int) -> Iterator[Case]:
    for number, (kind, whose, left) in enumerate(product(_STRUCK, ("culprit's", "another's"), (0.45, 0.8))):
        seed = first + number
        rank = 5 if whose == "culprit's" else (6 + seed % 2)
        made = Scenario(f"truncated-{kind}-{whose}-{left:g}-{seed}", 2550 + seed, 24, cluster=CLUSTERS[8])
        yield Case("truncated file", replace(made, faults=(_STRUCK[kind],)), cut=((rank, left),))


# Of four hosts of four ranks; the culprit is host 1, with ranks 4 to 7, or rank 5 of it.
_LOST = {
    "one of each other host": {0, 9, 15},
    "one of the culprit's host": {4},
    "half": {0, 2, 4, 8, 10, 12, 13, 15},
}


def _missing(first: int) -> Iterator[Case]:
    struck = {
        **_STRUCK,
        "host": Injection("host_slow_compute", 1, 0.15),
        "host-input": Injection("host_input_stall", 1, 0.3),
    }
    for number, (kind, which) in enumerate(product(struck, _LOST)):
        seed = first + number
        made = Scenario(f"missing-{kind}-{which.replace(' ', '-')}-{seed}", 2600 + seed, 20, cluster=_FOUR_HOSTS)
        yield Case("missing files", replace(made, faults=(struck[kind],)), left_out=frozenset(_LOST[which]))


def _one_file(first: int) -> Iterator[Case]:
    # given the file of one rank out of eight: what it waits for cannot be told from what it transfers
    for number, (kind, kept) in enumerate(product([None, *_STRUCK], (0, 3))):
        seed = first + number
        faults = (_STRUCK[kind],) if kind else ()
        made = Scenario(f"one-file-{kind or 'healthy'}-{kept}-{seed}", 2650 + seed, 20, cluster=CLUSTERS[8])
        yield Case("one file", replace(made, faults=faults), left_out=frozenset(range(8)) - {kept})


def _clock_steps(first: int) -> Iterator[Case]:
    struck = {**_STRUCK, "host-input": Injection("host_input_stall", 1, 0.3)}
    for number, (kind, step_ns) in enumerate(product(struck, (-8_000_000, 2_000_000, 40_000_000))):
        seed = first + number
        clocks = ClockErrors(step_ns=step_ns, step_node=seed % 2, step_at=0.3 + 0.1 * (seed % 5))
        name = f"clock-step-{kind}-{step_ns // 1_000_000}ms-{seed}"
        made = Scenario(name, 2700 + seed, 24, cluster=CLUSTERS[8], clocks=clocks)
        yield Case("clock steps", replace(made, faults=(struck[kind],)))


FAMILIES = {
    "truncated file": Family(
        "A rank that was killed leaves a file without an end; the others tell the rest.", _truncated
    ),
    "missing files": Family("Some files are always missing, and what is there often suffices.", _missing),
    "one file": Family("From one rank wait and transfer cannot be told apart, so nobody may be accused.", _one_file),
    "clock steps": Family("A clock that is set in mid-run makes one host early or late for ever after.", _clock_steps),
}
