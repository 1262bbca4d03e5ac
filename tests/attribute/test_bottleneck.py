"""Where a mean iteration goes: parts of one rank worked by hand, sums to the ns, and what is said of them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.given import DEVICE, MS, US, Trace, built, data_parallel_job, rows_of, store_of_runs
from tests.stories import Run, told
from traceforge.attribute.bottleneck_parts import divided

PARTS = """
SELECT bound, duration_ns_per_iteration FROM attribute.bottleneck
WHERE rank IS NULL AND duration_ns_per_iteration IS NOT NULL ORDER BY place
"""
BOUND = "SELECT bound, sentence FROM attribute.bound WHERE rank IS NULL"


def attributed(*traces: Trace, world_size: int | None = None) -> Run:
    return told(*traces, world_size=world_size)


def one_step() -> Trace:
    """100 us: 20 load data, 30 compute, 15 communicate, 10 copy, and 25 in which a launch comes late."""
    # |input 20|kernel 30|late launch 25|kernel·comm 15|copy 10|
    trace = Trace().step(0, 0, 100 * US).host_work("enumerate(DataLoader)#next", 0, 20 * US)
    trace.kernel(20 * US, 50 * US, "big_kernel", launch_ns=19 * US)
    trace.host_work("aten::add", 50 * US, 74 * US)
    return trace.collective(75 * US, 90 * US).copy(90 * US, 100 * US)


def test_the_parts_of_a_step_are_those_of_its_device() -> None:
    store = attributed(one_step())

    assert rows_of(store, PARTS) == [
        ("launch_bound", 25 * US),
        ("input_bound", 20 * US),
        ("communication_bound", 15 * US),
        ("copy_bound", 10 * US),
        ("unmodelled_kernels", 30 * US),
    ]
    basis = "SELECT basis FROM attribute.bottleneck WHERE rank = 0 AND bound = "
    assert "cannot be told apart" in str(rows_of(store, f"{basis} 'communication_bound'"))
    assert rows_of(store, f"{basis} 'ideal'") == [("not measured: the trace does not name the device",)]


def test_kernels_are_divided_by_what_limits_them() -> None:
    # 400 us of which arithmetic at 989 TFLOP/s would take 2 * 4096^3 / 989e12 s = 138,968 ns.
    trace = Trace().step(0, 0, 500 * US).on_device("NVIDIA H100 80GB HBM3")
    trace.operation("aten::mm", 0, 10 * US, [[4096, 4096], [4096, 4096]], ["c10::Half"] * 2)
    trace.kernel(100 * US, 500 * US, "gemm", launch_ns=5 * US)
    trace.kernel(20 * US, 25 * US, "tiny", launch_ns=12 * US)

    parts = dict(rows_of(attributed(trace), PARTS))

    assert (parts["ideal"], parts["compute_bound"], parts["small_kernels"]) == (138_968, 400 * US - 138_968, 5 * US)


def test_kernels_that_memory_bounds_are_named_where_nothing_else_is_larger() -> None:
    # |a gemm of unknown shapes 30|adds 40, twice as long as their bytes take|all-reduce 30|
    trace = Trace().step(0, 0, 100 * US).on_device("NVIDIA H100 80GB HBM3").kernel(0, 30 * US, "gemm", launch_ns=0)
    # 3 * 22,333,333 bytes at 3.35 TB/s take 20 us
    trace.operation("aten::add", 1 * US, 9 * US, [[11_166_667], [11_166_667]], ["c10::Half"] * 2)
    trace.kernel(30 * US, 70 * US, "add", launch_ns=5 * US).collective(70 * US, 100 * US)

    ((bound, share, sentence),) = rows_of(
        attributed(trace), "SELECT bound, share, sentence FROM attribute.bound WHERE rank IS NULL"
    )

    assert (bound, share) == ("memory_bound", 0.4)
    assert str(sentence).startswith(
        "The device computes 70 % of each 100 µs step. For 40 %, the largest avoidable part, kernels "
        "are bound by the device's memory"
    )
    assert "50 % of the memory's peak" in str(sentence)


def test_a_rank_alone_says_what_bounds_it() -> None:
    store = attributed(one_step(), world_size=8)

    ((bound, sentence),) = rows_of(store, BOUND)
    assert bound == "launch_bound"
    assert sentence == (
        "The device computes 30 % of each 100 µs step. For 25 %, the largest avoidable part, the device "
        "is idle because the host launches too slowly (1 kernel in it, 30.0 µs on average). The device is busy "
        "55 % of the step."
    )
    ((headline, explanation, step),) = rows_of(store, "SELECT headline, explanation, next_step FROM attribute.verdict")
    assert headline == sentence
    assert "who waits for whom cannot be known" in str(explanation)
    assert str(step).endswith("record the same steps on all ranks.")


def test_a_job_of_one_rank_needs_no_other_ranks() -> None:
    store = attributed(one_step(), world_size=1)

    ((explanation, step),) = rows_of(store, "SELECT explanation, next_step FROM attribute.verdict")
    assert str(explanation).startswith("The job has one rank")
    assert "all ranks" not in str(step)


@pytest.mark.parametrize(
    ("name", "category", "bound"),
    [
        ("cudaStreamSynchronize", "cuda_runtime", "synchronisation_bound"),
        ("cudaMalloc", "cuda_runtime", "allocator"),
        ("gc.collect", "user_annotation", "garbage_collection"),
        ("MPI_Allreduce", "user_annotation", "mpi_call"),
        ("enumerate(DataLoader)#next", "user_annotation", "input_bound"),
    ],
)
def test_what_holds_the_host_names_the_bound(name: str, category: str, bound: str) -> None:
    trace = Trace().step(0, 0, 100 * US).kernel(0, 20 * US).host_work(name, 21 * US, 90 * US, category)
    trace.kernel(90 * US, 100 * US, launch_ns=90 * US)

    ((named, sentence),) = rows_of(attributed(trace), BOUND)

    assert named == bound
    assert "70 %" in str(sentence)


def test_a_device_that_computes_all_the_time_is_bound_by_its_kernels() -> None:
    trace = Trace().step(0, 0, 100 * US).host_work("aten::mm", 0, 5 * US).kernel(2 * US, 100 * US, launch_ns=1 * US)

    ((bound, sentence),) = rows_of(attributed(trace), BOUND)

    assert bound == "unmodelled_kernels"
    assert "most of it in aten::mm (100 % of the kernels' time)" in str(sentence)
    assert "is not measured" in str(sentence)


@pytest.mark.parametrize(
    ("operation", "device", "shapes", "step"),
    [
        ("aten::mm", "a device nobody knows", [[512, 512], [512, 512]], "State what the device can do (--peak"),
        ("aten::mm", "NVIDIA H100 80GB HBM3", [], "Record the shapes of operations"),
        ("mine::conv_of_all", "NVIDIA H100 80GB HBM3", [[512, 512], [512, 512]], "does not follow from the shapes"),
    ],
)
def test_kernels_without_a_model_are_told_what_they_lack(
    operation: str, device: str, shapes: list[list[int]], step: str
) -> None:
    trace = Trace().on_device(device).step(0, 0, 100 * US)
    if shapes:
        trace.operation(operation, 0, 5 * US, shapes, ["c10::Half"] * 2)
    else:
        trace.host_work(operation, 0, 5 * US)
    trace.kernel(2 * US, 100 * US, launch_ns=US)

    ((told,),) = rows_of(attributed(trace), "SELECT next_step FROM attribute.bound WHERE rank IS NULL")

    assert step in str(told)


@pytest.mark.parametrize("has_stacks", [True, False])
def test_what_no_operation_explains_stacks_may(has_stacks: bool) -> None:
    # One rank on a host: 2 ms of work, 1 ms of communication, and 7 ms asleep.
    trace = Trace().step(0, 0, 10 * MS).host_work("aten::mm", 0, 2 * MS)
    trace.gloo(9 * MS, 10 * MS)
    if has_stacks:
        trace.host_work("train.py(3): wait", 2 * MS, 9 * MS, "python_function")
        trace.host_work("<built-in function sleep>", 3 * MS, 9 * MS, "python_function")

    ((_, sentence),) = rows_of(attributed(trace), BOUND)

    told = "the host is in <built-in function sleep>, called from train.py(3): wait."
    assert (told in str(sentence)) == has_stacks
    assert ("what it waits for is not known" in str(sentence)) != has_stacks
    # it is more than the communication that is known, and so comes first
    assert str(sentence).startswith("Nothing runs for 70 % of each 10.0 ms step")


def test_a_step_of_which_most_is_unknown_is_not_called_bound_by_the_rest() -> None:
    # One rank on a host: 1 ms of work, 2 ms of communication, and 7 ms of which nothing is recorded.
    trace = Trace().step(0, 0, 10 * MS).host_work("aten::mm", 0, MS)
    trace.gloo(8 * MS, 10 * MS)

    ((_, sentence),) = rows_of(attributed(trace), BOUND)

    assert str(sentence).startswith("Nothing runs for 70 % of each 10.0 ms step, and no call of the host is recorded")
    assert ". For 20 % of each 10.0 ms step nothing but communication runs, the largest part of a" in str(sentence)


def test_a_host_of_which_little_is_known_is_not_said_to_be_bound_by_that() -> None:
    # One rank on a host: 1 ms of work in a step of 10 ms, as where a vendor's events are of no known category.
    ((_, sentence),) = rows_of(attributed(Trace().step(0, 0, 10 * MS).host_work("aten::mm", 0, MS)), BOUND)

    assert str(sentence).startswith("Nothing runs for 90 % of each 10.0 ms step, and no call of the host is recorded")
    assert ". The host computes 10 % of each 10.0 ms step" in str(sentence)


def test_work_that_moves_data_is_held_against_the_memory() -> None:
    # An addition of 2^20 floats moves 12.6 MB, which 3.35 TB/s take 3.76 us of its 40 us; a copy takes the other 60 us.
    trace = Trace().on_device("NVIDIA H100 80GB HBM3").step(0, 0, 100 * US)
    trace.operation("aten::add", 0, 5 * US, [[1024, 1024], [1024, 1024], []], ["float", "float", "Scalar"])
    trace.operation("aten::copy_", 5 * US, 10 * US, [[1024, 1024], [1024, 1024], []], ["float", "float", "Scalar"])
    trace.kernel(0, 40 * US, "elementwise_kernel", launch_ns=0).kernel(40 * US, 100 * US, "copy", launch_ns=6 * US)

    ((bound, sentence),) = rows_of(attributed(trace), BOUND)

    assert bound == "memory_bound"
    # 12.6 and 8.4 MB in 100 us; the copy's 8.4 MB would take 2.5 us of 60
    assert str(sentence).endswith(
        "Memory-bound operations move 210 GB/s, 6.3 % of the memory's peak; 60 % of their time is aten::copy_, "
        "4.2 % of the memory's peak."
    )


def test_bytes_that_come_out_of_a_cache_are_no_share_of_the_memorys_peak() -> None:
    # 100.7 MB in 20 us are 5.03 TB/s, where the memory has 3.35.
    trace = Trace().on_device("NVIDIA H100 80GB HBM3").step(0, 0, 20 * US)
    trace.operation("aten::add", 0, US, [[2048, 4096], [2048, 4096], []], ["float", "float", "Scalar"])
    trace.kernel(0, 20 * US, "elementwise_kernel", launch_ns=0)

    ((_, sentence),) = rows_of(attributed(trace), BOUND)

    assert "Memory-bound operations move 5.03 TB/s, above the memory's peak (out of a cache)" in str(sentence)
    assert "not measured" not in str(sentence)


def test_the_job_is_the_mean_of_its_ranks_and_of_what_lies_between_them() -> None:
    store = attributed(*data_parallel_job([[20 * MS, 40 * MS]] * 6, transfer_ns=10 * MS))

    # Rank 0 computes 20 of 50 ms and waits 20; rank 1 computes 40; both transfer 10.
    assert rows_of(store, PARTS) == [
        ("communication_bound", 10 * MS),
        ("imbalance_bound", 10 * MS),
        ("unmodelled_kernels", 30 * MS),
    ]


def test_parts_sum_to_the_mean_step_to_the_ns() -> None:
    chance = random.Random(11)  # noqa: S311
    jobs = []
    for _ in range(6):
        works = [[chance.randrange(1, 50_000) for _ in range(3)] for _ in range(chance.randrange(1, 5))]
        job = data_parallel_job(works, transfer_ns=chance.randrange(1, 9_999))
        for trace in job:
            for _ in range(4):
                start = chance.randrange(40_000)
                trace.event("kernel", "aside", start, start + chance.randrange(9_000), track_id=DEVICE, stream=9)
        jobs.append(job)

    store = built(store_of_runs(*jobs), "attribute")

    sums = rows_of(
        store,
        """
        SELECT b.run_id, b.rank, CAST(SUM(b.duration_ns_per_iteration) AS BIGINT),
          (SELECT CAST(ROUND(AVG(r.duration_ns)) AS BIGINT) FROM timeline.rank_iteration AS r
           JOIN operation.judged_iteration AS j USING (run_id, iteration)
           WHERE r.run_id = b.run_id AND r.rank = b.rank),
          (SELECT CAST(ROUND(AVG(i.duration_ns)) AS BIGINT) FROM timeline.iteration AS i
           JOIN operation.judged_iteration AS j USING (run_id, iteration) WHERE i.run_id = b.run_id)
        FROM attribute.bottleneck AS b GROUP BY b.run_id, b.rank
        """,
    )
    assert len(sums) == 6 * 4
    for _, rank, total, of_rank, of_job in sums:
        # The mean of the database is a float, and halves may round either way.
        assert abs(int(str(total)) - int(str(of_job if rank is None else of_rank))) <= 1


@given(st.integers(0, 10**15), st.lists(st.integers(0, 10**12), max_size=9))
def test_dividing_loses_nothing(total: int, amounts: list[int]) -> None:
    parts = list(divided(total, {str(n): amount for n, amount in enumerate(amounts)}).values())

    assert sum(parts) == (total if sum(amounts) else 0)
    whole = sum(amounts)
    assert all(abs(part - total * a / whole) <= 1 + 1e-3 for part, a in zip(parts, amounts, strict=False))


def test_a_trace_without_steps_is_one_window_and_says_so() -> None:
    trace = Trace().kernel(10 * US, 30 * US).host_work("cudaMalloc", 31 * US, 99 * US, "cuda_runtime")
    trace.kernel(100 * US, 110 * US, launch_ns=100 * US)

    ((_, sentence),) = rows_of(attributed(trace), BOUND)

    assert "of the 100 µs recorded without steps" in str(sentence)


def test_what_a_stage_waits_for_others_is_bubble_and_parts_still_sum() -> None:
    # rank 0  |F 40|send 10|······ wait for the gradient 70|B 50|
    # rank 1  |wait 40|10|F 20·B 50|send, 10               |······|
    #          0   40 50           120 130                  180
    first, last = (Trace(rank).step(0, 0, 180 * US) for rank in (0, 1))
    both = [0, 1]
    first.kernel(0, 40 * US).exchange(40 * US, 50 * US, [("send", 1)], ranks=both)
    first.exchange(51 * US, 130 * US, [("recv", 1)], ranks=both)
    first.host_work("autograd::engine::evaluate_function: Mm", 60 * US, 61 * US)
    first.kernel(130 * US, 180 * US, "grad", launch_ns=60 * US)
    last.exchange(1 * US, 50 * US, [("recv", 0)], ranks=both)
    last.kernel(50 * US, 70 * US)
    last.host_work("autograd::engine::evaluate_function: Mm", 60 * US, 61 * US)
    last.kernel(70 * US, 120 * US, "grad", launch_ns=60 * US)
    last.exchange(120 * US, 130 * US, [("send", 0)], ranks=both)

    store = attributed(first, last)

    parts = (
        "SELECT bound, duration_ns_per_iteration FROM attribute.bottleneck WHERE rank = ? AND share > 0.01 ORDER BY 2"
    )
    assert rows_of(store, parts, [0]) == [("pipeline_bubble", 89 * US), ("unmodelled_kernels", 90 * US)]
    assert rows_of(store, "SELECT SUM(duration_ns_per_iteration) FROM attribute.bottleneck WHERE rank = 0") == [
        (180 * US,)
    ]
    assert rows_of(store, "SELECT COUNT(*) FROM attribute.bottleneck WHERE bound = 'imbalance_bound'") == [(0,)]


def test_a_host_of_which_nothing_is_recorded_is_not_said_to_launch_slowly() -> None:
    # device |##|----------------|##|; the host's two launches are all that is recorded of it
    trace = Trace().step(0, 0, 100 * US).kernel(0, 20 * US).kernel(90 * US, 100 * US, launch_ns=89 * US)

    ((bound, sentence),) = rows_of(attributed(trace), BOUND)

    assert bound == "launch_bound"
    assert str(sentence).startswith("Host-bound: for 70 % of each 100 µs step the device is idle and the host launches")
    assert "of the longest gaps no operation and no call to the runtime is recorded on the host" in str(sentence)


def test_a_host_that_works_on_any_thread_launches_slowly() -> None:
    # the thread of the backward pass calls operations for 65 of the 70 us in which the device is idle
    trace = Trace().step(0, 0, 100 * US).kernel(0, 20 * US).kernel(90 * US, 100 * US, launch_ns=89 * US)
    trace.event("cpu_op", "aten::mm_backward", 22 * US, 87 * US, track_id=77)

    ((_, sentence),) = rows_of(attributed(trace), BOUND)

    assert str(sentence).startswith("Launch-bound: for 70 % of each 100 µs step the device is idle because the host")


def test_a_launch_that_takes_long_is_named() -> None:
    # cudaLaunchKernel is under way for 600 of the 700 us in which the device is idle
    trace = Trace().step(0, 0, 1000 * US).kernel(0, 200 * US).kernel(900 * US, 1000 * US, launch_ns=890 * US)
    trace.host_work("cudaLaunchKernel", 250 * US, 850 * US, "cuda_runtime")

    ((_, sentence),) = rows_of(attributed(trace), BOUND)

    assert "calls to its runtime take long" in str(sentence)
    assert "Calls to cudaLaunchKernel fill 86 % of the longest gaps, 600 µs in each." in str(sentence)


def test_the_longest_operation_is_told_by_its_part_of_the_work_of_all_ranks() -> None:
    # given four ranks that compute in aten::mm and nothing else
    traces = [Trace(rank).step(0, 0, 100 * US).host_work("aten::mm", 0, 5 * US) for rank in range(4)]
    for trace in traces:
        trace.kernel(2 * US, 95 * US, launch_ns=1 * US).collective(95 * US, 100 * US)

    ((_, sentence),) = rows_of(attributed(*traces), BOUND)

    assert "most of it in aten::mm (100 % of the kernels' time)" in str(sentence)
