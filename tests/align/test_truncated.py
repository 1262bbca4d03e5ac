"""A rank whose file ends in the middle counts as far as the file is whole, and as missing from then on."""

import json

import pytest

from tests.given import MS, Trace, built, data_parallel_job, rows_of, store_of
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

INTACT = "SELECT source_id, raw_until_ns FROM align.intact"
RANKS = "SELECT rank, raw_intact_ns FROM align.rank ORDER BY rank"
STEPS = "SELECT rank, LIST(iteration ORDER BY iteration) FROM align.step GROUP BY rank ORDER BY rank"
MEMBERS = "SELECT LIST(rank ORDER BY rank) FROM align.match GROUP BY collective_id ORDER BY collective_id"
ITERATIONS = "SELECT iteration, is_partial FROM timeline.iteration ORDER BY iteration"
TRUNCATED = Issue("kineto_truncated", "warning", 1, None, "the file ends in the middle")

STEP = 100 * MS


def _job(ranks: int = 3, steps: int = 6) -> list[Trace]:
    """Steps of 100 ms: 80 ms of compute, then an all-reduce of 20 ms."""
    return data_parallel_job([[80 * MS] * ranks] * steps, transfer_ns=20 * MS)


def _cut(trace: Trace, until_ns: int) -> Trace:
    """A file written in order of time that ends at an instant."""
    kept = [event for event in trace.events if int(str(event["raw_start_ns"])) < until_ns]
    return _holding(trace, kept)


def _holding(trace: Trace, events: list[dict[str, object]]) -> Trace:
    trace.events = events
    here = {event["event_id"] for event in events}
    trace.collectives = [row for row in trace.collectives if row["event_id"] in here]
    return trace


def _store(traces: list[Trace], *truncated: int, world_size: int | None = None) -> Store:
    store = store_of(*traces, world_size=world_size)
    for source_id in truncated:
        store.append("meta.issue", issue_rows(0, source_id, "ingest", [TRUNCATED]))
    return store


def test_the_others_are_matched_as_if_the_file_ended_there() -> None:
    # rank 0   |0 |1 |2 |3 |4 |5 |
    # rank 1   |0 |1 |2 |3 |4 |5 |
    # rank 2   |0 |1 |2 |3 /          the file ends in step 3
    traces = _job()
    _cut(traces[2], 3 * STEP + 50 * MS)

    store = built(_store(traces, 2), "align.match", "align.rank", "align.step", "timeline.coverage")

    # step 3 began with the last launch that is there: from then on something may be missing
    assert rows_of(store, RANKS) == [(0, None), (1, None), (2, 3 * STEP)]
    assert rows_of(store, STEPS) == [(0, [0, 1, 2, 3, 4, 5]), (1, [0, 1, 2, 3, 4, 5]), (2, [0, 1, 2])]
    assert rows_of(store, MEMBERS) == [([0, 1, 2],)] * 3 + [([0, 1],)] * 3
    assert rows_of(store, ITERATIONS) == [(0, False), (1, False), (2, False), (3, True), (4, True), (5, True)]
    assert rows_of(store, "SELECT complete FROM timeline.collective ORDER BY iteration") == [
        *[(True,)] * 3, *[(False,)] * 3
    ]  # fmt: skip
    assert rows_of(store, "SELECT truncated_ranks, is_split FROM timeline.coverage") == [(1, True)]


def test_steps_that_nothing_numbers_are_counted_on_the_whole_ranks() -> None:
    # the same without ProfilerStep: steps are told by the optimizer, of which rank 2 has fewer
    traces = _job()
    for trace in traces:
        for event in trace.events:
            if str(event["name"]).startswith("ProfilerStep"):
                event["name"] = "Optimizer.step#SGD.step"
    _cut(traces[2], 3 * STEP + 50 * MS)

    store = built(_store(traces, 2), "align.match", "align.step")

    assert [len(steps) for _, steps in rows_of(store, STEPS)] == [6, 6, 3]  # type: ignore[arg-type]
    assert rows_of(store, MEMBERS) == [([0, 1, 2],)] * 3 + [([0, 1],)] * 3


def test_a_kernel_that_is_not_there_ends_what_can_be_relied_on_although_the_host_goes_on() -> None:
    # a profiler writes all host events first, then the device's: the file ends among these
    traces = _job()
    host = [event for event in traces[2].events if event["category"] != "kernel"]
    kernels = [event for event in traces[2].events if event["category"] == "kernel"]
    _holding(traces[2], [*host, *kernels[:5]])

    store = built(_store(traces, 2), "align.intact", "align.match", "align.step", "align.unmatched")

    # of step 2 the gemm is there, the all-reduce is not: it was launched 80 ms into the step
    assert rows_of(store, INTACT) == [(2, 2 * STEP + 80 * MS)]
    assert rows_of(store, STEPS)[2] == (2, [0, 1])
    assert rows_of(store, MEMBERS) == [([0, 1, 2],)] * 2 + [([0, 1],)] * 4
    assert rows_of(store, "SELECT DISTINCT rank, reason FROM align.unmatched") == []


