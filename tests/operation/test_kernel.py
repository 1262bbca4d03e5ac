"""Device work and the operations that launched it: every event is in a row, or counted with the reason why not."""

import random

import pytest

from tests.given import DEVICE, US, WORKER, Trace, built, rows_of, store_of, store_of_runs
from traceforge.operation import calls, rank_rows
from traceforge.store.database import Store

COVERAGE = "SELECT reason, is_counted, events, duration_ns FROM operation.coverage ORDER BY rank, reason"


def told(*traces: Trace) -> Store:
    return built(store_of(*traces), "operation.kernel", "operation.coverage", "operation.by_operation")


def test_a_kernel_belongs_to_the_innermost_operation_around_its_launch() -> None:
    # host:   |linear [addmm  launch]|          device: later, when the host has gone on
    trace = Trace().step(0, 0, 1_000).host_work("forward", 0, 400, "user_annotation")
    trace.host_work("nn.Module: Linear_3", 5, 300, "python_function")
    trace.host_work("aten::linear", 10, 200).host_work("aten::addmm", 20, 100)
    trace.kernel(500, 560, "volta_sgemm_128x64_tn", launch_ns=50)

    store = told(trace)

    columns = "kernel, kind, operation, annotation, module, joined, calls, duration_ns, operation_calls"
    assert rows_of(store, f"SELECT {columns} FROM operation.kernel") == [
        ("volta_sgemm_128x64_tn", "matrix_product", "aten::addmm", "forward", "Linear_3", "operation", 1, 60, 1)
    ]


def test_calls_that_are_alike_are_one_row_with_median_and_tail() -> None:
    trace = Trace().step(0, 0, 10_000)
    for number, duration in enumerate((10, 20, 90)):
        at = 100 + 1_000 * number
        trace.host_work("aten::add", at, at + 50).kernel(at + 60, at + 60 + duration, "add", launch_ns=at + 1)

    store = told(trace)

    assert rows_of(store, "SELECT calls, duration_ns, p50_ns, p95_ns FROM operation.kernel") == [(3, 120, 20, 90)]


def test_what_has_no_operation_is_counted_with_its_reason() -> None:
    trace = Trace().step(0, 0, 1_000)
    trace.host_work("aten::add", 10, 20).kernel(100, 110, launch_ns=15)
    trace.kernel(200, 220, launch_ns=150)
    trace.unlaunched_kernel(300, 330, "gemm")
    trace.event("kernel", "gemm", 400, 440, track_id=DEVICE, stream=7)
    trace.event("cuda_runtime", "cudaGraphLaunch", 450, 460, correlation=77)
    trace.event("kernel", "gemm", 500, 550, track_id=DEVICE, stream=7, correlation=77)
    trace.kernel(2_000, 2_060, launch_ns=900)

    store = told(trace)

    assert rows_of(store, COVERAGE) == [
        ("graph_launch", True, 1, 50),
        ("no_correlation", True, 1, 40),
        ("no_launch", True, 1, 30),
        ("no_operation", True, 1, 20),
        ("not_judged", False, 1, 60),
        ("operation", True, 1, 10),
    ]


def test_an_annotation_of_the_training_thread_holds_for_what_other_threads_launch() -> None:
    # Backward runs on a thread of its own, while the training thread waits inside of the annotation.
    trace = Trace().step(0, 0, 1_000).host_work("backward", 0, 800, "user_annotation")
    trace.event("cpu_op", "aten::mm", 100, 200, track_id=WORKER)
    trace.event("cuda_runtime", "cudaLaunchKernel", 150, 151, track_id=WORKER, correlation=5)
    trace.event("kernel", "gemm", 300, 400, track_id=DEVICE, stream=7, correlation=5)

    store = told(trace)

    assert rows_of(store, "SELECT operation, annotation FROM operation.kernel") == [("aten::mm", "backward")]


def test_arithmetic_counts_once_a_call_in_the_row_of_its_longest_kernel() -> None:
    # 64 x 64 x 64 in two kernels, of which the second only adds up parts.
    trace = Trace().step(0, 0, 10_000).on_device("NVIDIA H100 80GB HBM3")
    trace.operation("aten::mm", 100, 200, [[64, 64], [64, 64]], ["c10::Half"] * 2)
    trace.kernel(300, 1_300, "gemm", launch_ns=110).kernel(1_300, 1_400, "splitKreduce_kernel", launch_ns=120)

    store = told(trace)

    flops = 2 * 64**3
    columns = "kernel, operation_calls, flops, bytes, flops_per_s, bound, memory_duration_ns, shapes, dtype"
    assert rows_of(store, f"SELECT {columns} FROM operation.kernel") == [
        # Bytes decide: 24,576 of them at 3.35 TB/s take 7.3 ns, the arithmetic at 989 TFLOP/s 0.5 ns.
        ("gemm", 1, flops, 24_576, flops * 1e9 / 1_000, "memory", 7, "[[64,64],[64,64]]", "c10::Half"),
        ("splitKreduce_kernel", 0, None, None, None, None, None, "[[64,64],[64,64]]", "c10::Half"),
    ]
    assert rows_of(store, "SELECT operation, operation_calls, calls, flops FROM operation.by_operation") == [
        ("aten::mm", 1, 2, flops)
    ]


def test_shapes_beyond_any_device_are_no_work() -> None:
    trace = Trace().step(0, 0, 10 * US).operation("aten::mm", 100, 200, [[2**40, 2**40], [2**40, 2**40]])

    store = told(trace.kernel(300, 900, launch_ns=110))

    assert rows_of(store, "SELECT flops, bytes FROM operation.kernel") == [(None, None)]


