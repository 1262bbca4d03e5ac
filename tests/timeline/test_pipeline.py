"""A pipeline's mean iteration, and what more micro-batches or equal stages would make of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.given import rows_of
from tests.timeline.pipelines import simulated, truth_alone
from traceforge.replay.what_if import of_pipelines
from traceforge.synth.cluster import Cluster
from traceforge.synth.load import Noise
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario

JOB = Scenario(
    iterations=4,
    cluster=Cluster(1, 4, pipeline_parallel=4),
    workload=Workload(layers=4),
    noise=Noise(),
    pipeline=Pipeline(microbatches=3, message_bytes=4_000_000),
)
TOLD = """
SELECT more_microbatches, more_iteration_ns, more_fill_drain_share, even_saved_ns, bubble_ns, iteration_ns
FROM timeline.pipeline
"""


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_more_micro_batches_take_what_the_same_job_with_more_of_them_takes(schedule: str, tmp_path: Path) -> None:
    few = simulated(replace(JOB, pipeline=replace(JOB.pipeline, schedule=schedule)), tmp_path / "few")
    many = truth_alone(replace(JOB, pipeline=replace(JOB.pipeline, schedule=schedule, microbatches=12)), tmp_path)

    ((number, iteration_ns, share, _, _, _),) = few.store.query(TOLD).rows()
    assert number == 12
    assert iteration_ns == pytest.approx(many["duration_ns"][1], rel=0.02)
    kinds = many["bubble_ns"]
    true_ns = sum(kinds[kind][1][0] for kind in ("fill", "drain"))
    assert share == pytest.approx(true_ns / many["duration_ns"][1], abs=0.005)


def test_equal_stages_save_what_the_longest_one_has_above_the_mean(tmp_path: Path) -> None:
    # given a head that makes the last stage half as long again: 3 ms a pass of 6 ms, on 8 micro-batches
    pipeline = Pipeline(microbatches=8, head_ns=1_000_000, message_bytes=0)
    found = simulated(replace(JOB, pipeline=pipeline), tmp_path)

    ((_, _, _, saved_ns, bubble_ns, iteration_ns),) = found.store.query(TOLD).rows()
    # the last stage works 8 passes of 9 ms in a row; with stages of 6.75 ms all of them do 8 + 3 passes
    assert saved_ns == pytest.approx(8 * 9e6 + 3 * 6e6 - 11 * 6.75e6, rel=0.05)
    parts = rows_of(
        found.store,
        "SELECT fill_drain_ns + imbalance_ns + transfer_ns + late_peer_ns FROM timeline.pipeline",
    )
    assert parts == [(bubble_ns,)]
    assert 0 < bubble_ns < iteration_ns


def test_a_job_without_a_pipeline_has_none(tmp_path: Path) -> None:
    found = simulated(Scenario(iterations=2, cluster=Cluster(1, 2)), tmp_path)

    assert rows_of(found.store, TOLD) == []


@pytest.mark.parametrize("iterations", [1, 3])
def test_the_first_iteration_is_left_out_unless_it_is_alone(iterations: int, tmp_path: Path) -> None:
    found = simulated(replace(JOB, iterations=iterations), tmp_path)

    judged = rows_of(
        found.store,
        "SELECT w.iteration, AVG(w.duration_ns) FROM timeline.rank_iteration AS w JOIN timeline.iteration AS i "
        "USING (run_id, iteration) WHERE NOT i.is_warmup AND NOT i.is_partial GROUP BY w.iteration "
        "ORDER BY w.iteration",
    )
    means = [mean for _, mean in (judged[1:] or judged)]
    ((is_left_out, iteration_ns),) = rows_of(
        found.store, "SELECT is_first_left_out, iteration_ns FROM timeline.pipeline"
    )
    assert is_left_out == (len(judged) > 1)
    assert iteration_ns == pytest.approx(sum(means) / len(means), abs=1)


def test_what_if_has_the_pipelines_other_settings(tmp_path: Path) -> None:
    found = simulated(replace(JOB, cluster=Cluster(1, 2, pipeline_parallel=2), iterations=3), tmp_path)

    more, even, split = of_pipelines(found.store)

    ((_, iteration_ns, _, saved_ns, _, was_ns),) = found.store.query(TOLD).rows()
    # four times the samples in an iteration that is longer
    assert (more.edit, more.parameters) == ("more_microbatches", "microbatches=12")
    assert more.throughput_ratio == pytest.approx(4 * was_ns / iteration_ns)
    assert more.saved_ns_per_iteration == was_ns - iteration_ns < 0
    assert (even.edit, even.saved_ns_per_iteration, even.iteration_ns) == ("even_stages", saved_ns, was_ns - saved_ns)
    assert (more.throughput_ratio_low, even.throughput_ratio_high) == (None, None)
    ((other_ns,),) = rows_of(found.store, "SELECT saved_ns FROM timeline.other_schedule")
    assert (split.edit, split.parameters) == ("other_schedule", "schedule=zb_h1,chunks=1")
    assert split.throughput_ratio == pytest.approx(was_ns / (was_ns - other_ns))
