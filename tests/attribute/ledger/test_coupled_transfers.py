"""Transfers that are slow because ranks came late belong to those who were late, as far as that explains them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.models import lockstep_model
from traceforge.attribute.ledger.blame_of_run import owned_ns
from traceforge.attribute.ledger.coupled_transfers import charged_to_late_ranks
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.replay.reference import references

LATE = 2
"""The iteration, of five, in which rank 1 comes 60 late: the three others wait, 45 on average over four."""


def run_with(transfers: list[int], late_ns: int = 60) -> LedgerInput:
    """Five iterations of four ranks:

    rank 0   |work 100|wait····|transfer|
    rank 1   |work 100|late 60·|transfer|
    """
    work = np.full((5, 1, 4), 100)
    work[LATE, 0, 1] += late_ns
    model = lockstep_model(work, transfer_ns=10)
    transfer = np.broadcast_to(np.array(transfers)[:, None, None], model.transfer_ns.shape).copy()
    return LedgerInput(replace(model, transfer_ns=transfer), (0,), np.zeros(model.group.shape, dtype=np.int64))


def charged(run: LedgerInput, growth: float) -> tuple[np.ndarray, np.ndarray]:
    owned = owned_ns(run, references(run.model))
    return owned, charged_to_late_ranks(run, owned, growth)


def test_a_transfer_that_grows_with_the_wait_is_the_late_ranks() -> None:
    # given a growth of 1 of the mean wait of 45, and a transfer that takes 45 longer when rank 1 is late
    before, after = charged(run_with([10, 10, 55, 10, 10]), growth=1.0)

    assert (before[LATE, 1], before[LATE, 4]) == (60, 45)
    assert (after[LATE, 1], after[LATE, 4]) == (105, 0)


def test_what_the_spread_does_not_explain_stays_the_fabrics() -> None:
    # given half of that growth: 22.5 of the 45
    _, after = charged(run_with([10, 10, 55, 10, 10]), growth=0.5)

    assert after[LATE, 1] == pytest.approx(60 + 22.5)
    assert after[LATE, 4] == pytest.approx(22.5)


def test_a_slow_transfer_that_nobody_was_late_for_stays_the_fabrics() -> None:
    _, after = charged(run_with([10, 10, 10, 55, 10]), growth=1.0)

    assert after[3, 4] == 45


@given(st.lists(st.integers(10, 200), min_size=5, max_size=5), st.integers(0, 100), st.floats(0.01, 3))
def test_the_ledger_still_adds_up(transfers: list[int], late_ns: int, growth: float) -> None:
    before, after = charged(run_with(transfers, late_ns), growth)

    assert after.sum(axis=1) == pytest.approx(before.sum(axis=1))
    assert (after[:, :4] >= before[:, :4] - 1e-9).all()
