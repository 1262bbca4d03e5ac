"""Recordings that are made anew: their truth, and that nothing is judged which is not known."""

import json
from pathlib import Path

import pytest

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


def test_what_was_injected_costs_what_steps_took_longer_than_clean_ones() -> None:
    capture = pytest.importorskip("tests.accuracy.capture", exc_type=ImportError)
    # given steps that follow one another: of 10 ns while they are clean, and of 14 from the first recorded one on
    count, clean = capture.CLEAN + capture.RECORDED, capture.CLEAN
    ends = [10 * i + 4 * max(0, i - clean) for i in range(1, count + 1)]
    times = [[[end - 10, end] for end in ends]] * capture.RANKS

    truth = capture.truth_of("paced-sleep", times)
    assert (truth["clean_ns"], truth["clean_spread"]) == (10, 0)
    assert truth["troubles"][0]["removed_ns"] == [4] * capture.RECORDED
    assert (truth["troubles"][0]["subject_kind"], truth["troubles"][0]["subject"]) == ("rank", "2")

    # given a fault in the twelfth recorded step, which takes 9 longer than the others, to record which takes 4
    late = [end + 9 * (i >= clean + 11) for i, end in enumerate(ends)]
    times = [[[end - 10, end] for end in late]] * capture.RANKS
    once = capture.truth_of("paced-sleep_once", times)["troubles"][0]
    assert once["removed_ns"] == [9 if step == 11 else 0 for step in range(capture.RECORDED)]


def test_of_a_slow_cable_the_link_is_at_fault_and_no_rank() -> None:
    capture = pytest.importorskip("tests.accuracy.capture", exc_type=ImportError)
    times = [[[10 * i, 10 * i + 10] for i in range(capture.CLEAN + capture.RECORDED)]] * capture.RANKS

    nic, uplink = (capture.truth_of(f"paced-{kind}", times)["troubles"][0] for kind in ("slow_nic", "slow_uplink"))

    assert (nic["subject_kind"], nic["ranks"], nic["links"]) == ("link", [2], [])
    assert (uplink["subject_kind"], uplink["ranks"], uplink["links"]) == ("link", [0, 1, 2, 3], [[1, 2]])
