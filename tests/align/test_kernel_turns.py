"""Steps of jobs that mark none, and whose collectives are all alike: found from what the devices compute."""

import os
from pathlib import Path

import pytest

from tests.given import MS, Trace, add_facts, built, rows_of, store_of
from tests.stories import told
from traceforge.align.kernel_turns import with_turns
from traceforge.align.rank_trace import RankTrace
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

BARE = RankTrace(0, 0, [], [])
ORIGIN = "SELECT DISTINCT origin, COUNT(*) FROM align.step GROUP BY origin, rank"
JUDGED = "SELECT COUNT(*) FROM timeline.iteration WHERE NOT is_partial"
LATE = "SELECT subject, ranks FROM attribute.finding"
ISSUES = "SELECT code FROM meta.issue WHERE code LIKE 'iterations_from_%'"


def _job(late_ns: int, steps: int = 8) -> list[Trace]:
    """Two ranks; a step of 100 ms: forward, backward, all-reduce, optimizer. The second computes longer backward."""
    traces = [Trace(0), Trace(1)]
    for number in range(steps):
        start = number * 100 * MS
        arrivals = [start + 50 * MS, start + 50 * MS + late_ns]
        for trace, arrival in zip(traces, arrivals, strict=True):
            trace.kernel(start + MS, start + 20 * MS, "forward").kernel(start + 20 * MS, arrival - MS, "backward")
            trace.collective(arrival, max(arrivals) + 5 * MS)
            trace.kernel(max(arrivals) + 6 * MS, max(arrivals) + 9 * MS, "adam")
    return traces


def test_a_turn_of_the_kernels_is_an_iteration() -> None:
    store = told(*_job(late_ns=0), stage="attribute")

    assert rows_of(store, ORIGIN) == [("kernel_period", 8)]
    assert rows_of(store, ISSUES) == [("iterations_from_kernel_period",)]
    assert rows_of(store, JUDGED) == [(7,)]  # after the last all-reduce there is no next forward pass
    assert rows_of(store, LATE) == []


def test_a_slow_rank_is_found_without_a_mark() -> None:
    store = told(*_job(late_ns=20 * MS), stage="attribute")

    assert ("1", [1]) in rows_of(store, LATE)


def test_kernels_that_communicate_are_of_no_turn() -> None:
    # given a library that carries out the same call in another way each time
    traces = _job(late_ns=0)
    ways = ["RING_LL", "TREE_LL", "TREE_SIMPLE", "RING_SIMPLE", "RING_LL128", "NVLS", "TREE_LL128", "COLLNET_DIRECT"]
    for trace in traces:
        kernels = [one for one in trace.events if str(one["name"]).startswith("nccl")]
        for one, way in zip(kernels, ways, strict=True):
            one["name"] = f"ncclDevKernel_AllReduce_Sum_f32_{way}(ncclDevKernelArgsStorage<4096ul>)"

    assert rows_of(told(*traces, stage="attribute"), ORIGIN) == [("kernel_period", 8)]


def test_turns_end_where_a_truncated_file_may_lack_something() -> None:
    # given a file that ends in the middle; of step 4 it has a kernel, but not all that was launched before
    traces = _job(late_ns=0)
    traces[1].events = [one for one in traces[1].events if int(str(one["raw_start_ns"])) <= 401 * MS]
    here = {one["event_id"] for one in traces[1].events}
    traces[1].collectives = [one for one in traces[1].collectives if one["event_id"] in here]
    store = store_of(*traces)
    lost = Issue("kineto_truncated", "warning", 1, None, "the file ends in the middle")
    store.append("meta.issue", issue_rows(0, 1, "ingest", [lost]))

    built(store, "align.name_class", "align.rank")

    ((intact_ns,),) = rows_of(store, "SELECT raw_intact_ns FROM align.rank WHERE rank = 1")
    assert intact_ns == 350 * MS  # the last call that is whole
    assert with_turns(store, 0, 1, BARE).turns_ns == [MS, 101 * MS, 201 * MS, 301 * MS]


def test_micro_batches_are_parts_of_the_step_that_their_optimizer_ends() -> None:
    # given four steps of two micro-batches, each of which gathers and scatters; one optimizer a step
    traces = [Trace(0), Trace(1)]
    gather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    scatter = "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    for trace in traces:
        for batch in range(8):
            start = batch * 50 * MS
            trace.collective(start, start + 5 * MS, op="allgather", kernel=gather)
            trace.kernel(start + 6 * MS, start + 20 * MS, "forward").kernel(
                start + 20 * MS, start + 30 * MS, "backward"
            )
            trace.collective(start + 30 * MS, start + 35 * MS, op="reduce_scatter", kernel=scatter)
            if batch % 2:
                trace.kernel(start + 36 * MS, start + 40 * MS, "multi_tensor_apply_kernel<FusedAdam>")

    assert rows_of(told(*traces, stage="attribute"), ORIGIN) == [("kernel_period", 4)]


