"""A host that stalls is told in which Python function, where stacks were recorded."""

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


def test_clocks_that_are_apart_do_not_hide_it() -> None:
    assert f"is in {SLEEP}" in next_step(job(sleeping, clock_ns=40 * MS))


def test_without_stacks_they_are_asked_for() -> None:
    assert "with_stack=True" in next_step(job(lambda *_: None))


def test_functions_that_cover_little_of_it_are_not_named() -> None:
    def elsewhere(trace: Trace, start_ns: int, arrival_ns: int) -> None:
        trace.host_work("train.py(12): synchronise", start_ns + MS, start_ns + 4 * MS, "python_function")

    assert "with_stack=True" in next_step(job(elsewhere))