@pytest.mark.parametrize(
    ("device", "dtype", "kernel", "is_known"),
    [
        ("NVIDIA H100 80GB HBM3", "float", "gemm", False),
        ("NVIDIA H100 80GB HBM3", "float", "sm90_xmma_gemm_f32f32_tf32f32", True),
        ("Tesla V100-SXM2-16GB", "float", "gemm", True),
        ("some device", "c10::Half", "gemm", False),
        ("NVIDIA H100 80GB HBM3", "double", "gemm", False),
    ],
)
def test_a_peak_that_is_not_known_is_not_guessed(device: str, dtype: str, kernel: str, is_known: bool) -> None:
    trace = Trace().step(0, 0, 10 * US).on_device(device)
    trace.operation("aten::mm", 100, 200, [[512, 512], [512, 512]], [dtype] * 2).kernel(300, 900, kernel, launch_ns=110)

    store = told(trace)

    ((flops, ideal, bound),) = rows_of(store, "SELECT flops, memory_duration_ns, bound FROM operation.kernel")
    assert flops == 2 * 512**3
    assert ((ideal is not None), (bound is not None)) == (is_known, is_known)


def test_without_a_device_the_hosts_operations_stand_in_with_their_own_time() -> None:
    trace = Trace().step(0, 0, 1_000).host_work("aten::linear", 100, 400).host_work("aten::mm", 150, 350)

    store = told(trace)

    columns = "kernel, operation, joined, calls, duration_ns"
    assert rows_of(store, f"SELECT {columns} FROM operation.kernel ORDER BY operation") == [
        (None, "aten::linear", "host", 1, 100),
        (None, "aten::mm", "host", 1, 200),
    ]


def test_steps_that_are_warm_up_do_not_count() -> None:
    trace = Trace().step(0, 0, 9_000)
    trace.kernel(100, 8_900, "slow")
    for number in range(1, 5):
        start = 9_000 + 1_000 * number
        trace.step(number, start, start + 1_000).kernel(start + 10, start + 20, "fast")

    store = told(trace)

    assert rows_of(store, "SELECT kernel, calls FROM operation.kernel") == [("fast", 4)]
    assert rows_of(store, "SELECT events FROM operation.coverage WHERE reason = 'not_judged'") == [(1,)]


@pytest.mark.parametrize("at_once", [1, 2, 3, 7])
def test_a_large_rank_is_looked_at_in_stretches_and_told_alike(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Spans of all kinds that end in a later stretch than they begin in, and some that do not.
    chance = random.Random(11)  # noqa: S311
    trace = Trace().step(0, 0, 4_000).host_work("forward", 0, 1_900, "user_annotation")
    trace.host_work("backward", 2_000, 3_900, "user_annotation")
    trace.host_work("nn.Module: Block", 0, 2_900, "python_function")
    trace.host_work("nn.Module: Head", 3_000, 3_900, "python_function").host_work("aten::linear", 0, 3_500)
    for number in range(20):
        at = 100 + 180 * number
        trace.operation("aten::mm", at, at + chance.randrange(20, 170), [[8, 8], [8, 8]], ["float"] * 2)
        trace.kernel(at + 60, at + 60 + chance.randrange(5, 90), launch_ns=at + chance.randrange(1, 175))
    trace.event("cpu_op", "aten::add", 500, 3_000, track_id=WORKER)
    trace.event("cuda_runtime", "cudaLaunchKernel", 2_500, 2_501, track_id=WORKER, correlation=5)
    trace.event("kernel", "gemm", 2_600, 2_610, track_id=DEVICE, stream=7, correlation=5)
    query = "SELECT * FROM operation.kernel ORDER BY ALL"
    whole = rows_of(built(store_of_runs([trace]), "operation.kernel"), query)

    monkeypatch.setattr(calls, "_MOST_AT_ONCE", at_once)
    monkeypatch.setattr(rank_rows, "_AT_ONCE", at_once)

    assert rows_of(built(store_of_runs([trace]), "operation.kernel"), query) == whole
    assert {row[6] for row in whole} == {"aten::linear", "aten::mm", "aten::add", None}


def test_every_event_of_a_device_is_counted_once() -> None:
    chance = random.Random(7)  # noqa: S311
    jobs, amounts = [], []
    for _ in range(25):
        trace = Trace().step(0, 0, 2_000).host_work("aten::add", 0, 1_000)
        spent = count = 0
        for _ in range(chance.randrange(1, 9)):
            start, duration = chance.randrange(3_000), chance.randrange(200)
            if chance.random() < 0.5:
                trace.kernel(start, start + duration, launch_ns=max(0, start - 20))
            else:
                trace.unlaunched_kernel(start, start + duration, "gemm")
            has_time = chance.random() < 0.8
            count += 1
            spent += duration if has_time else 0
            if not has_time:
                trace.events[-1]["duration_ns"] = None
        jobs.append([trace])
        amounts.append((count, spent))

    store = built(store_of_runs(*jobs), "operation.kernel", "operation.coverage")

    sums = "SELECT run_id, SUM({}), SUM(duration_ns) FROM operation.{} GROUP BY run_id ORDER BY run_id"
    assert [row[1:] for row in rows_of(store, sums.format("events", "coverage"))] == amounts
    counted = sums.format("events", "coverage").replace("GROUP", "WHERE is_counted GROUP")
    assert rows_of(store, counted) == rows_of(store, sums.format("calls", "kernel"))
