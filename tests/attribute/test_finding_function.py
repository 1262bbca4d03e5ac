"""A host that stalls is told in which Python function, or in which annotation of the program."""

from collections.abc import Callable

from tests.attribute.jobs import sleeping_job
from tests.given import MS, Trace, rows_of
from tests.stories import told

SLEEP = "<built-in function sleep>"
Stacks = Callable[[Trace, int, int], object]


def job(stacks: Stacks, clock_ns: int = 0) -> list[Trace]:
    """Four ranks of which rank 2 sleeps from 2 to 7 ms of each step, with stacks on each."""
    traces = sleeping_job(clock_ns)
    for trace in traces:
        for number in range(12):
            stacks(trace, number * 10 * MS, (number * 10 + (7 if trace.rank == 2 else 2)) * MS)
    return traces


def sleeping(trace: Trace, start_ns: int, arrival_ns: int) -> None:
    """main calls synchronise, which sleeps on rank 2 and checks its queue for 1 ms."""
    if not start_ns:
        trace.host_work("train.py(90): main", 0, 120 * MS, "python_function")
    trace.host_work("train.py(12): synchronise", start_ns + MS, arrival_ns + MS, "python_function")
    if arrival_ns - start_ns > 2 * MS:
        trace.host_work(SLEEP, start_ns + 2 * MS, arrival_ns - MS, "python_function")
        trace.host_work("<built-in method get>", arrival_ns - MS, arrival_ns, "python_function")


def next_step(traces: list[Trace]) -> str:
    query = "SELECT next_step FROM attribute.finding WHERE cause = 'host_stall' AND subject = '2'"
    with told(*traces) as store:
        ((step,),) = rows_of(store, query)
    return str(step)


def test_the_innermost_function_that_covers_most_of_the_stall_is_named_with_its_caller() -> None:
    # sleep lasts 4 of the 5 ms, a method of the queue 1
    assert next_step(job(sleeping)) == (
        f"See why rank 2 is in {SLEEP}, called from train.py(12): synchronise: 4.00 ms an iteration of the time in "
        "which it stalls, by the recorded stacks."
    )


def stalled_on_device(stall_ns: Callable[[int, int], int], annotated: Stacks) -> list[Trace]:
    """Twelve steps of four ranks with devices, 8 ms of kernels each.

    Args:
        stall_ns: by rank and step how long the host stalls before it launches them.
        annotated: told a rank's start of the step and when it launches.
    """
    traces, at = [Trace(rank) for rank in range(4)], 0
    for step in range(12):
        own = [at + stall_ns(rank, step) for rank in range(4)]
        end = max(own) + 10 * MS
        for trace, ready in zip(traces, own, strict=True):
            trace.step(step, at, end).kernel(ready, ready + 8 * MS)
            trace.collective(ready + 8 * MS, end, issue_ns=ready + 2)
            annotated(trace, at, ready)
        at = end
    return traces


def on_rank_2(rank: int, _: int) -> int:
    return 5 * MS if rank == 2 else 0


def test_an_annotation_that_is_little_else_than_the_stall_is_named() -> None:
    # given no stacks; each step is inside of train_step, and rank 2's stall inside of an annotation of its own
    def annotated(trace: Trace, start_ns: int, ready_ns: int) -> None:
        trace.host_work("train_step", start_ns, ready_ns + 9 * MS, "user_annotation")
        if ready_ns > start_ns:
            trace.host_work("send_metrics", start_ns, ready_ns, "user_annotation")

    assert next_step(stalled_on_device(on_rank_2, annotated)) == (
        "See why rank 2 is in “send_metrics”: 5.00 ms an iteration of the time in which it stalls, by the program's "
        "own annotation."
    )


def test_an_annotation_of_far_more_than_the_stall_says_nothing() -> None:
    def annotated(trace: Trace, start_ns: int, ready_ns: int) -> None:
        trace.host_work("train_step", start_ns, ready_ns + 9 * MS, "user_annotation")

    assert "with_stack=True" in next_step(stalled_on_device(on_rank_2, annotated))


def test_what_all_hosts_are_in_while_all_stall_is_named_by_one_of_them() -> None:
    # given that all stall for 30 ms in the fifth step, as they send metrics
    def annotated(trace: Trace, start_ns: int, ready_ns: int) -> None:
        if ready_ns > start_ns:
            trace.host_work("send_metrics", start_ns + 1, ready_ns - 1, "user_annotation")

    traces = stalled_on_device(lambda _, step: 30 * MS if step == 5 else 0, annotated)
    with told(*traces) as store:
        ((step,),) = rows_of(store, "SELECT next_step FROM attribute.finding WHERE subject = 'all'")
    assert step == (
        "See why ranks, such as 0, are in “send_metrics”: 30.0 ms an iteration of the time in which it "
        "stalls, by the program's own annotation."
    )


def test_clocks_that_are_apart_do_not_hide_it() -> None:
    assert f"is in {SLEEP}" in next_step(job(sleeping, clock_ns=40 * MS))


def test_without_stacks_they_are_asked_for() -> None:
    assert "with_stack=True" in next_step(job(lambda *_: None))


def test_functions_that_cover_little_of_it_are_not_named() -> None:
    def elsewhere(trace: Trace, start_ns: int, arrival_ns: int) -> None:
        trace.host_work("train.py(12): synchronise", start_ns + MS, start_ns + 4 * MS, "python_function")

    assert "with_stack=True" in next_step(job(elsewhere))
