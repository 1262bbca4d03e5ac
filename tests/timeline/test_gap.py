"""Why a device had nothing to do: each gap has one cause, drawn by hand."""

import pytest

from tests.given import MS, US, WORKER, Trace, data_parallel_job, rows_of
from tests.stories import told
from traceforge.vocabulary import vocabulary

HOLDING = [one for one in vocabulary().activities if one.gap_cause]
GAPS = "SELECT start_ns, duration_ns, cause FROM timeline.gap ORDER BY start_ns"


def _gaps(trace: Trace) -> list[tuple[object, ...]]:
    return rows_of(told(trace, stage="timeline"), GAPS)


@pytest.mark.parametrize(
    ("name", "category", "cause"),
    [
        *((name, category, one.gap_cause) for one in HOLDING for category, name in [one.example]),
        ("cudaMemcpy", "cuda_runtime", "copy_wait"),
        ("cudaMemcpyAsync", "cuda_runtime", "copy_wait"),
    ],
)
def test_a_gap_is_called_after_what_held_the_training_thread_for_most_of_it(
    name: str, category: str, cause: str
) -> None:
    # device   |kernel 0–10|                      |kernel 60–100|
    # host                 |…held 12––––––––55|launch 58|
    trace = Trace().step(1, 0, 100).kernel(0, 10).kernel(60, 100, launch_ns=58).host_work(name, 12, 55, category)

    assert _gaps(trace) == [(10, 50, cause)]


def test_work_that_was_launched_after_the_gap_began_came_late() -> None:
    # device   |kernel 0–10|               |kernel 60–100|
    # host            |aten::mm 5–––––––––58|launch 58|
    trace = Trace().step(1, 0, 100).kernel(0, 10).kernel(60, 100, launch_ns=58).host_work("aten::mm", 5, 58)

    store = told(trace, stage="timeline")

    assert rows_of(store, "SELECT cause, cause_ns, launch_lead_ns FROM timeline.gap") == [("late_launch", 50, -48)]


def test_work_that_was_launched_before_was_held_up_on_the_device() -> None:
    # device   |kernel 0–10|      |kernel 14–100|
    # host     |launch 3|
    trace = Trace().step(1, 0, 100).kernel(0, 10).kernel(14, 100, launch_ns=3)

    store = told(trace, stage="timeline")

    assert rows_of(store, "SELECT cause, launch_lead_ns FROM timeline.gap") == [("device_queue", 7)]


def test_an_operation_in_which_nothing_happens_for_milliseconds_stands_still() -> None:
    # device   |kernel 0–1|                                                      |kernel 12–13|  ms
    # host     |backward 0–––––––––––––––––––––––––––––––––––––––––––––––––––––––––––––––––12|
    # inside   |launch 0|          nothing           |aten::mm 8–9|aten::mm 9–12|launch 12|
    trace = Trace().step(1, 0, 14 * MS).kernel(0, MS, launch_ns=0).kernel(12 * MS, 13 * MS, launch_ns=12 * MS - US)
    trace.host_work("autograd::engine::evaluate_function: MulBackward0", 0, 12 * MS)
    trace.host_work("aten::mm", 8 * MS, 9 * MS).host_work("aten::mm", 9 * MS, 12 * MS - 2 * US)

    store = told(trace, stage="timeline")

    sql = (
        "SELECT activity, start_ns, duration_ns FROM timeline.segment WHERE start_ns BETWEEN 1 AND 11999999 ORDER BY 2"
    )
    assert rows_of(store, sql) == [
        ("stall", MS, 7 * MS),
        ("operation", 8 * MS, 4 * MS - US),
        ("launch", 12 * MS - US, 1),
        ("operation", 12 * MS - US + 1, US - 1),
    ]


def test_a_gap_that_nothing_ends_is_unknown() -> None:
    # device   |kernel 0–10|      (step until 100)
    assert _gaps(Trace().step(1, 0, 100).kernel(0, 10)) == [(10, 90, "unknown")]


def test_what_the_thread_of_the_backward_pass_does_counts_as_well() -> None:
    # device    |kernel 0–10|                                   |kernel 60–100|
    # training  |loss.backward() 5––––––––––––––––––––––––––––––––––––––––––95|
    # backward         |MulBackward0 8–––|cudaMalloc 12–––––––55|launch 58––|59|
    # watchdog  |cudaEventQuery 0––––––––––––––––––––––––––––––––––––––––––100|
    trace = Trace().step(1, 0, 100).kernel(0, 10, launch_ns=0).host_work("backward", 5, 95, "user_annotation")
    trace.unlaunched_kernel(60, 100, "gemm").event("cpu_op", "MulBackward0", 8, 59, track_id=8)
    for name, start, end, thread in (
        ("cudaMalloc", 12, 55, 8), ("cudaLaunchKernel", 58, 59, 8), ("cudaEventQuery", 0, 100, 9)
    ):  # fmt: skip
        trace.event("cuda_runtime", name, start, end, track_id=thread)

    assert _gaps(trace) == [(10, 50, "allocator")]


