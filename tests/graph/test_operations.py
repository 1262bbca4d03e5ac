"""The graph of operations: what a file states, what a linked timeline adds, its quality, its replay."""

import pytest

from tests.given import US, Trace, built, rows_of, store_of
from tests.graph.recordings import add_execution_trace, operation
from traceforge.store.database import Store
from traceforge.store.stage import build_stage

DERIVED = """
SELECT e.kind, f.name, t.name
FROM graph.edge AS e
JOIN graph.node AS f ON f.source_id = e.source_id AND f.node = e.from_node
JOIN graph.node AS t ON t.source_id = e.source_id AND t.node = e.to_node
WHERE e.origin = 'derived' AND e.source_id = (SELECT MIN(source_id) FROM graph.trace)
ORDER BY ALL
"""
QUALITY = """
SELECT label, is_counterfactual, device_successor_share, device_to_host_count, dangling_edge_count FROM graph.quality
"""
SPANS = "SELECT rank, measured_ns, replayed_ns FROM graph.baseline WHERE scenario = ? ORDER BY rank NULLS LAST"


def rank_that_waits(rank: int, work_ns: int) -> Trace:
    """A kernel, an all-reduce that both ranks leave at 100 us, and a host that waits for it.

    host      |step: launch 0, all-reduce 2|  |––––synchronize until 101––––| end 110
    stream 7       |kernel 5 – 5+work|
    stream 20                        |all-reduce ––100|
    """
    trace = Trace(rank).step(1, 0, 110 * US)
    trace.event("cpu_op", "aten::mm", 0, 2 * US, record_function_id=1)
    trace.event("cpu_op", "record_param_comms", 2 * US, 5 * US, record_function_id=2)
    trace.event("cpu_op", "aten::item", 9 * US, 105 * US, record_function_id=3)
    trace.event("cuda_runtime", "cudaLaunchKernel", US, 2 * US, correlation=71)
    trace.event("cuda_runtime", "cudaStreamWaitEvent", 2500, 2600, correlation=72)
    trace.event("cuda_runtime", "cudaLaunchKernelExC", 3 * US, 4 * US, correlation=73)
    trace.event("cuda_runtime", "cudaStreamSynchronize", 10 * US, 101 * US, correlation=74)
    ended = 5 * US + work_ns
    trace.event("kernel", "gemm", 5 * US, ended, track_id=3, stream=7, correlation=71)
    kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    return trace.event("kernel", kernel, ended + US, 100 * US, track_id=4, stream=20, correlation=73)


@pytest.fixture(scope="module")
def job() -> Store:
    """Rank 0 computes for 30 us, rank 1 for 80 us; the all-reduce takes 14 us once both are there."""
    store = store_of(rank_that_waits(0, 30 * US), rank_that_waits(1, 80 * US))
    recorded = [
        operation(name, place) for place, name in enumerate(("aten::mm", "record_param_comms", "aten::item"), 1)
    ]
    for rank in range(2):
        edges = [{"from_node_id": 3, "to_node_id": place, "kind": "parent", "origin": "parent"} for place in range(3)]
        add_execution_trace(store, [*recorded, operation("process", 0)], edges=edges, rank=rank)
    return built(store)


def job_whose_clock_jumps() -> Store:
    """The same job; when rank 1 has launched its kernel, at 2 us, its clock jumps ahead by 40 us."""
    late = rank_that_waits(1, 80 * US)
    for event in late.events:
        start_ns = int(str(event["raw_start_ns"]))
        if start_ns >= 2 * US:
            event["raw_start_ns"] = start_ns + 40 * US
        elif str(event["name"]).startswith("ProfilerStep"):
            event["duration_ns"] = 150 * US
    store = store_of(rank_that_waits(0, 30 * US), late)
    recorded = [operation("aten::mm", 1), operation("record_param_comms", 2), operation("aten::item", 3)]
    for rank in range(2):
        add_execution_trace(store, recorded, rank=rank)
    build_stage(store, "traceforge.align")
    # One collective shows no course of a clock: its pieces are written by hand.
    store.execute("UPDATE align.clock_piece SET offset_ns = 0")
    store.execute("INSERT INTO align.clock_piece VALUES (0, 1, ?, ?, ?, 0)", [2 * US, 2 * US, 40 * US])
    for stage in ("timeline", "graph"):
        build_stage(store, f"traceforge.{stage}")
    return store


def test_a_clock_that_jumps_between_two_pieces_changes_no_measured_time() -> None:
    store = job_whose_clock_jumps()

    assert rows_of(store, SPANS, ["as_recorded"]) == [(rank, 110 * US, 110 * US) for rank in (0, 1, None)]
    assert rows_of(store, SPANS, ["instant_transfer"]) == [(rank, 110 * US, 96 * US) for rank in (0, 1, None)]