def test_layers_of_one_pass_are_no_steps_where_the_optimizer_runs_once() -> None:
    # given one step of six layers, forward and backward in one kernel each, that ends with an optimizer
    traces = [Trace(0), Trace(1)]
    for trace in traces:
        for layer in range(6):
            start = layer * 50 * MS
            trace.kernel(start, start + 20 * MS, "forward").kernel(start + 20 * MS, start + 30 * MS, "backward")
            trace.collective(start + 30 * MS, start + 35 * MS)
        trace.kernel(300 * MS, 310 * MS, "multi_tensor_apply_kernel<FusedAdam>")

    assert rows_of(told(*traces, stage="attribute"), ORIGIN) == [("window", 1)]


def test_sequence_numbers_in_the_files_tell_which_rank_begins_earlier() -> None:
    # given jobs of eight steps, of which the second rank lacks the last step and the first rank the first one
    traces = _job(late_ns=0)
    for trace, lost in zip(traces, (0, 7), strict=True):
        for number, one in enumerate(trace.collectives):
            one |= {"sequence": number, "process_group_name": "0", "process_group_ranks": "[0, 1]", "group_size": 2}
        gone = range(lost * 100 * MS, (lost + 1) * 100 * MS)
        trace.events = [one for one in trace.events if int(str(one["raw_start_ns"])) not in gone]
        here = {one["event_id"] for one in trace.events}
        trace.collectives = [one for one in trace.collectives if one["event_id"] in here]

    store = told(*traces, stage="attribute")

    steps = "SELECT rank, MIN(iteration), MAX(iteration) FROM align.step WHERE origin = 'kernel_period' GROUP BY rank"
    assert rows_of(store, f"{steps} ORDER BY rank") == [(0, 0, 6), (1, -1, 5)]


def test_an_optimizer_counts_whatever_its_category() -> None:
    # given a profiler that writes the step of the optimizer as an operation of the host
    trace = Trace(0)
    for number in range(4):
        trace.kernel(100 * MS * number, 100 * MS * number + 40 * MS, f"kernel of step {number}")
        trace.host_work("Optimizer.step#AdamW.step", 100 * MS * number + 50 * MS, 100 * MS * number + 60 * MS)

    assert rows_of(told(trace, stage="attribute"), ORIGIN) == [("optimizer", 4)]


def test_kernels_that_do_not_repeat_leave_the_window() -> None:
    # given another kernel in each step
    traces = [Trace(0), Trace(1)]
    for number in range(6):
        start = number * 100 * MS
        for trace in traces:
            trace.kernel(start, start + 40 * MS, f"kernel of step {number}").collective(
                start + 50 * MS, start + 60 * MS
            )

    assert rows_of(told(*traces, stage="attribute"), ORIGIN) == [("window", 1)]


CORPUS = os.environ.get("TRACEFORGE_CORPUS")
MARKED = {
    "hta_single/df_index_resolver__df_index_resolver.json.gz": 5,
    "hta_single/nccl_parser_config__nccl_data.json.gz": 3,
    "hta_single/trace_diff__control__control.json.gz": 6,
    "kineto_tb_pt19/resnet50_num_workers_0__worker0.1623143089861.pt.trace.json.gz": 6,
    "sidnb13_transformer/dc3b0e7228dd_851.1752215573993169006.pt.trace.json.gz": 3,
    # one pass through the layers of a model
    "tracelens_h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": 0,
    "tracelens_mi300/facebook_timesformer-base-finetuned-k400__1016002.json.gz": 0,
    "tracelens_infer_vllm_decode_full/graph_execution.json.gz": 0,
}


@pytest.mark.skipif(CORPUS is None, reason="TRACEFORGE_CORPUS names no folder of real traces")
@pytest.mark.parametrize(("path", "marked"), MARKED.items())
def test_kernels_of_real_traces_turn_once_a_marked_step_and_never_where_a_model_runs_once(
    path: str, marked: int, tmp_path: Path
) -> None:
    with Store(tmp_path / "job.duckdb") as store:
        add_facts(store, Path(str(CORPUS)) / "traces/kineto" / path)
        built(store, "align.name_class", "align.rank")
        ((rank,),) = rows_of(store, "SELECT DISTINCT rank FROM align.rank")

        assert len(with_turns(store, 0, int(str(rank)), BARE).turns_ns) == marked
