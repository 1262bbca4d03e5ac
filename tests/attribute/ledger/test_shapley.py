"""Sharing one lateness among several: the Shapley value of the greatest of them, in closed form."""

from itertools import combinations
from math import factorial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from traceforge.attribute.ledger.shapley import share_lateness

lateness = st.lists(st.integers(0, 1_000), min_size=1, max_size=6)
quickly = examples(200)


def shapley(late: list[int]) -> list[float]:
    """By definition: what each adds to the greatest, averaged over all orders in which they may join."""
    count = len(late)
    shares = []
    for own in range(count):
        others = [value for i, value in enumerate(late) if i != own]
        total = 0.0
        for size in range(count):
            weight = factorial(size) * factorial(count - size - 1) / factorial(count)
            total += weight * sum(max(0, late[own] - max(joined, default=0)) for joined in combinations(others, size))
        shares.append(total)
    return shares


def shares_of(late: list[int]) -> list[float]:
    return share_lateness(np.array(late, dtype=np.float64)).tolist()


@quickly
@given(lateness)
def test_the_shares_are_the_shapley_value(late: list[int]) -> None:
    np.testing.assert_allclose(shares_of(late), shapley(late), atol=1e-9)


@quickly
@given(lateness)
def test_the_shares_add_up_to_the_latest(late: list[int]) -> None:
    assert abs(sum(shares_of(late)) - max(late)) < 1e-9


@quickly
@given(lateness, st.data())
def test_one_nanosecond_moves_no_share_by_more_than_one(late: list[int], data: st.DataObject) -> None:
    # given one of them one ns later
    which = data.draw(st.integers(0, len(late) - 1))
    later = [value + (i == which) for i, value in enumerate(late)]

    # then every share stays within one ns of what it was
    np.testing.assert_allclose(shares_of(late), shares_of(later), atol=1 + 1e-9)


def test_two_late_ones_worked_by_hand() -> None:
    #   0        4            10
    #   |--both--|--the later-|      the first 4 are shared by two, the other 6 are one's alone
    assert shares_of([10, 4, 0]) == [8, 2, 0]


def test_ties_share_equally() -> None:
    assert shares_of([9, 9, 9]) == [3, 3, 3]


def test_who_is_on_time_owns_nothing() -> None:
    assert shares_of([0, 0, 7]) == [0, 0, 7]


def test_rows_are_shared_each_for_itself() -> None:
    several = share_lateness(np.array([[10.0, 4.0], [0.0, 0.0], [6.0, 6.0]]))

    assert several.tolist() == [[8, 2], [0, 0], [3, 3]]
