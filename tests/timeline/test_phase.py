"""How each iteration of each rank was spent, drawn by hand."""

from tests.given import WORKER, Trace, rows_of
from tests.stories import told

PHASES = "SELECT phase, duration_ns FROM timeline.phase WHERE rank = ? ORDER BY phase"
ACTIVITIES = """
SELECT phase, activity, CAST(SUM(duration_ns) AS BIGINT) FROM timeline.segment WHERE rank = ? GROUP BY ALL ORDER BY ALL
"""
HIDDEN = "SELECT hidden_communication_ns FROM timeline.rank_iteration WHERE rank = 0"


def _phases(*traces: Trace, rank: int = 0) -> dict[object, object]:
    return dict(rows_of(told(*traces, world_size=len(traces), stage="timeline"), PHASES, [rank]))


class TestDeviceRank:
    """A rank with a device: what the device does counts first."""

    def test_compute_hides_the_communication_that_runs_below_it(self) -> None:
        # compute         |10––––––30|
        # communication       |20–––––––50|
        # phase     idle  |compute   |tr.  | idle
        trace = Trace().step(1, 0, 60).kernel(10, 30).collective(20, 50)

        store = told(trace, world_size=1, stage="timeline")

        assert dict(rows_of(store, PHASES, [0])) == {"idle": 20, "compute": 20, "transfer": 20}
        assert rows_of(store, HIDDEN) == [(10,)]

    def test_the_annotation_around_a_batch_is_no_work_of_the_host(self) -> None:
        # host     |execute_context… 0–––30|  |30–––60|  |60–––90|     a step each, whatever sizes they name
        # device     |kernel 10–20|         |kernel 40–50|  |70–80|
        trace = Trace()
        for n, name in enumerate(["_1(512)_generation_0(0)", "_0(0)_generation_8(8)", "_0(0)_generation_7(7)"]):
            trace.host_work(f"execute_context{name}", 30 * n, 30 * n + 30, "user_annotation")
            trace.kernel(30 * n + 10, 30 * n + 20)

        store = told(trace, world_size=1, stage="timeline")

        assert rows_of(store, ACTIVITIES, [0]) == [
            ("compute", None, 30), ("idle", "unnamed", 60),
        ]  # fmt: skip

    def test_communication_is_waiting_until_the_last_rank_arrives_then_transfer(self) -> None:
        # rank 0   |compute 0–40|wait 40––––––––70|transfer 70–90|
        # rank 1   |compute 0–––––––––––––––––––70|transfer 70–90|
        early = Trace(0).step(1, 0, 90).kernel(0, 40).collective(40, 90)
        late = Trace(1).step(1, 0, 90).kernel(0, 70).collective(70, 90)

        assert _phases(early, late, rank=0) == {"compute": 40, "wait": 30, "transfer": 20}
        assert _phases(early, late, rank=1) == {"compute": 70, "transfer": 20}

    def test_a_transfer_beside_a_wait_is_transfer(self) -> None:
        # stream A   |wait 0––––––––––60|tr. –70|      rank 1 arrives at 60
        # stream B        |tr. 20–40|                  rank 1 arrives at 20, too
        first = Trace(0).step(1, 0, 70).collective(0, 70, issue_ns=0).collective(20, 40, issue_ns=2)
        second = Trace(1).step(1, 0, 70).collective(60, 70, issue_ns=0).collective(20, 40, issue_ns=2).kernel(0, 60)

        assert _phases(first, second) == {"wait": 40, "transfer": 30}

    def test_of_communication_without_partners_waiting_and_transfer_are_not_told_apart(self) -> None:
        # rank 0   |all-reduce 0–50|        rank 1   |all-gather 0–50|       (they do not match)
        first = Trace(0).step(1, 0, 50).collective(0, 50)
        second = Trace(1).step(1, 0, 50).collective(0, 50, op="allgather")

        assert _phases(first, second) == {"communication": 50}

    def test_a_copy_counts_where_nothing_else_runs(self) -> None:
        # compute         |10–30|
        # communication           |30–50|
        # copy      |0–––––––20|    |40–––60|
        trace = Trace().step(1, 0, 60).kernel(10, 30).collective(30, 50).copy(0, 20).copy(40, 60)

        assert _phases(trace) == {"copy": 20, "compute": 20, "transfer": 20}

    def test_fetching_data_counts_where_the_device_is_idle(self) -> None:
        # compute              |30–––60|
        # host      |fetches 0–––––40|
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        trace = Trace().step(1, 0, 60).kernel(30, 60, launch_ns=40).host_work(name, 0, 40, "user_annotation")

        assert _phases(trace) == {"input": 30, "compute": 30}

    def test_a_host_that_works_while_the_device_is_idle_is_runtime_whatever_it_does(self) -> None:
        # host   |cudaMalloc 0–10|gc 10–25|save 25–30|sync 30–70|launch 70–90|aten::mm 90–95|  (nothing –100)
        trace = Trace().step(1, 0, 100).kernel(200, 210)
        trace.host_work("cudaMalloc", 0, 10, "cuda_runtime").host_work("gc.collect", 10, 25, "user_annotation")
        trace.host_work("save_checkpoint", 25, 30, "user_annotation")
        trace.host_work("cudaDeviceSynchronize", 30, 70, "cuda_runtime")
        trace.host_work("cudaLaunchKernel", 70, 90, "cuda_runtime").host_work("aten::mm", 90, 95)

        store = told(trace, stage="timeline")

        assert rows_of(store, ACTIVITIES, [0]) == [
            ("idle", "unnamed", 5),
            ("runtime", "allocator", 10),
            ("runtime", "checkpoint", 5),
            ("runtime", "garbage_collection", 15),
            ("runtime", "launch", 20),
            ("runtime", "operation", 5),
            ("runtime", "synchronisation", 40),
        ]

    def test_fetching_inside_a_synchronisation_is_input(self) -> None:
        # host   |sync 0––––––––––50|
        # host      |fetches 10–30|
        trace = Trace().step(1, 0, 50).kernel(200, 210).host_work("cudaDeviceSynchronize", 0, 50, "cuda_runtime")
        trace.host_work("load_batch", 10, 30, "user_annotation")

        assert _phases(trace) == {"runtime": 30, "input": 20}

    def test_other_threads_do_not_keep_the_training_thread_busy(self) -> None:
        # training thread   |step 0–50|     (nothing else)
        # other thread      |load_batch 0–50|
        trace = Trace().step(1, 0, 50).kernel(200, 210)
        trace.event("user_annotation", "load_batch", 0, 50, track_id=WORKER)

        assert _phases(trace) == {"idle": 50}


