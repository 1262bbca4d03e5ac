"""A rank that marks no steps takes those of a rank that issues the same calls."""

from tests.align.test_step import annotated, spans_of
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
