"""Scatter and change: known numbers of Student's t, the bootstrap it stands for, and what chance alone may claim."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from traceforge.stats import (
    Trend,
    block_draws,
    block_length,
    bootstrap_interval,
    clearest_step,
    holm,
    huber_fit,
    least_seen,
    mad_sd,
    mean_difference,
    mean_interval,
    median,
    percentile_band,
    percentile_interval,
    prediction_reach,
    share_above,
    slope,
    step_p_value,
    t_p_value,
    t_quantile,
)


@pytest.mark.parametrize(("degrees", "quantile"), [(1, 12.706), (2, 4.303), (5, 2.571), (30, 2.042), (200, 1.972)])
def test_students_quantile_is_that_of_the_tables(degrees: float, quantile: float) -> None:
    assert float(t_quantile(degrees)) == pytest.approx(quantile, abs=0.001)
    assert float(t_p_value(quantile, degrees)) == pytest.approx(0.05, abs=1e-4)


@given(st.lists(st.floats(-1e12, 1e12) | st.just(float("nan")), max_size=9))
@example([-0.0])
def test_the_median_of_a_few_is_that_of_numpy(values: list[float]) -> None:
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy warns of none, as it should

        # Of a zero the sign says nothing: with 0.0 added it is gone.
        np.testing.assert_equal(median(np.array(values)) + 0.0, float(np.median(values)) + 0.0)


def test_the_median_of_whole_ns_is_that_of_numpy() -> None:
    assert median(np.array([7, 1, 4, 2])) == 3.0
    assert median(np.array([2**62, 2**62 + 2])) == float(2**62)


def test_three_quiet_iterations_each_show_a_change_of_ten() -> None:
    # given 99, 100, 101 and 109, 110, 111: variances of the means 1/3 each, four degrees of freedom
    found = mean_difference(np.array([[99.0], [100], [101]]), np.array([[109.0], [110], [111]]))

    # then the difference is 10 ± 2.776 x sqrt(2/3)
    assert found.difference[0] == 10
    assert found.high[0] - 10 == pytest.approx(2.776 * np.sqrt(2 / 3), rel=1e-3)
    assert found.p_value[0] < 0.001


def test_two_iterations_tell_no_scatter() -> None:
    found = mean_difference(np.array([[1.0], [2.0]]), np.array([[9.0], [9.0], [9.0]]))
    assert np.isnan(found.p_value).all()
    assert mean_interval(np.array([1.0, 2.0])) is None


def test_equal_constants_do_not_differ_and_unequal_ones_do() -> None:
    before, after = np.tile([5.0, 5.0], (4, 1)), np.tile([5.0, 6.0], (4, 1))
    found = mean_difference(before, after)
    assert found.p_value[0] == pytest.approx(1)
    assert found.p_value[1] < 1e-6


def test_the_variance_is_that_of_the_circular_block_bootstrap() -> None:
    # given a run whose slow iterations come together
    rng = np.random.default_rng(3)
    values = np.repeat(rng.normal(100, 5, 10), 3) + rng.normal(0, 1, 30)
    length = block_length(30)

    # when its mean is drawn again from whole blocks, many times
    starts = rng.integers(0, 30, size=(40_000, 30 // length))
    blocks = values[(starts[:, :, None] + np.arange(length)) % 30]
    drawn = blocks.reshape(len(starts), -1).mean(axis=1)

    # then the half width is t times that scatter, made up for blocks that overlap
    low, high = mean_interval(values) or (0, 0)
    count = (30 // length) * length
    expected = drawn.std() * np.sqrt(count / 30 * 30 / (30 - length))
    t = float(t_quantile(30 / length - 1))
    assert (high - low) / 2 == pytest.approx(t * expected, rel=0.02)


def test_chance_alone_claims_little_even_where_iterations_hang_together() -> None:
    # given many pairs of runs between which nothing changed: independent iterations, and such that follow each other
    rng = np.random.default_rng(7)
    for correlation, most in ((0.0, 0.06), (0.5, 0.15)):
        runs = []
        for _ in range(2):
            noise = rng.normal(size=(60, 2000))
            for place in range(1, 60):
                noise[place] += correlation * noise[place - 1]
            runs.append(noise[40:])

        # then few of them differ
        assert (mean_difference(*runs).p_value < 0.05).mean() < most


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(p_values: list[float]) -> None:
    given_, raised = np.array(p_values), holm(np.array(p_values))
    assert (raised >= given_ - 1e-12).all()
    assert (raised <= 1).all()
    assert (np.diff(raised[np.argsort(given_, kind="stable")]) >= -1e-12).all()


def test_holm_by_hand() -> None:
    # 0.01 x 3, 0.02 x 2, 0.5 x 1
    assert holm(np.array([0.5, 0.01, 0.02])).tolist() == pytest.approx([0.5, 0.03, 0.04])


def test_of_all_pairs_the_slower_ones_are_counted() -> None:
    # 2 > 1; 2 = 2 counts half; 4 > 1, 4 > 2
    assert share_above(np.array([1.0, 2.0]), np.array([2.0, 4.0])) == (1 + 0.5 + 1 + 1) / 4


@settings(deadline=None)
@given(st.lists(st.floats(1, 1e9), min_size=3, max_size=12), st.lists(st.floats(1, 1e9), min_size=3, max_size=12))
def test_exchanging_the_runs_turns_the_sign_and_nothing_else(first: list[float], second: list[float]) -> None:
    there = mean_difference(np.array(first)[:, None], np.array(second)[:, None])
    back = mean_difference(np.array(second)[:, None], np.array(first)[:, None])
    assert there.difference == pytest.approx(-back.difference)
    assert there.low == pytest.approx(-back.high)
    assert there.p_value == pytest.approx(back.p_value)


def test_the_median_absolute_deviation_of_a_normal_distribution_is_its_standard_deviation() -> None:
    values = np.random.default_rng(1).normal(1e15, 250, 100_000)
    assert mad_sd(values) == pytest.approx(250, rel=0.02)
    # 1, 1, 2, 2, 4, 6, 9 by hand: median 2, deviations 0 0 1 1 2 4 7, their median 1
    assert mad_sd(np.array([1, 1, 2, 2, 4, 6, 9])) == pytest.approx(1.4826, abs=1e-4)


def test_three_others_reach_as_far_as_their_standard_deviation_allows() -> None:
    # given three values with a standard deviation of 2; Student's t of 2 degrees exceeds 8.86 once in 80 cases
    others = np.array([-7.0, -9.0, -11.0])

    # then one more lies within 8.86 x sqrt(1 + 1/3) of them
    assert prediction_reach(others, 1 / 80) == pytest.approx(8.86 * (4 / 3) ** 0.5 * 2, rel=0.001)


@pytest.mark.parametrize("count", [4, 6, 8, 9, 16, 64])
def test_of_equals_one_stands_out_of_the_others_as_rarely_as_said(count: int) -> None:
    rng = np.random.default_rng(count)

    def is_any_out(values: np.ndarray) -> bool:
        others = [np.delete(values, place) for place in range(count)]
        apart = [abs(value - np.median(rest)) for value, rest in zip(values, others, strict=True)]
        return any(gap > prediction_reach(rest, 0.05 / count) for gap, rest in zip(apart, others, strict=True))

    false = np.mean([is_any_out(rng.standard_normal(count)) for _ in range(400)])
    assert 0.01 <= false <= 0.08


def test_a_difference_that_is_said_to_be_seen_is_seen_19_times_in_20() -> None:
    # given means of three values with a variance of 100 each: their difference errs by sqrt(2 x 100 / 3) = 8.16, and
    # Student's t of 4 degrees is 4.60 at 1 %, 2.13 at 5 % on one side
    before, after = np.array([[0.0], [10.0], [20.0]]), np.array([[0.0], [10.0], [20.0]])
    assert least_seen(before, after, 0.01)[0] == pytest.approx((4.604 + 2.132) * 8.165, rel=0.001)
    assert np.isnan(least_seen(before[:2], after, 0.01)[0])

    # then of twenty values such a one is called a difference in at least 90 of 100 pairs, and half of it is not
    rng = np.random.default_rng(1)
    found = {1.0: 0, 0.5: 0}
    for share in found:
        for _ in range(100):
            pair = rng.standard_normal((20, 1)), rng.standard_normal((20, 1))
            larger = pair[1] + share * least_seen(*pair, 0.01)[0]
            found[share] += int(mean_difference(pair[0], larger).p_value[0] < 0.01)
    assert found[1.0] >= 90
    assert found[0.5] < 60


def test_blocks_go_around_the_circle_and_hold_neighbours() -> None:
    places = block_draws(10, 50, np.random.default_rng(0), length=5)
    assert places.shape == (50, 10)
    assert ((np.diff(places.reshape(50, 2, 5), axis=2) % 10) == 1).all()


def test_the_bootstrap_interval_of_a_median_holds_it_and_two_values_have_none() -> None:
    values = np.random.default_rng(2).normal(100, 10, 200)
    interval = bootstrap_interval(values, lambda drawn: np.median(drawn, axis=-1), np.random.default_rng(0))
    assert interval is not None
    assert interval.low < 100 < interval.high
    assert interval.high - interval.low < 8
    assert bootstrap_interval(values[:2], lambda drawn: drawn.mean(axis=-1), np.random.default_rng(0)) is None


def test_hubers_fit_is_not_moved_by_a_few_outliers() -> None:
    # given a line of slope 3 with every tenth point far off
    x = np.arange(100.0)
    level = 3 * x + np.random.default_rng(4).normal(0, 1, 100)
    level[::10] += 500

    # then the fit is the line
    intercept, slope = huber_fit(np.stack([np.ones(100), x], axis=1), level)
    assert slope == pytest.approx(3, abs=0.02)
    assert abs(intercept) < 1


def test_bands_are_intervals_place_by_place() -> None:
    drawn = np.random.default_rng(0).normal(size=(500, 3))

    low, high = percentile_band(drawn)

    assert [(low[at], high[at]) for at in range(3)] == [percentile_interval(drawn[:, at]) for at in range(3)]


def test_a_slope_holds_the_truth_as_often_as_it_says() -> None:
    # given 12 values that rise by 0.5 each, with independent errors of 1
    places = np.arange(12.0)
    rng = np.random.default_rng(2)
    found = [slope(places, 0.5 * places + rng.standard_normal(12)) for _ in range(400)]

    assert np.mean([one.low < 0.5 < one.high for one in found]) == pytest.approx(0.95, abs=0.03)
    assert np.mean([one.value for one in found]) == pytest.approx(0.5, abs=0.02)
    assert np.mean([one.is_clear for one in found]) > 0.95


def test_three_values_have_an_interval_and_two_have_none() -> None:
    assert mean_interval(np.array([99.0, 101.0])) is None
    found = mean_interval(np.array([99.0, 100.0, 101.0]))

    # 100 ± 4.303 x sqrt(1/3): two degrees of freedom
    assert found is not None
    assert found.high - 100 == pytest.approx(4.303 * np.sqrt(1 / 3), rel=1e-3)


@pytest.mark.parametrize(("count", "length"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (27, 3), (1000, 10)])
def test_a_block_is_the_cube_root_of_the_number_once_there_are_five(count: int, length: int) -> None:
    assert block_length(count) == length


@pytest.mark.parametrize(
    ("low", "high", "is_clear"), [(0.1, 2, True), (-2, -0.1, True), (0, 2, False), (-2, 0, False), (-1, 1, False)]
)
def test_a_trend_is_clear_where_its_interval_excludes_zero(low: float, high: float, is_clear: bool) -> None:
    assert Trend((low + high) / 2, low, high).is_clear is is_clear


def test_the_clearest_step_lies_where_the_level_changes_whatever_single_values_do() -> None:
    # given five values about 10 and seven about 20, one of them far out
    step = clearest_step(np.array([10.0, 11, 9, 10, 10, 20, 21, 60, 20, 19, 20, 20]), 3)

    assert (step.place, step.rise) == (5, 10)
    assert step.left.tolist() == [0, 1, -1, 0, 0, 0, 1, 40, 0, -1, 0, 0]


def test_a_step_is_as_likely_by_chance_as_students_t_says_at_any_of_its_places() -> None:
    # given a rise of 10 between four and four values; the error is 1.2533 x 4 x sqrt(1/4 + 1/4), so that t = 2.821
    step = clearest_step(np.array([0.0] * 4 + [10.0] * 4), 3)

    assert step_p_value(step, spread=4, lasting=1, degrees=20) == pytest.approx(8 * 0.01055, rel=0.01)
    # then neighbours that depart together make it likelier, and without any spread it is certain
    assert step_p_value(step, spread=4, lasting=2, degrees=20) > 0.4
    assert step_p_value(step, spread=0, lasting=1, degrees=20) == 0
    assert step_p_value(clearest_step(np.zeros(8), 3), spread=0, lasting=1, degrees=20) == 1
