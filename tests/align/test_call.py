"""Which device kernels and host threads' work are one collective call of a rank."""

from collections.abc import Sequence

from tests.given import DEVICE, WORKER, Trace, rows_of
from tests.stories import told

CALLS = """
SELECT rank, call_id, op, raw_issue_ns, raw_arrival_ns, raw_end_ns, is_linked FROM align.call ORDER BY rank, call_id
"""


def test_a_kernel_belongs_to_the_call_that_contains_its_launch() -> None:
    # host     |record, launch at 5
    # device   ·····················|kernel 40–90|
    store = told(Trace().collective(40, 90, issue_ns=5), stage="align")

    assert rows_of(store, CALLS) == [(0, 0, "all_reduce", 5, 40, 90, True)]


def test_a_kernel_whose_name_stands_for_any_operation_does_what_the_call_around_its_launch_says() -> None:
    # host     |c10d::alltoall_base_ 2–9|   |nccl:all_reduce 12–14|
    #             |record, launch at 5              |launch at 15
    # device   ··················|generic 40–90|generic 95–99|
    generic = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"
    trace = Trace().event("cpu_op", "c10d::alltoall_base_", 2, 9).collective(40, 90, issue_ns=5, op="", kernel=generic)
    trace.event("user_annotation", "nccl:all_reduce", 12, 14).collective(95, 99, issue_ns=15, op="", kernel=generic)

    # then what ended before the launch says nothing of it
    assert rows_of(told(trace, stage="align"), "SELECT op FROM align.call ORDER BY call_id") == [
        ("all_to_all",),
        (None,),
    ]


def test_the_call_of_nccl_itself_names_the_kernel_that_it_launched() -> None:
    # given what rocprofv3 records without PyTorch's markers: RCCL's call around the launch of the one kernel it has
    generic = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
    trace = Trace().event("cpu_op", "ncclAllGather", 2, 9).collective(40, 90, issue_ns=5, op="", kernel=generic)

    store = told(trace, stage="align")

    assert rows_of(store, "SELECT op FROM align.call") == [("all_gather",)]


def test_calls_are_numbered_in_order_of_issue_not_of_start() -> None:
    # host     |all-reduce at 5|all-gather at 7
    # device   stream A ······················|all-reduce 50–60|
    #          stream B ······|all-gather 10–20|
    trace = Trace().collective(50, 60, issue_ns=5).collective(10, 20, issue_ns=7, op="allgather")

    store = told(trace, stage="align")

    assert rows_of(store, CALLS) == [(0, 0, "all_reduce", 5, 50, 60, True), (0, 1, "all_gather", 7, 10, 20, True)]


def test_a_kernel_that_was_launched_before_the_window_is_no_call_of_it() -> None:
    # device   |head kernel 0–30|    |all-reduce 40–90|
    store = told(Trace().unlaunched_kernel(0, 30).collective(40, 90), stage="align")

    assert rows_of(store, CALLS) == [(0, 0, "all_reduce", 0, 0, 30, False), (0, 1, "all_reduce", 40, 40, 90, True)]
    assert rows_of(store, "SELECT call_id FROM align.match") == [(1,)]


def test_a_kernel_that_is_not_linked_is_counted() -> None:
    # rank 0   |head 0–5|head 5–9|  |all-reduce 40–90|
    # rank 1   |head 0–9|           |all-reduce 40–90|
    first = Trace(0).unlaunched_kernel(0, 5).unlaunched_kernel(5, 9).collective(40, 90)
    second = Trace(1).unlaunched_kernel(0, 9).collective(40, 90)

    store = told(first, second, stage="align")

    assert rows_of(store, "SELECT stage, code, severity, count FROM meta.issue") == [
        ("align", "collective_unlinked", "info", 3)
    ]


def test_a_kernel_that_was_launched_outside_of_any_record_is_not_linked() -> None:
    # host     |record 0–1|   |launch at 20
    # device                  |kernel 20–30|
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"
    trace = Trace().collective(0, 9).kernel(20, 30, name)

    store = told(trace, stage="align")

    assert rows_of(store, "SELECT raw_arrival_ns, is_linked FROM align.call ORDER BY call_id") == [
        (0, True),
        (20, False),
    ]


