"""What a run measured at its scale: where an iteration's time goes, averaged over ranks."""

import pytest

from tests.attribute.jobs import traces_of
from tests.given import US, built, data_parallel_job, rows_of, store_of


def test_terms_worked_by_hand() -> None:
    #   rank 0   |compute 100····|transfer 20|
    #   rank 1   |60····|wait 40·|transfer 20|      120 each
    with built(store_of(*data_parallel_job([[100, 60]] * 3, transfer_ns=20)), "forecast.point") as store:
        rows = rows_of(
            store, "SELECT iterations, ranks, local_ns, compute_ns, exposed_transfer_ns, waiting_ns FROM forecast.point"
        )

    assert rows == [(3, 2, 80, 80, 20, 20)]


def test_terms_add_up_to_the_iteration() -> None:
    # given a job with stalls, waits and transfers
    traces = traces_of({(i, i % 3): 30 * US for i in range(6)}, by="input_stall", iterations=6)
    with built(store_of(*traces), "forecast.point", "timeline.rank_iteration") as store:
        ((local, whole, input_ns),) = rows_of(
            store,
            "SELECT compute_ns + copy_ns + input_ns + runtime_ns + idle_ns - local_ns,"
            " local_ns + exposed_transfer_ns + waiting_ns, input_ns FROM forecast.point",
        )
        ((mean,),) = rows_of(
            store,
            "SELECT AVG(r.duration_ns) FROM timeline.rank_iteration AS r JOIN timeline.iteration AS i"
            " USING (run_id, iteration) WHERE NOT i.is_warmup AND NOT i.is_partial",
        )

    # each is rounded to a ns
    assert local == pytest.approx(0, abs=3)
    assert whole == pytest.approx(mean, abs=2)
    assert input_ns > 0
