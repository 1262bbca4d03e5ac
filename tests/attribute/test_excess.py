"""The excess: how much longer each iteration took than at reference durations."""

from tests.attribute.jobs import traces_of
from tests.given import US, data_parallel_job, rows_of
from tests.stories import told


def test_reference_and_excess_make_up_the_duration() -> None:
    # given iterations of 100 us compute and 10 us transfer, in one of which a rank is 50 us late
    with told(*traces_of({(2, 1): 50 * US})) as store:
        rows = rows_of(store, "SELECT iteration, reference_ns, excess_ns FROM attribute.excess ORDER BY iteration")

    assert rows == [(i, 110 * US, 50 * US if i == 2 else 0) for i in range(5)]


def test_an_iteration_that_a_rank_did_not_record_has_no_excess() -> None:
    traces = data_parallel_job([[100, 60]] * 3)
    traces[1].events = [event for event in traces[1].events if event["name"] != "ProfilerStep#1"]

    with told(*traces) as store:
        assert rows_of(store, "SELECT iteration FROM attribute.excess ORDER BY iteration") == [(0,), (2,)]


def test_an_iteration_faster_than_the_reference_has_a_negative_excess() -> None:
    with told(*data_parallel_job([[100] * 2, [100] * 2, [90] * 2])) as store:
        rows = rows_of(store, "SELECT reference_ns, excess_ns FROM attribute.excess ORDER BY iteration")

    assert rows == [(110, 0), (110, 0), (110, -10)]