def test_a_kernel_of_a_library_that_pytorch_does_not_record_is_a_call_beside_recorded_ones() -> None:
    # host     |record 0–1|   |launch at 20, DeepEP's|
    # device   |all-reduce 0–9|    |dispatch 20–30|
    trace = Trace().collective(0, 9).kernel(20, 30, "void deep_ep::internode::dispatch<false, 2>(int4*)")
    # given another that was launched before the window
    trace.unlaunched_kernel(40, 50, "void deep_ep::internode::combine<false, 2>(int4*)")

    store = told(trace, stage="align")

    assert rows_of(store, "SELECT raw_arrival_ns, is_linked FROM align.call ORDER BY call_id") == [
        (0, True),
        (20, True),
        (40, False),
    ]


def test_what_a_cuda_graph_replays_is_a_call_without_a_record() -> None:
    # host     |record 0–1|   |cudaGraphLaunch 20–21|
    # device   |all-reduce 0–9|    |gemm 22–30|all-reduce 30–40|
    trace = Trace().collective(0, 9).event("cuda_runtime", "cudaGraphLaunch", 20, 21, correlation=70)
    trace.event("kernel", "gemm", 22, 30, correlation=70, track_id=DEVICE)
    trace.event("kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", 30, 40, correlation=70, track_id=DEVICE)

    store = told(trace, stage="align")

    assert rows_of(store, CALLS) == [(0, 0, "all_reduce", 0, 0, 9, True), (0, 1, "all_reduce", 20, 30, 40, True)]


