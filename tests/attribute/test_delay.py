"""The ledger: rows of owners whose delays add up to each iteration's excess to the nanosecond."""

from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attribute.jobs import STALLS, traces_of
from tests.given import US, Trace, data_parallel_job, rows_of
from tests.stories import told
from traceforge.attribute import delay
from traceforge.attribute.cause import MODES, causes
from traceforge.attribute.ledger.rounding import round_to_sum
from traceforge.store.database import Store
from traceforge.store.stage import stage_documents

Rows = list[tuple[object, ...]]


@cache
def _ledgers(store: Store) -> pl.DataFrame:
    # The ledger needs the stages up to the graph only, and runs in which no coupling was measured, nor any host's pace.
    for name in (
        "replay.calibration",
        "attribute.host_pace",
        "attribute.host_time",
        "attribute.host_need",
        "attribute.starvation",
    ):
        stage = name.partition(".")[0]
        store.execute(f"CREATE SCHEMA IF NOT EXISTS {stage}")
        store.create(next(one for one in stage_documents(f"traceforge.{stage}") if one.name == name))
    return pl.concat(delay.rows(store))


def ledger_of(*traces: Trace, columns: str = "iteration, rank, cause, delay_ns") -> Rows:
    run = told(*traces, stage="timeline graph")
    names = columns.split(", ")
    return _ledgers(run.store).filter(run_id=run.run_id).select(names).sort(names, nulls_last=True).rows()


@pytest.mark.parametrize("cause", STALLS)
def test_a_delay_of_any_cause_is_its_ranks_to_the_nanosecond(cause: str) -> None:
    # given five iterations, in the third of which rank 1 loses 50 us before it computes
    #   rank 0   |compute·······|w 50 |t|
    #   rank 1   |50 ·|compute········|t|
    #   rank 2   |compute·······|w 50 |t|
    traces = traces_of({(2, 1): 50 * US}, by=cause)
    rows = ledger_of(*traces, columns="iteration, rank, mode, cause, delay_ns")

    # then the whole excess of that iteration is rank 1's, by that cause, and nothing else is charged
    assert rows == [(2, 1, causes()[cause].mode, cause, 50 * US)]


def test_a_slow_transfer_is_the_fabrics_and_no_ranks() -> None:
    # given transfers of 10 us, one of which takes 35
    rows = ledger_of(
        *traces_of({}, transfer_ns=[10 * US, 10 * US, 35 * US, 10 * US, 10 * US]),
        columns="iteration, rank, mode, cause, delay_ns",
    )

    assert rows == [(2, None, "fabric_contention", "slow_transfer", 25 * US)]


def test_that_everyone_is_faster_is_a_credit_of_everyones() -> None:
    # given iterations of 100 ns of compute, one of which takes all ranks 90
    rows = ledger_of(*data_parallel_job([[100] * 3, [100] * 3, [90] * 3, [100] * 3, [100] * 3]))

    assert rows == [(2, None, "faster_than_reference", -10)]


def test_a_job_in_which_nothing_varies_has_an_empty_ledger() -> None:
    assert ledger_of(*data_parallel_job([[100, 100, 100]] * 4)) == []


def test_any_regrouping_of_the_ledger_adds_up_to_the_excess() -> None:
    # given a job whose ranks, transfers and starts vary, in amounts that do not divide evenly
    work = [[101, 157, 93], [250, 66, 71], [133, 131, 137], [99, 204, 203]]
    with told(*data_parallel_job(work, transfer_ns=37)) as store:
        excess = rows_of(store, "SELECT iteration, excess_ns FROM attribute.excess ORDER BY iteration")
        ledger = rows_of(store, "SELECT iteration, rank, mode, cause, delay_ns FROM attribute.delay")

    # then the rows of each iteration add up to its excess
    amounts = {row: int(str(row[-1])) for row in ledger}
    for iteration, excess_ns in excess:
        assert sum(amount for row, amount in amounts.items() if row[0] == iteration) == excess_ns

    # and so does every other grouping to the run's, in modes that there are
    total = sum(int(str(excess_ns)) for _, excess_ns in excess)
    for column in (1, 2, 3):
        groups = {row[column] for row in ledger}
        assert sum(sum(a for row, a in amounts.items() if row[column] == group) for group in groups) == total
    assert {str(row[2]) for row in ledger} <= set(MODES)


@pytest.mark.parametrize("order", [[3, 2, 1, 0], [1, 3, 0, 2]])
def test_numbering_the_ranks_otherwise_renumbers_the_ledger(order: list[int]) -> None:
    # given ranks of which two are late in different iterations
    work = [[100, 100, 100, 100], [140, 100, 100, 120], [100, 100, 100, 100], [100, 100, 130, 100], [100] * 4]
    renamed = [[row[rank] for rank in order] for row in work]

    # then the ledger names them by their new numbers
    expected = [
        (iteration, None if rank is None else order.index(int(str(rank))), cause, delay)
        for iteration, rank, cause, delay in ledger_of(*data_parallel_job(work))
    ]
    assert ledger_of(*data_parallel_job(renamed)) == sorted(expected, key=str)


def test_clocks_that_are_off_change_nothing() -> None:
    # given a job with a late rank, told by exact clocks and by clocks that are seconds off
    work = [[100, 100, 140], [100, 110, 100], [100, 100, 100], [130, 100, 100]]

    exact = ledger_of(*data_parallel_job(work))
    off = ledger_of(*data_parallel_job(work, clock_ns=[0, 3_000_000_000, 1_234_567], hosts=["a", "b", "c"]))

    assert off == exact
    assert exact


def test_ten_times_the_time_is_ten_times_the_ledger() -> None:
    work = [[200, 200, 280], [200, 220, 200], [200, 200, 200], [260, 200, 200]]
    tenfold = [[10 * duration for duration in row] for row in work]

    rows = ledger_of(*data_parallel_job(work, transfer_ns=20))

    assert ledger_of(*data_parallel_job(tenfold, transfer_ns=200)) == [
        (*row[:3], 10 * int(str(row[3]))) for row in rows
    ]


def test_a_run_without_common_iterations_has_no_ledger() -> None:
    first, later = data_parallel_job([[100, 60]] * 2), data_parallel_job([[100, 60]] * 2, first_step=5)

    assert ledger_of(first[0], later[1]) == []


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=12))
def test_rounding_keeps_the_sum(amounts: list[float]) -> None:
    # given shares that are no whole numbers
    exact = np.array([amounts], dtype=np.float64)

    # when they are rounded
    (rounded,) = round_to_sum(exact)

    # then their sum is the rounded sum, and none has moved by more than one
    assert rounded.sum() == pytest.approx(sum(amounts), abs=0.5 + 1e-6)
    assert np.abs(rounded - exact[0]).max(initial=0) <= 1


def test_the_largest_fractions_are_rounded_up() -> None:
    # given 3.3 + 3.3 + 3.4 = 10
    assert round_to_sum(np.array([[3.3, 3.3, 3.4]])).tolist() == [[3, 3, 4]]


def test_nothing_rounds_to_nothing() -> None:
    assert round_to_sum(np.zeros((1, 0))).tolist() == [[]]
