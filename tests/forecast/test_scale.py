"""Throughput by number of ranks: with one run, one measured point, and no curve through it."""

import pytest

from tests.given import MS, built, data_parallel_job, rows_of, store_of

COLUMNS = "SELECT model, ranks, value, low, high, extrapolated FROM forecast.scale"


def test_one_run_is_one_measured_point() -> None:
    # given two ranks and five iterations of 110 ms each
    with built(store_of(*data_parallel_job([[100 * MS, 60 * MS]] * 5, transfer_ns=10 * MS)), "forecast.scale") as store:
        rows = rows_of(store, COLUMNS)

    # then it runs at 1 / 0.11 s, without any spread, and nothing is said of other scales
    ((model, ranks, value, low, high, extrapolated),) = rows
    assert (model, ranks, extrapolated) == ("measured", 2, False)
    assert (value, low, high) == (pytest.approx(1 / 0.11), pytest.approx(1 / 0.11), pytest.approx(1 / 0.11))


def test_the_world_size_counts_even_where_not_all_traces_are_here() -> None:
    traces = data_parallel_job([[100 * MS, 60 * MS]] * 5)

    with built(store_of(*traces, world_size=8), "forecast.scale") as store:
        assert rows_of(store, "SELECT ranks FROM forecast.scale") == [(8,)]


def test_the_interval_follows_the_spread_of_the_steps() -> None:
    # given steps of 90, 100, 110 and 100 ms after a first one
    work = [[80 * MS] * 2, [80 * MS] * 2, [90 * MS] * 2, [100 * MS] * 2, [90 * MS] * 2]
    with built(store_of(*data_parallel_job(work, transfer_ns=10 * MS)), "forecast.scale") as store:
        ((_, _, value, low, high, _),) = rows_of(store, COLUMNS)

    # then the mean is 100 ms, give or take 1.96 x 8.165 / 2 = 8.0 ms
    assert value == pytest.approx(10)
    assert low == pytest.approx(1e3 / 108.0, rel=1e-3)
    assert high == pytest.approx(1e3 / 92.0, rel=1e-3)


def test_few_steps_have_no_interval() -> None:
    # given three iterations: two steps from one completion to the next
    with built(store_of(*data_parallel_job([[100 * MS, 60 * MS]] * 3, transfer_ns=10 * MS)), "forecast.scale") as store:
        assert rows_of(store, "SELECT low, high FROM forecast.scale") == [(None, None)]


def test_one_iteration_is_no_point() -> None:
    with built(store_of(*data_parallel_job([[100 * MS, 60 * MS]])), "forecast.scale") as store:
        assert rows_of(store, COLUMNS) == []


def test_an_iteration_that_is_missing_does_not_make_the_job_slower() -> None:
    # given six iterations of 110 ms, the third of which rank 1 did not mark
    traces = data_parallel_job([[100 * MS, 60 * MS]] * 6, transfer_ns=10 * MS)
    traces[1].events = [event for event in traces[1].events if event["name"] != "ProfilerStep#2"]

    with built(store_of(*traces), "forecast.scale") as store:
        assert rows_of(store, "SELECT value FROM forecast.scale") == [(pytest.approx(1 / 0.11),)]
