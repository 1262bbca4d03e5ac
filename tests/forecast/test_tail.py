"""The far tail: a shape with its interval, or a refusal."""

import numpy as np
import pytest

from traceforge.forecast.tail import fit_tail, generalised_pareto


@pytest.mark.parametrize(("shape", "tolerance"), [(-0.2, 0.05), (0.0, 0.05), (0.3, 0.06)])
def test_shape_and_scale_are_found_again(shape: float, tolerance: float) -> None:
    # given 4,000 excesses of scale 2
    uniform = np.random.default_rng(1).random(4_000)
    excesses = -2 * np.log(uniform) if shape == 0 else 2 * (uniform**-shape - 1) / shape

    found, scale = generalised_pareto(excesses)

    assert found == pytest.approx(shape, abs=tolerance)
    assert scale == pytest.approx(2, rel=0.08)


def test_an_exponential_tail_is_continued() -> None:
    # given exponential times; the median of the largest of 1,024 is ln(1024 / ln 2) = 7.3
    sample = np.random.default_rng(2).exponential(size=(200, 32))

    tail = fit_tail(sample, np.random.default_rng(2))

    assert tail is not None
    assert tail.is_bounded
    low, high = tail.slowest_between(1024)
    assert low < 7.3 < high
    assert tail.slowest(1024) == pytest.approx(7.3, rel=0.15)


def test_a_tail_that_may_have_no_variance_gives_no_number() -> None:
    # given Pareto times of exponent 1.5, whose shape is 0.67
    sample = np.random.default_rng(3).pareto(1.5, size=(100, 16))

    tail = fit_tail(sample, np.random.default_rng(3))

    assert tail is not None
    assert not tail.is_bounded


def test_few_values_or_equal_ones_are_no_tail() -> None:
    assert fit_tail(np.random.default_rng(0).exponential(size=(10, 8)), np.random.default_rng(0)) is None
    assert fit_tail(np.ones((100, 16)), np.random.default_rng(0)) is None
