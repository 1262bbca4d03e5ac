"""Lasting changes of a series: found within three runs, hardly ever where there is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.simulated import KINDS, TESTING, false_alarm_share, found_in_time_share
from traceforge.history.steps import FEWEST_RUNS, smallest_step, steps

USUAL = [100.0, 101, 99, 100, 102, 98, 100, 101, 99, 100]


def test_three_slow_runs_in_a_row_are_a_change_that_began_with_the_first() -> None:
    (step,) = steps([*USUAL, 120, 121, 119])

    assert (step.place, step.found, step.before, step.after) == (10, 12, 100.0, 120.0)
    assert step.rise == 20


def test_two_slow_runs_are_none_nor_are_three_that_are_not_in_a_row() -> None:
    assert steps([*USUAL, 120, 121]) == []
    assert steps([*USUAL, 120, 121, 100, 119]) == []


def test_it_is_told_with_the_third_run_and_never_taken_back() -> None:
    runs = [*USUAL, 120, 121, 119, 100, 100, 100, 100]

    told = [[(one.place, one.found) for one in steps(runs[:count])] for count in range(12, len(runs) + 1)]

    assert told[0] == []
    assert all(one == [(10, 12)] for one in told[1:])


def test_a_faster_level_is_a_change_too_and_a_later_one_is_held_against_it() -> None:
    runs = [*USUAL, *(value - 30 for value in USUAL), 100, 101, 99]

    assert [(one.place, round(one.rise)) for one in steps(runs)] == [(10, -30), (20, 30)]


def test_too_few_runs_say_nothing() -> None:
    runs = [*USUAL, 200, 200, 200]

    assert FEWEST_RUNS == 13
    assert steps(runs[1:]) == []
    assert smallest_step(USUAL[1:], []) is None


def test_a_change_as_small_as_is_said_to_show_does_show() -> None:
    sight = smallest_step(USUAL, [])
    assert sight is not None

    assert [one.place for one in steps([*USUAL, *(100 + sight,) * 3])] == [10]
    assert sight < 15


def test_less_than_one_per_cent_is_no_change_however_still_the_runs_are() -> None:
    assert steps([100.0] * 20 + [100.9] * 20) == []
    assert [one.place for one in steps([100.0] * 20 + [101.1] * 20)] == [20]


@given(st.lists(st.floats(50, 150), max_size=40))
def test_neither_sign_nor_unit_changes_where_steps_are(values: list[float]) -> None:
    plain = [(one.place, one.found) for one in steps(values)]

    assert [(one.place, one.found) for one in steps([-value for value in values])] == plain
    assert [(one.place, one.found) for one in steps([1024.0 * value for value in values])] == plain


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_one_history_in_a_hundred_gives_a_false_alarm(kind: str) -> None:
    # given histories of 60 runs, of seeds that no threshold was chosen on
    assert false_alarm_share(kind, TESTING, 150) <= 0.01 + 2 * np.sqrt(0.01 * 0.99 / 150)


@pytest.mark.parametrize(
    ("kind", "least"), [("normal", 0.9), ("heavy_tailed", 0.9), ("correlated", 0.9), ("with_outliers", 0.75)]
)
def test_a_step_of_six_spreads_is_found_within_three_runs(kind: str, least: float) -> None:
    assert found_in_time_share(kind, TESTING, 60) >= least