def test_what_a_thread_does_that_saves_the_model_beside_the_step_does_not_count() -> None:
    # device    |kernel 0–10|                                   |kernel 60–100|
    # saving           |aten::copy_ 8–|cudaMalloc 12–––––––55|copy 58––|59|
    trace = Trace().step(1, 0, 100).kernel(0, 10, launch_ns=0).kernel(60, 100, launch_ns=60)
    trace.event("cpu_op", "aten::copy_", 8, 59, track_id=8)
    for name, start, end in (("cudaMalloc", 12, 55), ("cudaMemcpyAsync", 58, 59)):
        trace.event("cuda_runtime", name, start, end, track_id=8)

    assert _gaps(trace) == [(10, 50, "late_launch")]


def test_a_short_hold_does_not_name_a_long_gap() -> None:
    # device   |kernel 0–10|                                |kernel 90–100|
    # host                 |cudaMalloc 12–20|aten::mm 20–88|launch 88|
    trace = Trace().step(1, 0, 100).kernel(0, 10).kernel(90, 100, launch_ns=88)
    trace.host_work("cudaMalloc", 12, 20, "cuda_runtime").host_work("aten::mm", 20, 88)

    assert _gaps(trace) == [(10, 80, "late_launch")]


def test_a_device_is_busy_while_any_of_its_streams_is() -> None:
    # compute         |0–40|            |70–100|
    # copy                |30––––60|
    # communication              |55–70|
    trace = Trace().step(1, 0, 100).kernel(0, 40).copy(30, 60).collective(55, 70).kernel(70, 100)

    assert _gaps(trace) == []


def test_gaps_add_up_to_the_phases_without_device_work() -> None:
    traces = data_parallel_job([[60, 40, 50, 45], [30, 70, 65, 20]])
    traces[2].host_work("load_batch", 2, 71, "user_annotation")
    for trace in traces:
        trace.step(2, 140, 300).host_work("aten::mm", 200, 250)

    store = told(*traces, stage="timeline")

    idle = "FROM timeline.phase WHERE phase IN ('input', 'runtime', 'idle') GROUP BY ALL"
    amounts = "SELECT iteration, rank, CAST(SUM(duration_ns) AS BIGINT)"
    assert rows_of(store, f"{amounts} FROM timeline.gap GROUP BY ALL ORDER BY ALL") == rows_of(
        store, f"{amounts} {idle} ORDER BY ALL"
    )


def test_a_rank_without_a_device_has_no_gaps() -> None:
    assert _gaps(Trace().step(1, 0, 100).host_work("aten::mm", 10, 40)) == []


def test_the_call_that_fills_most_of_a_gap_is_named() -> None:
    # device   |kernel 0–10|                                     |kernel 60–100|
    # host          |launch 8|sync 9–––––20| |malloc 22–30| |sync 32–––55|launch 58|
    trace = Trace().step(1, 0, 100).kernel(0, 10).kernel(60, 100, launch_ns=58)
    trace.host_work("cudaStreamSynchronize", 9, 20, "cuda_runtime").host_work("cudaMalloc", 22, 30, "cuda_runtime")
    trace.host_work("cudaStreamSynchronize", 32, 55, "cuda_runtime")

    store = told(trace, stage="timeline")

    # inside the gap 10–60: 10 of the first synchronisation and 23 of the second
    assert rows_of(store, "SELECT call, call_ns FROM timeline.gap") == [("cudaStreamSynchronize", 33)]


def test_a_call_over_several_gaps_counts_in_each_for_what_lies_there() -> None:
    # device   |kernel 0–10|        |kernel 30–40|        |kernel 70–100|
    # host          |cudaFree 5–––––––––––––––––––––––––60|
    trace = (
        Trace()
        .step(1, 0, 100)
        .kernel(0, 10)
        .kernel(30, 40)
        .kernel(70, 100)
        .host_work("cudaFree", 5, 60, "cuda_runtime")
    )

    store = told(trace, stage="timeline")

    rows = rows_of(store, "SELECT start_ns, call, call_ns FROM timeline.gap ORDER BY start_ns")
    assert rows == [(10, "cudaFree", 20), (40, "cudaFree", 20)]


def test_a_gap_without_a_call_names_none_and_two_threads_fill_it_once() -> None:
    # device   |kernel 0–10|   (nothing –40)
    # threads  |cudaFree 0–––––––––40|  twice in the second trace
    silent = Trace().step(1, 0, 40).unlaunched_kernel(0, 10, "gemm")
    busy = Trace().step(1, 0, 40).unlaunched_kernel(0, 10, "gemm").host_work("cudaFree", 0, 40, "cuda_runtime")
    busy.event("cuda_runtime", "cudaFree", 0, 40, track_id=WORKER)

    asked = "SELECT call, call_ns FROM timeline.gap"
    assert rows_of(told(silent, stage="timeline"), asked) == [(None, None)]
    assert rows_of(told(busy, stage="timeline"), asked) == [("cudaFree", 30)]
