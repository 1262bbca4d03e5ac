"""Sums of shapes with weights that are not negative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.forecast.fitting import fit_nonnegative, log_error

RANKS = np.array([2.0, 4, 8, 16, 32])
SHAPES = np.stack([np.ones_like(RANKS), RANKS - 1, RANKS * (RANKS - 1)], axis=1)


@given(st.tuples(*(st.floats(0, 10) for _ in range(3))).filter(lambda w: sum(w) > 1e-3))
def test_what_was_made_of_the_shapes_is_taken_apart_again(weights: tuple[float, ...]) -> None:
    times = SHAPES @ np.array(weights)
    if (times <= 0).any():
        return

    found = fit_nonnegative(SHAPES, times[None])

    assert (found >= 0).all()
    assert found[0] @ SHAPES.T == pytest.approx(times, rel=1e-4)


def test_a_shape_that_would_need_a_negative_weight_gets_none() -> None:
    # given times that fall with the ranks: no sum of growing shapes does that
    times = 1 / RANKS

    found = fit_nonnegative(SHAPES, times[None])

    assert found[0, 1:] == pytest.approx([0, 0])


def test_logs_are_fitted_so_that_every_scale_counts_alike() -> None:
    # given a constant seen 20 % high at one point and 20 % low at another, a hundred times apart in nothing else
    times = np.array([[1.2, 1 / 1.2]])

    found = fit_nonnegative(np.ones((2, 1)), times)

    assert found[0, 0] == pytest.approx(1.0, rel=1e-6)


def test_many_sets_at_once_are_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(3)
    times = np.exp(rng.normal(size=(7, 5)))

    together = fit_nonnegative(SHAPES, times)

    assert together == pytest.approx(np.concatenate([fit_nonnegative(SHAPES, one[None]) for one in times]), rel=1e-6)


def test_the_error_is_the_root_mean_square_of_logs() -> None:
    assert log_error(np.array([[np.e, 1.0]]), np.ones((1, 2)))[0] == pytest.approx(0.5**0.5)
