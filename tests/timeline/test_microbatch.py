"""Passes of micro-batches are told from what hosts launch between sends and receives."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.given import Trace, rows_of
from tests.stories import told
from tests.timeline.pipelines import simulated
from traceforge.synth.cluster import Cluster
from traceforge.synth.load import Noise
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario, SimulatedJob
from traceforge.timeline.chunks import Passes, group_size_of
from traceforge.timeline.turns import BACKWARD, FORWARD, Turns

OF_ITERATION = """
SELECT direction, chunk, microbatch FROM timeline.microbatch WHERE rank = ? AND iteration = ? ORDER BY turn
"""
TURNS = """
SELECT rank, direction, chunk, microbatch, start_ns, duration_ns FROM timeline.microbatch ORDER BY rank, turn
"""


def _backward(trace: Trace, start_ns: int, end_ns: int) -> None:
    trace.host_work("autograd::engine::evaluate_function: MmBackward0", start_ns, end_ns)
    trace.kernel(start_ns, end_ns, "gemm_grad")


def _forward_alone() -> list[Trace]:
    """Two micro-batches go forward through two stages, 100 ns a turn, messages of 20 ns, and nothing comes back."""
    ranks = [0, 1]
    first, last = (Trace(rank).step(1, 0, 2_000) for rank in ranks)
    for n in (0, 200):
        first.kernel(100 + n, 200 + n).exchange(200 + n, 220 + n, [("send", 1)], ranks=ranks)
        last.exchange(150 + n, 220 + n, [("recv", 0)], ranks=ranks).kernel(220 + n, 320 + n)
    return [first, last]


def _two_stages() -> list[Trace]:
    """Two micro-batches go through two stages, GPipe, 100 ns a turn, messages of 20 ns; the optimizer comes last.

    stage 0   F0 F1 ······ B0 B1 optimizer
    stage 1      F0 F1 B0 B1     optimizer
    """
    ranks = [0, 1]
    first, last = (Trace(rank).step(1, 0, 2_000) for rank in ranks)
    first.kernel(100, 150).kernel(160, 200).exchange(200, 220, [("send", 1)], ranks=ranks)
    first.kernel(240, 340).exchange(340, 360, [("send", 1)], ranks=ranks)
    last.exchange(150, 220, [("recv", 0)], ranks=ranks)
    last.kernel(220, 320).exchange(325, 360, [("recv", 0)], ranks=ranks)
    last.kernel(370, 470)
    for n in range(2):
        _backward(last, 500 + 200 * n, 600 + 200 * n)
        last.exchange(610 + 200 * n, 630 + 200 * n, [("send", 0)], ranks=ranks)
        first.exchange(580 + 200 * n, 630 + 200 * n, [("recv", 1)], ranks=ranks)
        _backward(first, 640 + 200 * n, 740 + 200 * n)
    for trace in (first, last):
        trace.kernel(1_500, 1_600, "adam")
    return [first, last]


def test_turns_lie_between_messages_and_autograd_tells_their_direction() -> None:
    store = told(*_two_stages(), stage="timeline")

    assert rows_of(store, TURNS) == [
        (0, "forward", 0, 0, 100, 100),
        (0, "forward", 0, 1, 240, 100),
        (0, "backward", 0, 0, 640, 100),
        (0, "backward", 0, 1, 840, 100),
        (1, "forward", 0, 0, 220, 100),
        (1, "forward", 0, 1, 370, 100),
        (1, "backward", 0, 0, 500, 100),
        (1, "backward", 0, 1, 700, 100),
    ]
    assert rows_of(store, "SELECT schedule, microbatches FROM timeline.schedule") == [("gpipe", 2)]


def test_a_pipeline_that_only_goes_forward_has_no_other_order() -> None:
    store = told(*_forward_alone(), stage="timeline")

    assert rows_of(store, "SELECT direction, COUNT(*) FROM timeline.microbatch GROUP BY ALL") == [("forward", 4)]
    assert rows_of(store, "SELECT COUNT(*) FROM timeline.other_schedule") == [(0,)]


def test_where_messages_come_back_and_no_work_does_nothing_is_told() -> None:
    # given a training job of which no host operation was recorded, so that nothing says what autograd launched
    traces = _two_stages()
    for trace in traces:
        trace.events = [one for one in trace.events if not str(one["name"]).startswith("autograd::")]

    store = told(*traces, stage="timeline")

    assert rows_of(store, "SELECT COUNT(*) FROM timeline.message") == [(4,)]
    assert rows_of(store, "SELECT COUNT(*) FROM timeline.microbatch") == [(0,)]


def test_a_rank_whose_turns_do_not_fit_its_messages_has_none() -> None:
    # given a first stage without the kernels of its second micro-batch
    first, last = _two_stages()
    first.events = [event for event in first.events if event["raw_start_ns"] not in (240, 840)]

    store = told(first, last, stage="timeline")

    assert rows_of(store, "SELECT DISTINCT rank FROM timeline.microbatch") == [(1,)]
    assert rows_of(store, "SELECT COUNT(*) FROM timeline.bubble") == [(0,)]


def test_a_job_without_stages_has_no_turns() -> None:
    trace = Trace(0).step(1, 0, 100).kernel(0, 50)

    store = told(trace, stage="timeline")

    assert rows_of(store, "SELECT COUNT(*) FROM timeline.microbatch") == [(0,)]
    assert rows_of(store, "SELECT COUNT(*) FROM timeline.bubble") == [(0,)]


JOB = Scenario(
    iterations=2,
    cluster=Cluster(1, 2, pipeline_parallel=2, naming="megatron"),
    workload=Workload(layers=4),
    noise=Noise(),
    pipeline=Pipeline(microbatches=4),
)
FOUR = replace(JOB, cluster=replace(JOB.cluster, devices=4, pipeline_parallel=4))


def _true_turns(job: SimulatedJob, rank: int) -> list[tuple[str, int, int]]:
    computing = [one for one in job.program_of(rank) if one.work and one.action == "compute"]
    return list(dict.fromkeys((str(one.work), one.chunk, one.microbatch) for one in computing))


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("gpipe", replace(FOUR, pipeline=Pipeline("gpipe", 4, batched=False))),
        ("1f1b", replace(JOB, pipeline=Pipeline("1f1b", 6))),
        # chunks of two stages cannot be told by who sends to whom
        ("interleaved", replace(JOB, pipeline=Pipeline("interleaved", 4, 2))),
        # without annotations, and with two weight parts in a row at the end
        ("zb_h1", replace(JOB, pipeline=Pipeline("zero_bubble", 6))),
        ("zb_h1", replace(FOUR, cluster=replace(FOUR.cluster, naming="mesh"), pipeline=Pipeline("zero_bubble", 4))),
    ],
)
def test_generated_schedules_are_named_and_every_turn_is_told(name: str, scenario: Scenario, tmp_path: Path) -> None:
    found = simulated(scenario, tmp_path)

    assert set(rows_of(found.store, "SELECT schedule, microbatches, chunks FROM timeline.schedule")) == {
        (name, scenario.pipeline.microbatches, scenario.pipeline.chunks)
    }
    for rank in range(scenario.cluster.ranks):
        for iteration in found.truth["iterations"]:
            told = rows_of(found.store, OF_ITERATION, [rank, iteration])
            assert told == _true_turns(found.job, rank)


def _passes(starts_ns: list[int]) -> Passes:
    """Forward turns of 10 ns, and as many backward ones behind them."""
    count = len(starts_ns)
    start = np.array([*starts_ns, *range(1_000, 1_000 + 20 * count, 20)])
    letter = np.repeat([FORWARD, BACKWARD], count)
    unknown = np.full(2 * count, -1)
    turns = Turns(unknown, letter, unknown, unknown, start, start, start + 10, unknown, unknown)
    return Passes(turns, unknown, unknown)


def test_micro_batches_go_through_chunks_in_groups_as_large_as_the_pipeline_is_deep() -> None:
    # two stages, four micro-batches, two chunks: 0 1 of the first chunk, 0 1 of the second, 2 3 …
    first, last = _passes([0, 10, 20, 30, 40, 50, 60, 70]), _passes([10, 20, 30, 40, 50, 60, 70, 80])

    size = group_size_of({0: first, 1: last}, {0: 0, 1: 1}, 2, microbatches=4, chunks=2)

    assert size == 2
    told = first.in_groups(size, 4, 2)
    assert list(zip(told.chunk.tolist(), told.microbatch.tolist(), strict=True)) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3),
        (1, 0), (1, 1), (0, 0), (0, 1), (1, 2), (1, 3), (0, 2), (0, 3),
    ]  # fmt: skip


def test_groups_in_which_a_pass_would_begin_before_the_one_it_needs_are_not_taken() -> None:
    # the last stage ends its second turn at 60, after the first one has begun its third and fourth
    first, last = _passes([0, 10, 20, 30, 70, 80, 90, 100]), _passes([40, 50, 60, 70, 80, 90, 100, 110])

    assert group_size_of({0: first, 1: last}, {0: 0, 1: 1}, 2, microbatches=4, chunks=2) == 4