class TestHostRank:
    """A rank without a device (gloo, CPU): host operations take the place of kernels."""

    def test_operations_compute_and_time_under_no_name_is_runtime(self) -> None:
        # host    |step 0–100
        #            |aten::mm 10–40|         |aten::add 60–70|
        trace = Trace().step(1, 0, 100).host_work("aten::mm", 10, 40).host_work("aten::add", 60, 70)

        assert _phases(trace) == {"compute": 40, "runtime": 60}

    def test_gloo_waits_for_the_last_rank_then_transfers(self) -> None:
        # rank 0   |aten::mm 0–40|wait 40–––––70|transfer –90|
        # rank 1   |aten::mm 0–––––––––––––––––70|transfer –90|
        early = Trace(0).step(1, 0, 90).host_work("aten::mm", 0, 40).gloo(40, 90)
        late = Trace(1).step(1, 0, 90).host_work("aten::mm", 0, 70).gloo(70, 90)

        assert _phases(early, late, rank=0) == {"compute": 40, "wait": 30, "transfer": 20}
        assert _phases(early, late, rank=1) == {"compute": 70, "transfer": 20}

    def test_operations_hide_gloo(self) -> None:
        # training   |issues 5|   |aten::mm 10–––––––50|
        # worker                       |gloo 20–––––––––––80|
        trace = Trace().step(1, 0, 80).host_work("aten::mm", 10, 50).gloo(20, 80, issue_ns=5)

        store = told(trace, world_size=1, stage="timeline")

        assert dict(rows_of(store, PHASES, [0])) == {"runtime": 10, "compute": 40, "transfer": 30}
        assert rows_of(store, HIDDEN) == [(30,)]

    def test_an_operation_that_encloses_the_call_may_block_in_it_and_hides_nothing(self) -> None:
        # training   |DistributedDataParallel.forward 0–––––––––60|
        #                  |issues 20|
        # worker           |gloo 20–––––––50|
        trace = Trace().step(1, 0, 60).host_work("DistributedDataParallel.forward", 0, 60).gloo(20, 50)

        assert _phases(trace) == {"compute": 30, "transfer": 30}

    def test_operations_below_a_fetch_are_input(self) -> None:
        # host   |fetches 0–––––––40|
        #           |aten::stack 10–30|   |aten::mm 40–60|
        trace = Trace().step(1, 0, 60).host_work("aten::stack", 10, 30).host_work("aten::mm", 40, 60)
        trace.host_work("load_batch", 0, 40, "user_annotation")

        assert _phases(trace) == {"input": 40, "compute": 20}

    def test_named_annotations_compute_where_no_operation_was_recorded(self) -> None:
        # host   |forward 0–40|     |Optimizer.step#SGD.step 60–90|
        trace = Trace().step(1, 0, 100).host_work("forward", 0, 40, "user_annotation")
        trace.host_work("Optimizer.step#SGD.step", 60, 90, "user_annotation")

        assert _phases(trace) == {"compute": 70, "runtime": 30}

    def test_named_work_hides_gloo_that_another_thread_runs(self) -> None:
        # training   |issues 5|   |forward 10–––––––50|
        # worker                       |gloo 20–––––––––––80|
        trace = Trace().step(1, 0, 80).host_work("forward", 10, 50, "user_annotation").gloo(20, 80, issue_ns=5)

        store = told(trace, world_size=1, stage="timeline")

        assert dict(rows_of(store, PHASES, [0])) == {"runtime": 10, "compute": 40, "transfer": 30}
        assert rows_of(store, HIDDEN) == [(30,)]

    def test_a_wait_that_the_program_names_is_no_work(self) -> None:
        # training   |issues 5|   |wait_gradients 10–––50|
        # worker                       |gloo 20–––––––50|
        trace = Trace().step(1, 0, 60).host_work("wait_gradients", 10, 50, "user_annotation").gloo(20, 50, issue_ns=5)

        assert _phases(trace) == {"runtime": 30, "transfer": 30}

    def test_a_thread_that_goes_on_before_communication_ends_was_not_blocked_in_it(self) -> None:
        # training   |backward 0–––––––––––––––––––––––––––––––90|
        #               |issues A 10|          |issues B 40|
        # worker        |gloo A 10–––––––––––––––––––60|
        # worker                               |gloo B 40–––––––––80|
        # phase      |compute 0–––––––––––––––40|transfer –––––––––80|compute|
        trace = Trace().step(1, 0, 90).host_work("backward", 0, 90, "user_annotation").gloo(10, 60).gloo(40, 80)

        assert _phases(trace) == {"compute": 49, "transfer": 41}

    def test_a_thread_may_wait_for_the_first_of_two_that_overlap(self) -> None:
        # training   |backward 0–––––––––––––––––––––––––––––––––––––90|
        #               |issues A 10|issues B 12|      |aten::mul 60–70|
        # worker        |gloo A 10––––––––––––––––––60|
        # worker                    |gloo B 12––––––––––––––––––––––80|
        trace = Trace().step(1, 0, 90).host_work("backward", 0, 90, "user_annotation")
        trace.gloo(10, 60).gloo(12, 80).host_work("aten::mul", 60, 70)

        # it goes on when A ends, so it may have waited for A, and then for B
        assert _phases(trace) == {"compute": 31, "transfer": 59}

    def test_a_thread_that_goes_on_when_communication_ends_may_have_waited_for_it(self) -> None:
        # training   |backward 0–––––––––––––––––––––––––––––––90|
        #               |issues A 10|          |issues B 40|
        # worker        |gloo A 10–––––––––––39|
        # worker                               |gloo B 40–––––––––80|
        trace = Trace().step(1, 0, 90).host_work("backward", 0, 90, "user_annotation").gloo(10, 39).gloo(40, 80)

        assert _phases(trace) == {"compute": 21, "transfer": 69}

    def test_collecting_garbage_inside_an_annotation_is_runtime(self) -> None:
        # host   |forward 0–––––––––60|
        #            |gc 20–50|
        trace = Trace().step(1, 0, 60).host_work("forward", 0, 60, "user_annotation")
        trace.host_work("gc.collect", 20, 50, "user_annotation")

        store = told(trace, stage="timeline")

        assert rows_of(store, ACTIVITIES, [0]) == [("compute", None, 30), ("runtime", "garbage_collection", 30)]


PEER = "Memcpy PtoP (Device -> Device)"


def test_copies_between_devices_communicate_and_are_a_call_where_a_collective_launches_them() -> None:
    # given a gather by two copies between devices on each of two ranks, and a copy that no collective launches
    #   gather 10–40 | compute 40–60 | copy 60–80
    traces = []
    for rank in (0, 1):
        trace = Trace(rank).step(1, 0, 100)
        trace.collectives.append({"event_id": len(trace.events), "collective_name": "_allgather_base"})
        trace.host_work("record_param_comms", 2, 8)
        trace.copy(10, 25, PEER, launch_ns=3).copy(25, 40, PEER, launch_ns=5)
        traces.append(trace.kernel(40, 60).copy(60, 80, PEER, launch_ns=45))

    run = told(*traces, world_size=2, stage="timeline")

    calls = rows_of(run, "SELECT rank, op, raw_arrival_ns, raw_end_ns FROM align.call ORDER BY rank")
    assert calls == [(0, "all_gather", 10, 40), (1, "all_gather", 10, 40)]
    assert dict(rows_of(run, PHASES, [0])) == {
        "transfer": 30,
        "compute": 20,
        "communication": 20,
        "idle": 28,
        "runtime": 2,
    }
