"""Every fault of the folder: what it costs is what the simulation loses. A new file is tested without code."""

from dataclasses import replace

import numpy as np
import pytest

from traceforge.attribute.cause import causes
from traceforge.errors import UsageError
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection, faults
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, cost_of, run
from traceforge.synth.target import places_of

# Two racks of two nodes, so that every kind of group is there.
JOB = Scenario(iterations=12, seed=3, cluster=Cluster(4, 4, 2, nodes_per_rack=2))
# The same as a pipeline of two stages.
STAGES = replace(
    JOB,
    iterations=8,
    cluster=replace(JOB.cluster, pipeline_parallel=2),
    pipeline=Pipeline(microbatches=2),
    workload=Workload(layers=2, forward_ns=4_000_000),
)
EXPERTS = replace(JOB, iterations=8, cluster=Cluster(4, 4, expert_parallel=4))
SHARDS = replace(JOB, iterations=8, cluster=Cluster(4, 4, nodes_per_rack=2, shard=4))


def injected(fault: str, job: Scenario | None = None, **changes: object) -> Scenario:
    target = faults()[fault].target
    values: dict[str, object] = {"place": 1 if target != "job" else 0, "severity": 0.3, **changes}
    job = job or (STAGES if target in ("stage", "link", "hosts") else EXPERTS if target == "expert" else JOB)
    return replace(job, faults=(Injection(fault, **values),))  # type: ignore[arg-type]


def test_the_issue_s_list_is_there() -> None:
    assert faults().keys() == {
        "allocator_stall", "background_contention", "checkpoint_pause", "compute_straggler", "fabric_episode",
        "far_nic", "gc_pause", "host_contention", "host_input_stall", "host_slow_compute", "hot_expert", "input_stall",
        "job_allocator_pause",
        "job_checkpoint", "job_pause", "launch_stall", "load_imbalance", "oversubscribed_uplink", "p2p_lost",
        "power_cap", "random_jitter", "rotating_pause", "rotating_straggler", "slow_host_link", "slow_link", "slow_nic",
        "small_pauses",
        "stage_slow_backward", "stage_slow_compute", "thermal_drift",
    }  # fmt: skip


@pytest.mark.parametrize("fault", faults())
def test_a_fault_costs_time_where_it_strikes_and_nowhere_before(fault: str) -> None:
    # given a fault from the fifth iteration on
    cost = cost_of(injected(fault, first=4))

    # then the first four are as they were, and the rest of the run takes longer (by up to what was asked for, or
    # thrice where the size is drawn)
    assert cost.removed_ns[0][:4].tolist() == [0, 0, 0, 0]
    share = float(cost.removed_ns[0][4:].mean() / cost.healthy_ns[4:].mean())
    assert 0.02 < share < 0.9


@pytest.mark.parametrize("fault", faults())
@pytest.mark.parametrize("job", [STAGES, SHARDS], ids=["stages", "shards"])
def test_a_fault_costs_other_layouts_time_too(job: Scenario, fault: str) -> None:
    if places_of(job.cluster, faults()[fault].target) == 0:
        with pytest.raises(UsageError, match="the cluster has no"):
            cost_of(injected(fault, job))
        return
    cost = cost_of(injected(fault, job, first=4))

    assert cost.removed_ns[0][:4].tolist() == [0, 0, 0, 0]
    share = float(cost.removed_ns[0][4:].mean() / cost.healthy_ns[4:].mean())
    assert 0.02 < share < 0.9


@pytest.mark.parametrize("fault", faults())
def test_a_fault_of_no_severity_changes_nothing_but_what_the_host_hides(fault: str) -> None:
    cost = cost_of(injected(fault, severity=0.0))

    # a draining stall of no length drains nothing; a host that launches each kernel just in time loses some
    limit = 0.1 if fault == "launch_stall" else 0
    assert np.abs(cost.removed_ns[0]).max() <= limit * cost.healthy_ns.mean()


@pytest.mark.parametrize("fault", faults())
def test_the_draws_of_a_fault_do_not_depend_on_who_else_is_there(fault: str) -> None:
    # given a fault, and the same with another one of no severity after it
    alone = injected(fault)
    together = replace(alone, faults=(*alone.faults, Injection("gc_pause", 2, 0.0)))

    assert np.array_equal(cost_of(alone).duration_ns, cost_of(together).duration_ns)


@pytest.mark.parametrize("fault", faults())
def test_a_fault_s_cause_is_one_that_an_answer_can_name_and_of_its_mode(fault: str) -> None:
    cause = faults()[fault].cause

    assert cause in causes()
    assert causes()[cause].mode == faults()[fault].mode


def test_two_stragglers_hide_one_another() -> None:
    # given two ranks that are equally late
    twice = (Injection("compute_straggler", 1), Injection("compute_straggler", 6))
    cost = cost_of(replace(JOB, faults=twice))

    # then removing either gains next to nothing, and either alone costs as much as both
    excess = float((cost.duration_ns - cost.healthy_ns).mean())
    for removed, added in zip(cost.removed_ns, cost.added_ns, strict=True):
        assert float(removed.mean()) < 0.1 * excess
        assert float(added.mean()) == pytest.approx(excess, rel=0.1)


def test_the_same_seed_makes_the_same_run_and_another_one_does_not() -> None:
    again, other = run(JOB), run(replace(JOB, seed=4))

    assert np.array_equal(run(JOB).events.device_end_ns, again.events.device_end_ns)
    assert not np.array_equal(run(JOB).events.device_end_ns, other.events.device_end_ns)


@pytest.mark.parametrize(
    ("injection", "message"),
    [
        (Injection("gremlins"), "there is no fault `gremlins`"),
        (Injection("gc_pause", 16), "the cluster has no rank 16"),
        (Injection("slow_nic", 4), "the cluster has no node 4"),
        (Injection("fabric_episode", 1), "the cluster has no job 1"),
        (Injection("stage_slow_compute", 1), "the cluster has no stage 1"),
        (Injection("slow_link", 0), "the cluster has no link 0"),
        (Injection("hot_expert", 0), "the cluster has no expert 0"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(injection: Injection, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(replace(JOB, faults=(injection,)))


def test_a_fault_of_links_that_nobody_uses_is_refused() -> None:
    # given one node: nothing crosses a network
    lonely = Scenario(cluster=Cluster(1, 4), faults=(Injection("fabric_episode"),))

    with pytest.raises(UsageError, match="no collective runs where the fault would strike"):
        run(lonely)
