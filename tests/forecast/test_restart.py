"""Restarts: a run that goes on from within the iterations of an earlier one has repeated some of them."""

from dataclasses import replace

import pytest

from tests.given import MS, data_parallel_job, rows_of, store_of
from traceforge.api import STAGES
from traceforge.forecast.restart import Window, restarts
from traceforge.forecast.scale_point import ScalePoint
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
    for table in ("profile", "event_kind", "occurrence", "collective"):
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
            store, "SELECT run_id, value, meaning FROM forecast.stability WHERE measure = 'repeated_iterations'"
        )

    # then 105, 106 and 107 were done twice
    ((run_id, count, meaning),) = found
    assert (run_id, count) == (1, 3)
    assert "3 iterations were done twice (300 ms), 3,599 s after that run ended" in meaning


EARLIER = Window(100, 107, EPOCH, EPOCH + 800 * MS)
CURVE = {0: ScalePoint("earlier", 2, 20.0), 1: ScalePoint("later", 2, 20.0)}


def later(first_step: int, after_ns: int) -> Window:
    return Window(first_step, first_step + 7, EPOCH + after_ns, EPOCH + after_ns + 800 * MS)


def test_repeated_work_is_counted_in_iterations_and_time() -> None:
    (found,) = restarts(1, CURVE, {0: EARLIER, 1: later(105, HOUR)})

    assert (found.earlier, found.iterations, found.gap_ns) == ("earlier", 3, HOUR - 800 * MS)
    assert found.repeated_ns == pytest.approx(300 * MS)


@pytest.mark.parametrize(("first_step", "after_ns"), [(100, HOUR), (108, HOUR), (105, 0)])
def test_the_same_window_the_next_one_or_one_beside_it_is_no_restart(first_step: int, after_ns: int) -> None:
    assert restarts(1, CURVE, {0: EARLIER, 1: later(first_step, after_ns)}) == []


def test_another_scale_or_a_clock_that_does_not_count_from_the_epoch_is_no_restart() -> None:
    recorded = {0: EARLIER, 1: later(105, HOUR)}
    other_scale = CURVE | {0: replace(CURVE[0], ranks=4)}
    since_boot = {
        run_id: Window(w.first_iteration, w.last_iteration, w.start_ns - EPOCH, w.end_ns - EPOCH)
        for run_id, w in recorded.items()
    }

    assert restarts(1, other_scale, recorded) == []
    assert restarts(1, CURVE, since_boot) == []
