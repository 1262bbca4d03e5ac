"""Pacing in the steps to come: `python -m tests.accuracy.to_come [--first N] [--jobs N]` writes TO_COME.md.

In: generated jobs of 48 iterations, whose transfers grow with the mean wait. Out: how often what a policy does in the
second half lies within the interval that the first half foretells, and within that of the first half itself.
Not handled: couplings measured from the first half alone; both halves are replayed with those of the whole job.
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from tests.accuracy.conditions import CLUSTERS
from tests.given import add_facts, built
from traceforge.replay.engine import record
from traceforge.replay.model import StepModel
from traceforge.replay.outcome import Outcome, outcomes
from traceforge.replay.policy import policies
from traceforge.replay.replay_input import ReplayInput, load_replay_input
from traceforge.store.database import Store
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario
from traceforge.synth.task import Coupling

TABLE = Path(__file__).with_name("TO_COME.md")
_KAPPAS = (0.3, 0.8, 1.5)
_KINDS = ("compute_straggler", "rotating_straggler", "load_imbalance", "thermal_drift", "random_jitter", None)
_OF_A_RANK = ("compute_straggler", "thermal_drift")
_TRIED = ("bounded_delay", "adaptive", "constant")
_ROUNDED = 1e-4  # ratios that are told apart
_OF_ALL = {"ranks", "role", "kinds"}


@dataclass(frozen=True, slots=True)
class Trial:
    """A policy in both halves of a job."""

    kind: str
    policy: str
    foretold: Outcome
    came: Outcome

    @property
    def is_foretold(self) -> bool:
        """Whether the second half lies within what is told of the steps to come."""
        low, high = self.foretold.throughput_ratio_next_low, self.foretold.throughput_ratio_next_high
        return low is not None and high is not None and self._is_within(low, high)

    @property
    def is_as_recorded(self) -> bool:
        """Whether it lies within what is told of the first half itself."""
        return self._is_within(self.foretold.throughput_ratio_low, self.foretold.throughput_ratio_high)

    def _is_within(self, low: float, high: float) -> bool:
        return low - _ROUNDED <= self.came.throughput_ratio <= high + _ROUNDED


def scenarios(first: int, count: int) -> Iterator[tuple[str, Scenario]]:
    """Jobs of all kinds in turn."""
    cluster = CLUSTERS[8]
    for number in range(count):
        seed, fault = first + number, _KINDS[number % len(_KINDS)]
        place = (7 * seed + 3) % cluster.ranks if fault in _OF_A_RANK else 0
        faults = (Injection(fault, place, 0.3),) if fault else ()
        coupling = Coupling(kappa=_KAPPAS[number // len(_KINDS) % len(_KAPPAS)])
        yield (
            fault or "healthy",
            Scenario(f"to-come-{seed}", seed, 48, cluster=cluster, coupling=coupling, faults=faults),
        )


def trials(kind: str, scenario: Scenario) -> Iterator[Trial]:
    """Each policy in both halves."""
    with tempfile.TemporaryDirectory(prefix="to-come-") as folder, Store(None, threads=1, is_kept=False) as store:
        write_scenario(scenario, Path(folder), compressed=False)
        add_facts(store, Path(folder), run_name="job")
        built(store, "timeline", "graph", "replay")
        run = load_replay_input(store, 0)
        assert run is not None
        middle = len(run.model.iterations) // 2
        chosen = [(policy, policy.defaults) for policy in policies().values() if policy.name in _TRIED]
        foretold, came = (outcomes(part(run, one), chosen) for one in (slice(0, middle), slice(middle, None)))
        yield from (Trial(kind, one.policy, one, other) for one, other in zip(foretold, came, strict=True))


def part(run: ReplayInput, some: slice) -> ReplayInput:
    """A run of some of the iterations."""
    count = len(run.model.iterations)
    arrays = {
        field.name: value[some]
        for field in fields(StepModel)
        if field.name not in _OF_ALL and isinstance(value := getattr(run.model, field.name), np.ndarray)
        if value.shape[0] == count
    }
    model = replace(run.model, **arrays)
    return replace(run, model=model, recorded=record(model))


def table(found: list[Trial], first: int, jobs: int) -> str:
    """Markdown: by kind of job, how many replays hold."""
    lines = [
        "# Pacing in the steps to come",
        "",
        f"Made by `python -m tests.accuracy.to_come --first {first} --jobs {jobs}`. Of replays of the second half of a",
        "job, how many gains lie within the interval that its first half foretells for the steps to come, and how many",
        "within the interval of the first half itself.",
        "",
        "| job | replays | within the foretold | within the first half's own |",
        "|---|---|---|---|",
    ]
    for kind in [*dict.fromkeys(one.kind for one in found), "all"]:
        own = [one for one in found if kind in (one.kind, "all")]
        cells = kind, len(own), sum(one.is_foretold for one in own), sum(one.is_as_recorded for one in own)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Try and write."""
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy.to_come", description=__doc__)
    parser.add_argument("--first", type=int, default=90_000, help="first seed")
    parser.add_argument("--jobs", type=int, default=36)
    asked = parser.parse_args()
    found = [one for kind, job in scenarios(asked.first, asked.jobs) for one in trials(kind, job)]
    TABLE.write_text(table(found, asked.first, asked.jobs), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
