"""Whom an answer should name: injections by subject, and what they cost together."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario, cost_of, run
from traceforge.synth.trouble import troubles_of

# Hosts of four: node0 has ranks 0 to 3.
CLUSTER = Cluster(2, 4)
JOB = Scenario(iterations=12, seed=3, cluster=CLUSTER)


def one(*injections: Injection, cluster: Cluster = CLUSTER) -> tuple[str, str, tuple[int, ...]]:
    (trouble,) = troubles_of(cluster, injections)
    return trouble.subject_kind, trouble.subject, trouble.ranks


def test_a_fault_alone_is_a_trouble_of_what_it_strikes() -> None:
    assert one(Injection("gc_pause", 3)) == ("rank", "3", (3,))
    assert one(Injection("host_slow_compute", 1)) == ("host", "node1", (4, 5, 6, 7))
    assert one(Injection("job_pause")) == ("job", "all", tuple(range(8)))
    # given pairs of tensor-parallel ranks: 1 shares its rail with 3, 5 and 7
    grouped = Cluster(2, 4, 2)
    assert one(Injection("far_nic", 1), cluster=grouped) == ("communicator", "1, 3, 5, 7", (1, 3, 5, 7))


def test_changing_causes_on_one_rank_are_one_trouble_with_all_their_modes() -> None:
    mixed = [Injection(fault, 2, trouble="rank 2") for fault in ("gc_pause", "input_stall", "compute_straggler")]

    (trouble,) = troubles_of(CLUSTER, mixed)
    assert (trouble.numbers, trouble.subject_kind, trouble.subject) == ((0, 1, 2), "rank", "2")
    assert trouble.modes == ("runtime_control_plane", "synchronization_amplification")


def test_several_ranks_are_named_together_and_as_a_host_where_they_are_one() -> None:
    assert one(*(Injection("gc_pause", r, trouble="x") for r in (7, 2))) == ("ranks", "2, 7", (2, 7))
    assert one(*(Injection("gc_pause", r, trouble="x") for r in (0, 1, 2, 3))) == ("host", "node0", (0, 1, 2, 3))
    # given hosts of one rank: the rank is the plainer name
    assert one(Injection("gc_pause", 1, trouble="x"), cluster=Cluster(2, 1)) == ("rank", "1", (1,))


def test_what_strikes_the_ranks_of_all_hosts_is_the_jobs() -> None:
    every = [Injection("host_slow_compute", host, trouble="all") for host in range(2)]

    (trouble,) = troubles_of(Cluster(2, 4), every)
    assert (trouble.subject_kind, trouble.subject, trouble.ranks) == ("job", "all", tuple(range(8)))


def test_injections_without_a_word_in_common_stay_apart() -> None:
    pair = [Injection("gc_pause", 1), Injection("gc_pause", 2, trouble="x"), Injection("gc_pause", 3, trouble="x")]

    assert [trouble.subject for trouble in troubles_of(CLUSTER, pair)] == ["1", "2, 3"]


def test_what_two_ranks_cost_together_neither_costs_alone() -> None:
    # given two ranks that are equally late, told as one trouble
    both = tuple(Injection("compute_straggler", rank, trouble="x") for rank in (1, 6))
    cost = cost_of(replace(JOB, faults=both))

    # then removing either saves next to nothing, and removing both saves the excess
    excess = cost.duration_ns - cost.healthy_ns
    assert max(float(one.mean()) for one in cost.removed_ns) < 0.1 * float(excess.mean())
    assert np.array_equal(cost.trouble_removed_ns[0], excess)
    assert np.array_equal(cost.trouble_added_ns[0], excess)


def test_a_trouble_of_one_fault_costs_what_the_fault_costs(tmp_path: Path) -> None:
    job = replace(JOB, iterations=4, faults=(Injection("gc_pause", 1), Injection("host_input_stall", 1, first=2)))
    write_scenario(job, tmp_path)

    truth = json.loads((tmp_path / "truth.json").read_text())
    for name in ("removed_ns", "added_ns"):
        assert [one[name] for one in truth["troubles"]] == [one[name] for one in truth["faults"]]
    assert [one["subject"] for one in truth["troubles"]] == ["1", "node1"]
    # ranks of the host are the last four of the list of hosts, by rank
    assert [rank for rank, host in enumerate(truth["hosts"]) if host == "node1"] == truth["troubles"][1]["ranks"]


def slow_ranks(fault: str, place: int = 0, first: int = 0, last: int | None = None) -> list[list[int]]:
    """Ranks whose own time a fault takes, by iteration."""
    healthy, faulty = (
        run(replace(JOB, faults=(Injection(fault, place, severity, first, last),))).load for severity in (0.0, 0.3)
    )
    extra_ns = (faulty.host_ns + faulty.device_ns - healthy.host_ns - healthy.device_ns).sum(axis=1)
    for stall in faulty.stalls:
        extra_ns += stall.duration_ns
    return [np.flatnonzero(row > 0).tolist() for row in extra_ns]


@pytest.mark.parametrize("fault", ["host_slow_compute", "host_input_stall", "host_contention"])
def test_a_fault_of_a_host_strikes_all_its_ranks_and_no_other(fault: str) -> None:
    assert slow_ranks(fault, place=1, first=3) == [[]] * 3 + [[4, 5, 6, 7]] * 9


@pytest.mark.parametrize("fault", ["job_pause", "job_allocator_pause", "job_checkpoint"])
def test_a_pause_of_everyone_strikes_everyone_in_its_iterations(fault: str) -> None:
    assert slow_ranks(fault, first=5, last=5) == [[]] * 5 + [list(range(8))] + [[]] * 6


@pytest.mark.parametrize("fault", ["rotating_straggler", "rotating_pause"])
def test_a_rotating_fault_strikes_one_rank_after_the_other(fault: str) -> None:
    assert slow_ranks(fault) == [[i % 8] for i in range(12)]


def test_everyone_pauses_at_a_moment_of_its_own_and_the_job_loses_one_pause() -> None:
    # given a pause of ten iterations' length
    job = replace(JOB, faults=(Injection("job_pause", 0, 10.0, first=6, last=6),))
    cost, events = cost_of(job), run(job).events

    begins = {int(start) for start in events.stall_start_ns[:, 6].ravel()}
    assert len(begins) > 1
    typical_ns = float(np.median(cost.healthy_ns))
    assert float(cost.trouble_removed_ns[0].sum()) == pytest.approx(10 * typical_ns, rel=0.1)