def test_launches_streams_and_waits_become_dependencies_marked_as_derived(job: Store) -> None:
    kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"

    assert rows_of(job, DERIVED) == [
        ("call", "aten::item", "cudaStreamSynchronize"),
        ("call", "aten::mm", "cudaLaunchKernel"),
        ("call", "record_param_comms", "cudaLaunchKernelExC"),
        ("call", "record_param_comms", "cudaStreamWaitEvent"),
        ("launch", "cudaLaunchKernel", "gemm"),
        ("launch", "cudaLaunchKernelExC", kernel),
        ("order", "gemm", kernel),
        ("sync", kernel, "cudaStreamSynchronize"),
        ("thread", "cudaLaunchKernel", "cudaStreamWaitEvent"),
        ("thread", "cudaLaunchKernelExC", "cudaStreamSynchronize"),
        ("thread", "cudaStreamWaitEvent", "cudaLaunchKernelExC"),
    ]


def test_what_follows_a_blocking_copy_depends_on_it_and_no_circle_arises() -> None:
    # The call both launches the copy and waits for it.
    #   host      |cudaMemcpy 1 ––––––––––– 21|  |launch 30|
    #   stream 7        |copy 5 – 20|                   |gemm|
    trace = Trace(0).step(1, 0, 60 * US).event("cpu_op", "aten::copy_", 0, 25 * US, record_function_id=1)
    trace.event("cpu_op", "aten::mm", 28 * US, 40 * US, record_function_id=2)
    trace.event("cuda_runtime", "cudaMemcpy", US, 21 * US, correlation=71)
    trace.event("cuda_runtime", "cudaLaunchKernel", 30 * US, 32 * US, correlation=72)
    trace.event("gpu_memcpy", "Memcpy DtoH", 5 * US, 20 * US, track_id=3, stream=7, correlation=71)
    trace.event("kernel", "gemm", 35 * US, 45 * US, track_id=3, stream=7, correlation=72)
    store = store_of(trace)
    add_execution_trace(store, [operation("aten::copy_", 1), operation("aten::mm", 2)], rank=0)
    job = built(store, "graph")

    derived = rows_of(job, DERIVED)
    assert ("launch", "cudaMemcpy", "Memcpy DtoH") in derived
    assert [edge for edge in derived if edge[0] == "sync"] == [("sync", "Memcpy DtoH", "cudaLaunchKernel")]
    # the replay knows the end of the call itself
    to = "SELECT n.name FROM graph.derived_edge AS e JOIN graph.node AS n ON n.node = e.to_node WHERE e.kind = 'sync'"
    assert rows_of(job, to) == [("cudaMemcpy",)]


def test_a_linked_trace_is_timed_and_its_device_work_leads_back_to_the_host(job: Store) -> None:
    assert rows_of(job, QUALITY) == [("timed", True, 1.0, 1, 0)] * 2


def test_measured_times_come_back_and_ranks_react_when_communication_costs_nothing(job: Store) -> None:
    assert rows_of(job, SPANS, ["as_recorded"]) == [(rank, 110 * US, 110 * US) for rank in (0, 1, None)]
    # Transfer of 14 us gone: rank 1 arrives at 86, so both go on at 86 + 1 (sync) + 9 (host work behind it).
    assert rows_of(job, SPANS, ["instant_transfer"]) == [(rank, 110 * US, 96 * US) for rank in (0, 1, None)]
    # Nobody waits: rank 0 goes on behind its own kernel, at 36 + 1 + 9.
    assert rows_of(job, SPANS, ["no_communication"]) == [
        *((0, 110 * US, 46 * US), (1, 110 * US, 96 * US), (None, 110 * US, 96 * US))
    ]


def chakra(store: Store, *nodes: dict[str, object], **file: object) -> Store:
    """A .et of four nodes: 0 -> 1 -> 3, 0 -> 2 -> 3, and a control dependency on a node that is missing."""
    pairs = ((0, 1), (0, 2), (1, 3), (2, 3))
    edges = [{"from_node_id": begin, "to_node_id": end} for begin, end in pairs]
    dangling = {"from_node_id": 99, "to_node_id": 0, "kind": "control", "origin": "ctrl_deps"}
    add_execution_trace(store, nodes, edges=[*edges, dangling], file={"format": "chakra_et", **file})
    return built(store)


def generated(duration_us: int, node_type: str = "COMP", **columns: object) -> dict[str, object]:
    return {"name": "n", "node_type": node_type, "is_cpu": False, "duration_ns": duration_us * US or None, **columns}


def test_a_generated_trace_is_replayed_by_its_written_durations() -> None:
    store = chakra(store_of(), generated(5), generated(7), generated(30), generated(2, "COMM_COLL"))

    assert rows_of(store, QUALITY) == [("modelled", True, 0.75, 0, 1)]
    assert rows_of(store, SPANS, ["as_recorded"]) == [(None, None, 37 * US)]


def test_a_converted_trace_without_times_is_structure_only_and_feeds_nothing() -> None:
    nodes = [generated(5, rf_id=place) for place in range(4)]

    store = chakra(store_of(), *nodes, schema_version="1.0.2-chakra.0.0.4")

    assert rows_of(store, QUALITY) == [("structure_only", False, 0.75, 0, 1)]
    assert rows_of(store, "SELECT COUNT(*) FROM graph.baseline") == [(0,)]
