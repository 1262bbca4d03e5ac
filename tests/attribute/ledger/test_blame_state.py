"""Accounts kept as sums of a few are the same accounts as those with every amount worked out."""

import numpy as np
import pytest

from traceforge.attribute.ledger import blame_state
from traceforge.attribute.ledger.blame_state import Expanded, Factored, Own

ROWS, KINDS, RANKS, GROUPS, FEW, COMMUNICATORS = 5, 2, 12, 6, 2, 7


def both() -> tuple[Factored, Expanded]:
    """Six accounts of two ranks each, sums of two accounts, in both forms."""
    rng = np.random.default_rng(0)
    own = Own(
        np.arange(RANKS) % GROUPS,
        rng.integers(0, 9, (ROWS, KINDS, RANKS)).astype(np.float64),
        rng.integers(0, 9, (ROWS, GROUPS, COMMUNICATORS)).astype(np.float64),
    )
    weight = rng.integers(0, 4, (ROWS, GROUPS, FEW)).astype(np.float64)
    base = rng.integers(0, 9, (ROWS, FEW, KINDS * RANKS + COMMUNICATORS)).astype(np.float64)
    return Factored(weight, base, own), Factored(weight, base, own).expanded()


def test_an_account_has_what_it_takes_over_and_what_is_its_own() -> None:
    # given one iteration of two ranks, each with an account that takes over half and all of what one account has
    own = Own(np.array([0, 1]), np.array([[[5.0, 7.0]]]), np.array([[[1.0], [0.0]]]))
    kept = Factored(np.array([[[0.5], [1.0]]]), np.array([[[10.0, 20.0, 4.0]]]), own)

    # then owners are the two ranks and the communicator
    assert kept.expanded().late[0].tolist() == [[5 + 5, 10, 2 + 1], [10, 20 + 7, 4]]
    assert kept.survey(np.array([0, 0])).least[0].tolist() == [10, 10, 3]
    assert kept.total()[0].tolist() == [23, 41]


@pytest.mark.parametrize(("one_thread", "at_once"), [(200_000, 64_000), (60, 1), (12, 40), (100, 12)])
def test_working_out_block_by_block_finds_the_same_least(
    monkeypatch: pytest.MonkeyPatch, one_thread: int, at_once: int
) -> None:
    monkeypatch.setattr(blame_state, "_PRODUCTS_AT_ONCE", one_thread)
    monkeypatch.setattr(blame_state, "_AT_ONCE", at_once)
    kept, worked_out = both()
    communicator = np.array([0, 3, 6, 2, 2, 5])

    found, expected = kept.survey(communicator), worked_out.survey(communicator)

    np.testing.assert_array_equal(found.least, expected.least)
    np.testing.assert_array_equal(found.work, expected.work)
    np.testing.assert_array_equal(found.left, expected.left)


def test_single_places_and_totals_are_the_same() -> None:
    kept, worked_out = both()
    row, column = (each.ravel() for each in np.indices((ROWS, KINDS * RANKS + COMMUNICATORS)))
    account = column % GROUPS

    np.testing.assert_array_equal(kept.at(row, column), worked_out.at(row, column))
    np.testing.assert_array_equal(kept.at_one(row, account, column), worked_out.at_one(row, account, column))
    np.testing.assert_array_equal(kept.total(), worked_out.total())


def test_joining_sums_of_a_few_is_joining_the_accounts() -> None:
    kept, worked_out = both()
    weight = np.random.default_rng(1).integers(0, 4, (ROWS, 3, GROUPS)).astype(np.float64)
    least = worked_out.late.min(axis=1)

    np.testing.assert_allclose(kept.joined(weight, least), worked_out.joined(weight, least), atol=1e-9)
