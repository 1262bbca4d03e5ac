"""Recordings that are made anew: their truth, and that nothing is judged which is not known."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.accuracy.capture_truth import CLEAN, truth_of
from tests.accuracy.captured import judged
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario


def recorded(folder: Path, spread: float) -> Path:
    """Two ranks, of which rank 1 is late, as if they had been recorded."""
    scenario = Scenario("late", 3, 12, cluster=Cluster(1, 2), faults=(Injection("gc_pause", 1, 0.5),))
    write_scenario(scenario, folder)
    truth = json.loads((folder / "truth.json").read_text())
    told = {**truth, "lost": [], "clean_ns": 30_000_000, "clean_spread": spread}
    (folder / "truth.json").write_text(json.dumps(told))
    return folder


def test_a_calm_recording_is_judged(tmp_path: Path) -> None:
    name, clean, spread, fault, cost, said, *_ = (
        cell.strip() for cell in judged(recorded(tmp_path, 0.04)).split("|")[1:]
    )

    assert (name, clean, spread) == ("late", "30.0 ms", "4%")
    assert fault == "runtime_control_plane of rank 1"
    assert float(cost.split()[0]) > 10
    assert said.startswith("runtime_control_plane rank 1, ")


def test_a_restless_machine_is_said_and_nothing_is_judged(tmp_path: Path) -> None:
    assert judged(recorded(tmp_path, 0.3)) == "| late | 30.0 ms | 30% | not measured | | | | |"


@dataclass(frozen=True)
class Injected:
    """A fault as `capture_faults.Fault`, which needs PyTorch."""

    ranks: tuple[int, ...]
    strikes: Callable[[int], bool] = lambda _step: True
    slowed: SimpleNamespace | None = None
    hides: bool = False
    modes: tuple[str, ...] = ("runtime_control_plane",)


STEPS, HOSTS = 20, ["node0"] * 4


def truth(longer_ns: Callable[[int], int], *faults: Injected, hosts: Sequence[str] = HOSTS) -> dict[str, Any]:
    """Of steps that follow one another, of 10 ns, and of so much more in each recorded one."""
    lasts = [10] * CLEAN + [10 + longer_ns(step) for step in range(STEPS)]
    ends = list(accumulate(lasts))
    times = [[[end - ns, end] for end, ns in zip(ends, lasts, strict=True)]] * len(hosts)
    return truth_of("paced-sleep", faults, times, list(hosts))  # type: ignore[arg-type]  # stands for a fault


def test_what_was_injected_costs_what_steps_took_longer_than_clean_ones() -> None:
    told = truth(lambda _step: 4, Injected((2,)))

    assert (told["clean_ns"], told["clean_spread"]) == (10, 0)
    assert told["troubles"][0]["removed_ns"] == told["troubles"][0]["added_ns"] == [4] * STEPS
    assert (told["troubles"][0]["subject_kind"], told["troubles"][0]["subject"]) == ("rank", "2")


def test_what_strikes_once_costs_what_its_step_took_longer_than_other_recorded_ones() -> None:
    # given steps that take 4 longer while they are recorded, and the twelfth of them 9 more
    told = truth(lambda step: 4 + 9 * (step == 11), Injected((1,), lambda step: step == 11))

    assert told["troubles"][0]["removed_ns"] == [9 if step == 11 else 0 for step in range(STEPS)]
    assert told["faults"][0]["step_excess_ns"] == [9]


def test_of_two_faults_each_costs_what_it_does_alone_and_saves_what_the_other_leaves() -> None:
    # given one fault of 6 in steps 0 to 13, another of 8 from step 6 on, and 10 where both strike: they overlap by 4
    first, second = Injected((0,), lambda step: step < 14), Injected((3,), lambda step: step >= 6)
    told = truth(lambda step: 6 if step < 6 else 10 if step < 14 else 8, first, second)

    one, other = told["troubles"]
    assert (one["removed_ns"], one["added_ns"]) == ([6] * 6 + [2] * 8 + [0] * 6, [6] * 14 + [0] * 6)
    assert (other["removed_ns"], other["added_ns"]) == ([0] * 6 + [4] * 8 + [8] * 6, [0] * 6 + [8] * 14)


def test_faults_that_always_strike_together_have_one_cost() -> None:
    both = [Injected((rank,), lambda step: step == 11) for rank in (0, 3)]
    told = truth(lambda step: 9 * (step == 11), *both)

    assert [sum(one["removed_ns"]) for one in told["troubles"]] == [9, 9]


def test_of_a_slow_cable_the_link_is_at_fault_and_no_rank() -> None:
    hosts = [f"node{rank // 2}" for rank in range(8)]
    nic, uplink = (
        truth(lambda _step: 4, Injected((), slowed=SimpleNamespace(cable=cable)), hosts=hosts)["troubles"][0]
        for cable in ("node2", "uplink")
    )

    assert (nic["subject_kind"], nic["ranks"], nic["of_host"], nic["links"]) == ("link", [4, 5], "node2", [])
    assert (uplink["subject_kind"], uplink["ranks"], uplink["links"]) == ("link", [*range(8)], [[3, 4]])


def test_what_each_rank_does_in_turn_is_the_jobs() -> None:
    (told,) = truth(lambda _step: 4, Injected(()))["troubles"]
    assert (told["subject_kind"], told["subject"], told["ranks"]) == ("job", "all", [0, 1, 2, 3])
