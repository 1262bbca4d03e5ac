"""What a pipeline would take in another order, against the same job generated in that order."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.given import rows_of
from tests.timeline.pipelines import Simulated, simulated, truth_alone
from traceforge.synth.cluster import Cluster
from traceforge.synth.load import Noise
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario
from traceforge.timeline.other_schedule import other_orders

JOB = Scenario(
    iterations=3,
    cluster=Cluster(1, 4, pipeline_parallel=4),
    workload=Workload(layers=8),
    noise=Noise(),
    pipeline=Pipeline(microbatches=8, message_bytes=4_000_000, batched=False),
)
TOLD = "SELECT schedule, chunks, iteration_ns, saved_ns FROM timeline.other_schedule ORDER BY ALL"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """The job as it was recorded."""
    return simulated(JOB, tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize(
    ("schedule", "chunks", "other"), [("interleaved", 2, "interleaved"), ("zb_h1", 1, "zero_bubble")]
)
def test_another_order_takes_what_the_job_takes_in_it(
    recorded: Simulated, schedule: str, chunks: int, other: str, tmp_path: Path
) -> None:
    true = truth_alone(replace(JOB, pipeline=replace(JOB.pipeline, schedule=other, chunks=chunks)), tmp_path)

    told = {(name, count): (taken, saved) for name, count, taken, saved in rows_of(recorded.store, TOLD)}
    true_ns, was_ns = (one["duration_ns"][1] for one in (true, recorded.truth))

    assert set(told) == {("zb_h1", 1), ("interleaved", 2), ("interleaved", 4)}
    taken_ns, saved_ns = told[schedule, chunks]
    assert taken_ns == pytest.approx(true_ns, rel=0.01)
    assert saved_ns == pytest.approx(was_ns - true_ns, abs=0.01 * was_ns)


def test_orders_are_those_that_were_published() -> None:
    # given two stages and four micro-batches; F12 is the forward pass of micro-batch 2 through chunk 1
    letters = {"forward": "F", "backward": "B", "backward_input": "B", "backward_weight": "W"}
    told = {
        (name, chunks): [" ".join(f"{letters[t.direction]}{t.chunk}{t.microbatch}" for t in own) for own in orders]
        for name, chunks, orders in other_orders(2, 4)
    }

    # Megatron-LM: 2 (p - s - 1) + (v - 1) p forward passes ahead, four on the first stage and two on the last
    assert told["interleaved", 2] == [
        "F00 F01 F10 F11 F02 B10 F03 B11 F12 B00 F13 B01 B12 B13 B02 B03",
        "F00 F01 F10 B10 F11 B11 F02 B00 F03 B01 F12 B12 F13 B13 B02 B03",
    ]
    # Zero Bubble's H1: weights one turn later on the second stage
    assert told["zb_h1", 1] == [
        "F00 F01 B00 W00 F02 B01 W01 F03 B02 W02 B03 W03",
        "F00 B00 F01 B01 W00 F02 B02 W01 F03 B03 W02 W03",
    ]


def test_micro_batches_that_do_not_go_round_cannot_be_interleaved(tmp_path: Path) -> None:
    # six micro-batches on four stages
    found = simulated(replace(JOB, pipeline=replace(JOB.pipeline, microbatches=6)), tmp_path)

    assert {name for name, *_ in rows_of(found.store, TOLD)} == {"zb_h1"}


def test_a_job_in_chunks_already_is_left_as_it_is(tmp_path: Path) -> None:
    chunked = replace(JOB.pipeline, schedule="interleaved", chunks=2)

    assert rows_of(simulated(replace(JOB, pipeline=chunked), tmp_path).store, TOLD) == []