def test_a_call_of_nccl_past_the_process_groups_is_one_where_no_record_has_its_operation() -> None:
    # host     |record of an all-gather 0–1|   |launch at 20
    # device   |all-gather 0–9|                |all-reduce 20–30|
    gather = "ncclDevKernel_AllGather_RING_LL()"
    trace = Trace().collective(0, 9, op="_allgather_base", kernel=gather)
    trace.kernel(20, 30, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()")
    # then a message tells nothing of its own, and may be one of a group whose records hold no launch
    trace.kernel(40, 50, "ncclDevKernel_SendRecv()")

    store = told(trace, stage="align")

    assert rows_of(store, "SELECT op, is_linked FROM align.call ORDER BY call_id") == [
        ("all_gather", True),
        ("all_reduce", True),
        ("send_recv", False),
    ]


def test_a_launch_on_another_thread_does_not_count_as_inside_the_record() -> None:
    # thread 1   |record 0–50···········|
    # thread 9           |launch at 20
    trace = Trace().event("cpu_op", "record_param_comms", 0, 50)
    trace.event("cuda_runtime", "cudaLaunchKernel", 20, 21, correlation=7, track_id=9)
    trace.event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL()", 22, 40, correlation=7, track_id=DEVICE)

    store = told(trace, stage="align")

    assert rows_of(store, "SELECT is_linked FROM align.call") == [(False,)]


def test_several_kernels_of_one_record_are_one_call_from_the_first_start_to_the_last_end() -> None:
    # host     |record 0–10: launches at 2 and 4
    # device   |kernel 20–30|  |kernel 35–60|
    trace = Trace().event("cpu_op", "record_param_comms", 0, 10)
    trace.kernel(20, 30, "ncclDevKernel_SendRecv()", launch_ns=2).kernel(
        35, 60, "ncclDevKernel_SendRecv()", launch_ns=4
    )

    store = told(trace, stage="align")

    assert rows_of(store, CALLS) == [(0, 0, "send_recv", 0, 20, 60, True)]


def test_what_the_record_says_outweighs_the_name_of_the_kernel() -> None:
    # NCCL runs some collectives with the kernel of another one.
    trace = Trace().collective(0, 9, op="_allgather_base", kernel="ncclDevKernel_AllReduce_Sum_f32_RING_LL()")

    store = told(trace, stage="align")

    assert rows_of(store, "SELECT op FROM align.call") == [("all_gather",)]


def test_without_any_record_each_kernel_is_taken_as_a_call() -> None:
    # PyTorch before 1.13 writes no record_param_comms.
    trace = Trace().kernel(20, 30, "ncclKernel_AllReduce_RING_LL_Sum_float()", launch_ns=5)
    trace.kernel(40, 50, "ncclKernel_AllReduce_RING_LL_Sum_float()", launch_ns=6)

    store = told(trace, stage="align")

    assert rows_of(store, CALLS) == [(0, 0, "all_reduce", 5, 20, 30, True), (0, 1, "all_reduce", 6, 40, 50, True)]


def test_old_traces_with_old_category_names_are_linked_too() -> None:
    # PyTorch 1.8: Operator, Runtime, Kernel.
    trace = Trace().event("Operator", "record_param_comms", 0, 10)
    trace.event("Runtime", "cudaLaunchKernel", 3, 4, correlation=1)
    trace.event("Kernel", "ncclKernel_AllReduce_RING_LL_Sum_float()", 20, 30, correlation=1, track_id=DEVICE)

    store = told(trace, stage="align")

    assert rows_of(store, CALLS) == [(0, 0, "all_reduce", 0, 20, 30, True)]


def test_gloo_calls_come_in_the_order_in_which_the_training_thread_issued_them() -> None:
    # training   |issues A at 5|issues B at 7
    # worker 1   ·················|A 30–60|
    # worker 2   ········|B 20–40|
    store = told(Trace().gloo(30, 60, issue_ns=5).gloo(20, 40, issue_ns=7), stage="align")

    assert rows_of(store, CALLS) == [(0, 0, "all_reduce", 5, 30, 60, True), (0, 1, "all_reduce", 7, 20, 40, True)]


def _without_ids(calls: Sequence[tuple[str, int]], works: Sequence[tuple[str, int, int]]) -> Trace:
    """What PyTorch 2.13 writes: calls of the training thread, works of gloo's threads, all record function ids 0."""
    trace = Trace()
    for call, issue_ns in calls:
        trace.event("cpu_op", f"c10d::{call}_", issue_ns, issue_ns + 1, record_function_id=0)
    for work, start_ns, end_ns in works:
        trace.event("user_annotation", f"gloo:{work}", start_ns, end_ns, track_id=WORKER, record_function_id=0)
    return trace


def test_where_ids_say_nothing_works_of_a_kind_begin_in_the_order_of_their_calls() -> None:
    # training   |all-reduce 5|all-gather 7|reduce-scatter 9|
    # one group  ······················|all-reduce 30–60|       its thread wakes up late
    # another    ··········|all-gather 20–40|all-reduce 45–70|  gloo reduces and scatters so
    calls = [("allreduce", 5), ("_allgather_base", 7), ("_reduce_scatter_base", 9)]
    works = [("all_gather", 20, 40), ("all_reduce", 30, 60), ("all_reduce", 45, 70)]

    store = told(_without_ids(calls, works), stage="align")

    assert rows_of(store, CALLS) == [
        (0, 0, "all_reduce", 5, 30, 60, True),
        (0, 1, "all_gather", 7, 20, 40, True),
        (0, 2, "all_reduce", 9, 45, 70, True),
    ]


def test_the_first_works_of_a_window_may_lack_their_calls_and_the_last_calls_their_works() -> None:
    # training   before the window|    |5|   |35|      |90|
    # gloo       |1–4|                   |10–20|  |40–50|
    store = told(
        _without_ids(
            [("allreduce", 5), ("allreduce", 35), ("allreduce", 90)],
            [("all_reduce", 1, 4), ("all_reduce", 10, 20), ("all_reduce", 40, 50)],
        ),
        stage="align",
    )

    assert rows_of(store, CALLS) == [
        (0, 0, "all_reduce", 1, 1, 4, True),
        (0, 1, "all_reduce", 5, 10, 20, True),
        (0, 2, "all_reduce", 35, 40, 50, True),
    ]
