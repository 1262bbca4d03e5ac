"""What a pipeline would take in another order, against the same job generated in that order."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.given import rows_of
from tests.timeline.pipelines import simulated
from traceforge.synth.cluster import Cluster
from traceforge.synth.load import Noise
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario

JOB = Scenario(
    iterations=3,
    cluster=Cluster(1, 4, pipeline_parallel=4),
    workload=Workload(layers=8),
    noise=Noise(),
    pipeline=Pipeline(microbatches=8, message_bytes=4_000_000, batched=False),
)
TOLD = "SELECT schedule, chunks, iteration_ns, saved_ns FROM timeline.other_schedule ORDER BY ALL"


@pytest.mark.parametrize(
    ("schedule", "chunks", "other"), [("interleaved", 2, "interleaved"), ("zb_h1", 1, "zero_bubble")]
)
def test_another_order_takes_what_the_job_takes_in_it(schedule: str, chunks: int, other: str, tmp_path: Path) -> None:
    recorded = simulated(JOB, tmp_path / "recorded")
    true = simulated(replace(JOB, pipeline=replace(JOB.pipeline, schedule=other, chunks=chunks)), tmp_path / "other")

    told = {(name, count): (taken, saved) for name, count, taken, saved in rows_of(recorded.store, TOLD)}
    true_ns, was_ns = (one.truth["duration_ns"][1] for one in (true, recorded))

    assert set(told) == {("zb_h1", 1), ("interleaved", 2), ("interleaved", 4)}
    taken_ns, saved_ns = told[schedule, chunks]
    assert taken_ns == pytest.approx(true_ns, rel=0.01)
    assert saved_ns == pytest.approx(was_ns - true_ns, abs=0.01 * was_ns)


def test_micro_batches_that_do_not_go_round_cannot_be_interleaved(tmp_path: Path) -> None:
    # six micro-batches on four stages
    found = simulated(replace(JOB, pipeline=replace(JOB.pipeline, microbatches=6)), tmp_path)

    assert {name for name, *_ in rows_of(found.store, TOLD)} == {"zb_h1"}


def test_a_job_in_chunks_already_is_left_as_it_is(tmp_path: Path) -> None:
    chunked = replace(JOB.pipeline, schedule="interleaved", chunks=2)

    assert rows_of(simulated(replace(JOB, pipeline=chunked), tmp_path).store, TOLD) == []
