"""Couplings are not measured yet, and the table says so for each run."""

from tests.given import built, data_parallel_job, rows_of, store_of


def test_the_coupling_is_named_and_not_given_a_number() -> None:
    # given a run of three iterations with one all-reduce each
    with built(store_of(*data_parallel_job([[100, 60]] * 3)), "replay") as store:
        rows = rows_of(store, "SELECT mechanism, coefficient, low, high, n, verdict FROM replay.calibration")

    assert rows == [("arrival_spread", None, None, None, 3, "not_identifiable")]
