"""Restarts: a run that goes on from within the iterations of an earlier one has repeated some of them."""

import pytest

from tests.given import MS, data_parallel_job, rows_of, store_of
from traceforge.api import STAGES
from traceforge.store.database import Store
from traceforge.store.stage import build_stage

EPOCH = 1_700_000_000_000_000_000
HOUR = 3_600_000_000_000


def two_runs(first_step: int, after_ns: int) -> Store:
    """A run of iterations 100 to 107 of 100 ms, and another that starts so much later with another iteration."""
    store = store_of(*data_parallel_job([[90 * MS] * 2] * 8, transfer_ns=10 * MS, first_step=100, clock_ns=[EPOCH] * 2))
    later = data_parallel_job(
        [[90 * MS] * 2] * 8, transfer_ns=10 * MS, first_step=first_step, clock_ns=[EPOCH + after_ns] * 2
    )
    other = store_of(*later)
    for table in ("kineto_kind", "kineto_occurrence", "kineto_collective"):
        rows = other.query(f"SELECT * REPLACE (source_id + 2 AS source_id) FROM raw.{table}")
        store.append(f"raw.{table}", rows)
    store.append(
        "meta.source", other.query("SELECT * REPLACE (source_id + 2 AS source_id, 1 AS run_id) FROM meta.source")
    )
    other.close()
    store.execute("INSERT INTO meta.run VALUES (1, 'later', NULL)")
    for stage in STAGES:
        build_stage(store, f"traceforge.{stage}")
    return store


def test_iterations_that_two_runs_recorded_one_after_the_other_were_repeated() -> None:
    # given a run that goes on an hour later from iteration 105
    with two_runs(105, HOUR) as store:
        found = rows_of(
            store, "SELECT run_id, earlier_run_id, repeated_iterations, repeated_ns, gap_ns FROM forecast.restart"
        )

    # then 105, 106 and 107 were done twice
    assert found == [(1, 0, 3, 300 * MS, pytest.approx(HOUR - 800 * MS, rel=1e-3))]


@pytest.mark.parametrize(("first_step", "after_ns"), [(100, HOUR), (108, HOUR), (105, 0)])
def test_the_same_window_the_next_one_or_one_beside_it_is_no_restart(first_step: int, after_ns: int) -> None:
    with two_runs(first_step, after_ns) as store:
        assert rows_of(store, "FROM forecast.restart") == []
