"""The pace: how long iterations take, how often one begins, and which of both shares of the job's time are of."""

import pytest

from tests.given import MS, Trace, data_parallel_job, rows_of
from tests.stories import told

PACE = "SELECT iterations, duration_ns, every_ns, pace_ns FROM attribute.pace"


def overlapping_job(late_ns: int = 0) -> list[Trace]:
    """Twelve iterations of 100 ms after which rank 1 lingers 40 ms, in which rank 0 is in the next one already.

        rank 0   |compute 60 ·····|reduce 10|idle ·······|compute…
        rank 1          |compute 60 ·|·····|reduce 10|linger…

    Rank 0 begins one every 70 ms, and the reduce ends when both have come.
    """
    first, second = Trace(0), Trace(1)
    for n in range(12):
        start = n * (70 * MS + late_ns)
        end = start + 70 * MS + late_ns
        own = start + 20 * MS
        first.step(n, start, end).kernel(start, start + 60 * MS).collective(start + 60 * MS, end)
        second.step(n, own, own + 70 * MS + late_ns)
        second.kernel(own, own + 40 * MS + late_ns).collective(own + 40 * MS + late_ns, end)
    return [first, second]


def test_iterations_that_follow_one_another_go_at_their_duration() -> None:
    # given six iterations of 100 ms compute and 10 ns transfer
    with told(*data_parallel_job([[100 * MS] * 2] * 6)) as store:
        assert rows_of(store, PACE) == [(6, 100 * MS + 10, 100 * MS + 10, 100 * MS + 10)]


def test_where_iterations_overlap_the_job_goes_at_the_pace_at_which_they_begin() -> None:
    # each lasts 90 ms, from rank 0's start to rank 1's end, and one begins every 70 ms
    with told(*overlapping_job()) as store:
        assert rows_of(store, PACE) == [(12, 90 * MS, 70 * MS, 70 * MS)]


def test_the_share_of_a_finding_is_of_the_pace() -> None:
    # given rank 1, which computes 30 ms longer in each of twelve iterations, one of which begins every 100 ms
    with told(*overlapping_job(late_ns=30 * MS)) as store:
        rows = rows_of(
            store,
            "SELECT f.share * p.pace_ns / f.delay_ns_per_iteration, p.pace_ns"
            " FROM attribute.finding AS f JOIN attribute.pace AS p USING (run_id)",
        )

    assert rows
    assert rows == [(pytest.approx(1.0), 100 * MS)] * len(rows)


def test_a_gap_in_what_is_judged_is_left_out_of_the_pace() -> None:
    # given the step of rank 1 in iteration 5 unmarked, so that 4 and 6 do not follow one another
    traces = overlapping_job()
    traces[1].events = [event for event in traces[1].events if event["name"] != "ProfilerStep#5"]

    with told(*traces) as store:
        ((iterations, _, every_ns, pace_ns),) = rows_of(store, PACE)

    assert (iterations, every_ns, pace_ns) == (11, 70 * MS, 70 * MS)


def test_what_lies_between_iterations_is_no_part_of_their_pace() -> None:
    # given an evaluation of 30 ms between steps of 100 ms, which the job does not mark
    traces = [Trace(0), Trace(1)]
    for n in range(6):
        start = n * 130 * MS
        for trace in traces:
            trace.step(n, start, start + 100 * MS).kernel(start, start + 90 * MS)
            trace.collective(start + 90 * MS, start + 100 * MS)

    with told(*traces) as store:
        assert rows_of(store, PACE) == [(6, 100 * MS, 130 * MS, 100 * MS)]


def test_one_iteration_alone_goes_at_its_duration() -> None:
    with told(*data_parallel_job([[100 * MS] * 2])) as store:
        assert rows_of(store, PACE) == [(1, 100 * MS + 10, None, 100 * MS + 10)]
