"""A rank that marks no steps takes those of a rank that issues the same calls."""

from dataclasses import replace

from tests.align.test_step import annotated, spans_of
from tests.given import data_parallel_job, rows_of
from tests.stories import told
from traceforge.align.rank_trace import RankTrace
from traceforge.align.step import steps_of_run


def test_a_rank_without_marks_takes_the_steps_of_one_that_issues_the_same_calls() -> None:
    # rank 0   |5: 100 ––––––– 200|6: 200 ––––––– 300|     calls at 140, 180, 240, 280
    # rank 1   its clock is 1000 ahead; it comes 30 late to the second step's first call, and marks nothing
    marked = annotated(
        ("ProfilerStep#5", 100, 200), ("ProfilerStep#6", 200, 300),
        calls=[("a:4", 140), ("a:4", 180), ("a:4", 240), ("a:4", 280)], window=(90, 310),
    )  # fmt: skip
    bare = annotated(calls=[("a:4", 1140), ("a:4", 1180), ("a:4", 1270), ("a:4", 1310)], window=(1095, 1325))
    other = annotated(calls=[("b:4", 140)], window=(90, 310))

    origin, steps = steps_of_run({0: marked, 1: bare, 2: other})

    # then what follows the last call of a step is as long as on rank 0, and the window cuts the last one
    assert origin == "profiler_step"
    assert spans_of(steps[1]) == [(5, 1100, 1200, True), (6, 1200, 1325, True)]
    assert {step.is_from_peer for step in steps[1]} == {True}
    assert {step.is_from_peer for step in steps[0]} == {False}
    assert spans_of(steps[2]) == [(0, 90, 310, True)]


def test_a_step_that_is_taken_over_begins_before_its_first_call_however_early_that_comes() -> None:
    marked = annotated(
        ("ProfilerStep#5", 100, 200), ("ProfilerStep#6", 200, 300), calls=[("a:4", 150), ("a:4", 250)], window=(90, 310)
    )
    early = annotated(calls=[("a:4", 150), ("a:4", 180)], window=(90, 310))

    _, steps = steps_of_run({0: marked, 1: early})

    assert spans_of(steps[1]) == [(5, 100, 180, True), (6, 180, 230, True)]


def test_calls_of_one_name_are_the_same_wherever_the_windows_begin() -> None:
    # rank 0   |5: 100 ––––––– 200|6: 200 ––––––– 300|     calls dp:4 at 150, dp:5 at 250
    # rank 1   its window began a step earlier, and ends before its call of step 6: dp:3 at 60, dp:4 at 160
    marked = annotated(
        ("ProfilerStep#5", 100, 200), ("ProfilerStep#6", 200, 300), calls=[("a:4", 150), ("a:4", 250)], window=(90, 310)
    )
    bare = annotated(calls=[("a:4", 60), ("a:4", 160)], window=(0, 240))
    traces = {0: replace(marked, names=["dp:4", "dp:5"]), 1: replace(bare, names=["dp:3", "dp:4"])}

    _, steps = steps_of_run(traces)

    # then step 5 ends as long after dp:4 as on rank 0, and of step 6 the call is not there
    assert spans_of(steps[1]) == [(5, 110, 210, True), (6, 210, 240, False)]


def test_a_few_calls_in_common_are_not_enough() -> None:
    # given a rank that shares one call of four with the marked one
    calls = [("a:4", 110), ("a:4", 150), ("a:4", 210), ("a:4", 250)]
    marked = annotated(("ProfilerStep#5", 100, 200), ("ProfilerStep#6", 200, 300), calls=calls, window=(90, 310))
    bare = annotated(calls=[("b:4", at) for _, at in calls], window=(90, 310))
    traces = {
        0: replace(marked, names=["dp:1", "dp:2", "dp:3", "all:1"]),
        1: replace(bare, names=["pp:1", "pp:2", "pp:3", "all:1"]),
    }

    assert spans_of(steps_of_run(traces)[1][1]) == [(0, 90, 310, True)]


def test_where_a_rank_shares_no_call_with_a_marked_one_all_steps_are_inferred() -> None:
    # given a stage of a pipeline that marks three steps, and one with calls of its own that marks none
    marks = [(f"ProfilerStep#{n}", 100 * n, 100 * n + 100) for n in range(3)]
    stages = {
        rank: RankTrace(0, 310, [], calls, arrivals_ns=[issue_ns for _, issue_ns in calls])
        for rank, calls in enumerate(
            [(kind, 100 * n + at) for n in range(3) for kind, at in ((f"{one}:1", 10), (f"{one}:2", 60))]
            for one in ("send", "recv")
        )
    }
    first = annotated(*marks, calls=stages[0].calls, window=(0, 310))
    traces = {0: replace(first, arrivals_ns=stages[0].arrivals_ns), 1: stages[1]}

    origin, steps = steps_of_run(traces)

    assert origin == "collective_period"
    assert [step.start_ns for step in steps[0]] == [step.start_ns for step in steps[1]] == [10, 110, 210]


def test_of_several_marked_ranks_the_lowest_is_followed() -> None:
    calls = [("a:4", 150), ("a:4", 250)]
    marked = [
        annotated(("ProfilerStep#5", at, at + 100), ("ProfilerStep#6", at + 100, 300), calls=calls, window=(90, 310))
        for at in (100, 110)
    ]

    _, steps = steps_of_run({0: marked[0], 1: marked[1], 2: annotated(calls=calls, window=(90, 310))})

    assert spans_of(steps[2]) == [(5, 100, 200, True), (6, 200, 300, True)]


def test_the_table_says_whose_marks_steps_are_known_by() -> None:
    # given three steps of two ranks, of which the second marks none
    traces = data_parallel_job([[60, 40], [30, 70], [20, 20]])
    traces[1].events = [one for one in traces[1].events if not str(one["name"]).startswith("ProfilerStep")]

    store = told(*traces, stage="align")

    origins = "SELECT rank, origin, COUNT(*) FROM align.step GROUP BY ALL ORDER BY rank"
    assert rows_of(store, origins) == [(0, "profiler_step", 3), (1, "peer", 3)]
    assert rows_of(store, "SELECT code, count FROM meta.issue WHERE code LIKE 'steps_%'") == [("steps_from_peers", 1)]
