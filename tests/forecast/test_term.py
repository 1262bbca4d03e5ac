"""Where an iteration's time goes, averaged over ranks: terms that add up to the whole."""

import pytest

from tests.attribute.jobs import traces_of
from tests.given import US, built, data_parallel_job, rows_of, store_of


def test_terms_worked_by_hand() -> None:
    #   rank 0   |compute 100····|transfer 20|
    #   rank 1   |60····|wait 40·|transfer 20|      120 each
    with built(store_of(*data_parallel_job([[100, 60]] * 3, transfer_ns=20)), "forecast") as store:
        rows = rows_of(store, "SELECT term, duration_ns_per_iteration, share FROM forecast.term ORDER BY term")

    assert rows == [
        ("compute", 80, pytest.approx(160 / 240)),
        ("exposed_transfer", 20, pytest.approx(40 / 240)),
        ("waiting", 20, pytest.approx(40 / 240)),
    ]


def test_shares_add_up_to_one() -> None:
    # given a job with stalls, waits and transfers
    traces = traces_of({(i, i % 3): 30 * US for i in range(6)}, by="input_stall", iterations=6)
    with built(store_of(*traces), "forecast") as store:
        ((total,),) = rows_of(store, "SELECT SUM(share) FROM forecast.term")

    assert total == pytest.approx(1)