def test_a_file_that_ends_before_what_the_device_did_counts_as_missing() -> None:
    traces = _job()
    _holding(traces[2], [event for event in traces[2].events if event["category"] == "user_annotation"])

    store = built(_store(traces, 2, world_size=3), "timeline")

    assert rows_of(store, INTACT) == [(2, None)]
    assert rows_of(store, "SELECT rank FROM align.rank ORDER BY rank") == [(0,), (1,)]
    assert rows_of(store, "SELECT code, count, first_at FROM meta.issue WHERE stage = 'align'") == [
        ("rank_cut_off", 1, "rank2.json")
    ]
    # the others' iterations are whole, their collectives are not
    assert rows_of(store, ITERATIONS) == [(n, False) for n in range(6)]
    assert rows_of(store, "SELECT DISTINCT complete FROM timeline.collective") == [(False,)]


def test_a_truncated_file_without_any_whole_step_does_not_blind_the_others() -> None:
    traces = _job()
    _cut(traces[2], 50 * MS)

    store = built(_store(traces, 2, world_size=3), "timeline.collective", "timeline.coverage", "timeline.iteration")

    assert rows_of(store, ITERATIONS) == [(n, False) for n in range(6)]
    assert rows_of(store, "SELECT DISTINCT complete FROM timeline.collective") == [(False,)]
    assert rows_of(store, "SELECT ranks, truncated_ranks, job_ranks FROM timeline.coverage") == [(2, 1, 3)]


def test_where_all_files_are_truncated_each_counts_as_far_as_it_goes() -> None:
    traces = _job()
    for rank, trace in enumerate(traces):
        _cut(trace, (5 - rank) * STEP + 50 * MS)

    store = built(_store(traces, 0, 1, 2), "align.match", "timeline.iteration")

    assert rows_of(store, MEMBERS) == [([0, 1, 2],)] * 3 + [([0, 1],), ([0],)]
    assert [partial for _, partial in rows_of(store, ITERATIONS)] == [False] * 3 + [True] * 2


@pytest.mark.parametrize("stated", [True, False])
def test_calls_that_state_numbers_are_matched_by_these(stated: bool) -> None:
    traces = _job(ranks=2)
    for trace in traces:
        for number, row in enumerate(trace.collectives):
            row["sequence"] = number + 40 if stated else None
    _cut(traces[1], 3 * STEP + 50 * MS)

    store = built(_store(traces, 1), "align.match")

    assert rows_of(store, MEMBERS) == [([0, 1],)] * 3 + [([0],)] * 3
    method = "sequence_number" if stated else "order"
    assert rows_of(store, "SELECT DISTINCT method FROM align.match") == [(method,)]


def test_a_host_that_communicates_by_itself_is_relied_on_as_far_as_the_file_goes() -> None:
    # rank 0   |step 0: gloo|step 1: gloo|step 2: gloo|      rank 1   |step 0: gloo|step 1: gloo /
    traces = [Trace(rank) for rank in (0, 1)]
    for trace in traces:
        for number in range(3):
            at = number * STEP
            trace.step(number, at, at + STEP).host_work("aten::mm", at, at + 10 * MS)
            trace.gloo(at + 20 * MS, at + 80 * MS, issue_ns=at + 15 * MS)
            trace.host_work("aten::add", at + 90 * MS, at + 95 * MS)
    _cut(traces[1], STEP + 50 * MS)
    traces[1].arguments = [a for a in traces[1].arguments if a["event_id"] in {e["event_id"] for e in traces[1].events}]
    assert json.loads(str(traces[1].arguments[0]["args"]))

    store = built(_store(traces, 1), "align.match", "align.rank", "timeline.iteration")

    assert rows_of(store, RANKS) == [(0, None), (1, STEP + 20 * MS)]
    assert rows_of(store, MEMBERS) == [([0, 1],), ([0, 1],), ([0],)]
    assert rows_of(store, ITERATIONS) == [(0, False), (1, True), (2, True)]


def test_a_call_whose_work_on_another_thread_is_not_there_ends_what_can_be_relied_on() -> None:
    # a profiler writes thread by thread: of rank 1 all calls of the training thread are there, of gloo's only the first
    traces = [Trace(rank) for rank in (0, 1)]
    for trace in traces:
        for number in range(3):
            at = number * STEP
            trace.step(number, at, at + STEP).gloo(at + 20 * MS, at + 80 * MS, issue_ns=at + 15 * MS)
    works = [event for event in traces[1].events if str(event["name"]).startswith("gloo:")]
    _holding(traces[1], [event for event in traces[1].events if event not in works[1:]])
    traces[1].arguments = traces[1].arguments[:1]

    store = built(_store(traces, 1), "align.intact", "align.match", "align.step")

    assert rows_of(store, INTACT) == [(1, STEP + 15 * MS)]
    assert rows_of(store, STEPS) == [(0, [0, 1, 2]), (1, [0])]
    assert rows_of(store, MEMBERS) == [([0, 1],), ([0],), ([0],)]
