"""Steps of jobs that mark none, and whose collectives are all alike: found from what the devices compute."""

from tests.given import MS, Trace, rows_of
from tests.stories import told

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
    assert rows_of(store, JUDGED) == [(8,)]
    assert rows_of(store, LATE) == []


def test_a_slow_rank_is_found_without_a_mark() -> None:
    store = told(*_job(late_ns=20 * MS), stage="attribute")

    assert ("1", [1]) in rows_of(store, LATE)


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
