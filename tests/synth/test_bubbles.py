"""Why stages idle: kinds by hand, and that they add up whatever happens."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from traceforge.synth.bubbles import bubbles_of, exposed_ns
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, run

MS = 1_000_000
# Forward 4 ms, backward 8 ms on each of four stages; eight micro-batches: a step of 132 ms, of which 36 are idle.
JOB = Scenario(
    iterations=4,
    cluster=Cluster(2, 4, pipeline_parallel=4),
    workload=Workload(layers=8, copy_ns=0, optimizer_ns=0),
    pipeline=Pipeline(message_bytes=0),
)


def of_third_step(job: Scenario) -> dict[str, NDArray[np.float64]]:
    """Kinds of the third iteration, ms by rank."""
    return {kind: times[2] / MS for kind, times in bubbles_of(run(job)).items()}


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_filling_and_draining_are_the_closed_form(schedule: str) -> None:
    found = of_third_step(replace(JOB, pipeline=replace(JOB.pipeline, schedule=schedule)))

    assert found["fill"] + found["drain"] == pytest.approx(3 * 12, rel=0.01)
    assert found["imbalance"] == pytest.approx(0, abs=1e-6)
    # the last stage waits three forwards before its first pass and three backwards behind its last one
    assert found["fill"][7] == pytest.approx(12, rel=0.01)
    assert found["drain"][7] == pytest.approx(24, rel=0.01)


def test_unequal_stages_are_imbalance_and_the_longest_one_has_less_than_its_share() -> None:
    # given layers 3, 2, 2, 1: the first stage sets the pace, 18 ms for a micro-batch
    found = of_third_step(replace(JOB, pipeline=replace(JOB.pipeline, layers_by_stage=(3, 2, 2, 1))))

    assert found["fill"] + found["drain"] == pytest.approx(36, rel=0.01)
    assert found["imbalance"][0] < 0 < found["imbalance"][2] < found["imbalance"][6]


def test_messages_cost_transfer_and_slow_ones_too() -> None:
    sized = replace(JOB, pipeline=Pipeline(message_bytes=45_000_000))
    usual = of_third_step(sized)
    slow = of_third_step(replace(sized, faults=(Injection("slow_link", 3, 0.2),)))

    assert np.all(usual["transfer"] > 3)
    # the replica of the slow link, ranks 1, 3, 5 and 7, waits for it; the other one as before
    assert np.all((slow["transfer"] - usual["transfer"])[1::2] > 10)
    assert slow["transfer"][0] == pytest.approx(usual["transfer"][0], abs=0.5)
    assert slow["late_peer"] == pytest.approx(usual["late_peer"], abs=1)


def test_who_waits_for_a_late_rank_has_a_late_peer_and_it_has_none() -> None:
    found = of_third_step(replace(JOB, faults=(Injection("compute_straggler", 3, 0.2),)))

    late = found["late_peer"]
    assert np.all(late[[1, 5, 7]] > 10)
    # the late rank itself works where it would have waited; the other replica waits at the all-reduce, which is none
    assert late[3] < 0
    assert np.all(np.abs(late[[0, 2]]) < 3)


def test_slow_hosts_are_launch() -> None:
    # given kernels of a quarter of the time that a host takes to launch them
    late = replace(JOB, workload=replace(JOB.workload, host_ns=2 * MS))

    assert np.all(of_third_step(late)["launch"] > 5)


@pytest.mark.parametrize("fault", [None, "gc_pause", "slow_link"])
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zero_bubble"])
def test_kinds_sum_to_what_is_idle(schedule: str, fault: str | None) -> None:
    faults = (Injection(fault, 0, 0.3, first=1),) if fault else ()
    job = run(replace(JOB, cluster=Cluster(2, 4, 2, pipeline_parallel=2), faults=faults,
                      pipeline=Pipeline(schedule, 4)))  # fmt: skip

    events, ends = job.events, np.concatenate([[0.0], job.events.iteration_ends_ns()])
    total = np.sum([*bubbles_of(job).values()], axis=0)
    for rank in (0, 5):
        busy = np.zeros(int(ends[-1] // 1_000) + 1, dtype=bool)
        for n, operation in enumerate(job.program_of(rank)):
            if operation.action in ("compute", "copy", "collective", "synchronise"):
                for start, end in zip(
                    events.device_start_ns[:, n, rank], events.device_end_ns[:, n, rank], strict=True
                ):
                    busy[int(start // 1_000) : int(end // 1_000)] = True
        for i in range(len(ends) - 1):
            step = busy[int(ends[i] // 1_000) : int(ends[i + 1] // 1_000)]
            # sampled each us
            assert total[i, rank] == pytest.approx(float((~step).sum()) * 1_000, rel=0.02)


def test_what_communication_is_not_hidden() -> None:
    # given gradients of two replicas that are reduced when all micro-batches are through
    job = run(JOB)
    exposed = exposed_ns(job)

    assert sorted(exposed) == ["data_parallel", "pipeline_parallel"]
    # but for the last step, behind which nobody asks for more, nearly all that a stage idles is a kernel that waits
    idle = np.sum([*bubbles_of(job).values()], axis=0)
    assert np.all(exposed["pipeline_parallel"][:-1] > 0.9 * idle[:-1])
    assert np.all(exposed["data_parallel"][1:] > 0)
