"""Which iterations show a rank's usual pace: those before it got slower for good, and all where nothing shows that."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.replay.models import lockstep_model
from traceforge.replay.reference import references
from traceforge.replay.usual_pace import usual_iterations


def paces(*stretches: tuple[int, int], ranks: int = 1, noise: float = 2.0, seed: int = 0) -> np.ndarray:
    """Work of ranks alike: (iterations, level) one after the other, with some noise; shape (I, ranks)."""
    level = np.repeat([of for _, of in stretches], [count for count, _ in stretches]).astype(float)
    drawn = np.random.default_rng(seed).normal(0, noise, (len(level), ranks))
    return np.rint(level[:, None] + drawn).astype(np.int64)


def counted(work: np.ndarray) -> list[int] | None:
    """Iterations that count of the first rank; None where all do of all ranks."""
    usual = usual_iterations(work, np.full(len(work), 3))
    return None if usual is None else np.flatnonzero(usual[:, 0]).tolist()


def test_of_a_rank_that_is_slow_from_the_seventh_of_sixteen_iterations_the_seven_before_count() -> None:
    assert counted(paces((7, 1_000), (9, 1_200))) == [*range(7)]


def test_where_it_recovers_the_iterations_after_count_as_well() -> None:
    assert counted(paces((5, 1_000), (10, 1_200), (5, 1_004))) == [*range(5), *range(15, 20)]


def test_slow_first_iterations_are_what_warming_up_looks_like() -> None:
    assert counted(paces((9, 1_200), (7, 1_000))) is None


def test_after_warming_up_a_rank_may_still_get_slower() -> None:
    # given five slow iterations at first, five at 1,000 and then 1,150 to the end
    assert counted(paces((5, 1_400), (5, 1_000), (10, 1_150))) == [*range(5, 10)]


@pytest.mark.parametrize("rise", [0, 20])
def test_a_step_too_small_to_matter_changes_nothing(rise: int) -> None:
    # given a rise of 2 % at most, however clear
    assert counted(paces((8, 1_000), (8, 1_000 + rise), noise=0.5)) is None


def test_a_drift_has_no_iteration_that_begins_it() -> None:
    # given work that grows by 2 % an iteration
    assert counted(np.arange(1_000, 1_400, 20)[:, None]) is None


def test_noise_of_the_steps_size_is_no_step() -> None:
    # given 200 jobs of eight ranks whose work varies by 5 %
    jobs = [paces((16, 1_000), ranks=8, noise=50, seed=seed) for seed in range(200)]

    assert sum(counted(job) is not None for job in jobs) == 0


def test_one_rank_may_step_while_the_others_keep_their_pace() -> None:
    work = np.concatenate([paces((7, 1_000), (9, 1_100)), paces((16, 1_000), ranks=3)], axis=1)

    usual = usual_iterations(work, np.full(16, 3))
    assert usual is not None
    assert usual.sum(axis=0).tolist() == [7, 16, 16, 16]


def test_iterations_of_another_length_are_another_program() -> None:
    # given eight short iterations before eight long ones
    calls = np.repeat([2, 3], 8)

    assert usual_iterations(paces((8, 1_000), (8, 2_000)), calls) is None


def test_seven_iterations_are_too_few_for_two_paces() -> None:
    assert counted(paces((3, 1_000), (4, 2_000))) is None


@given(st.integers(4, 12), st.integers(4, 12), st.integers(0, 1_000))
def test_the_iterations_before_a_clear_step_are_found_whatever_the_noise(before: int, after: int, seed: int) -> None:
    assert counted(paces((before, 1_000), (after, 1_300), ranks=4, seed=seed)) == [*range(before)]


def test_the_reference_is_the_pace_before_the_step() -> None:
    # given two ranks that take 100 in four iterations and 150 in six
    model = lockstep_model([[[100, 100]]] * 4 + [[[150, 150]]] * 6)
    usual = np.repeat([True, False], [4, 6])[:, None].repeat(2, axis=1)

    # then without the step 150 is the median, and with it 100
    assert references(model)[1].before_arrival_ns[:, 0].tolist() == [150, 0]
    assert references(replace(model, usual=usual))[1].before_arrival_ns[:, 0].tolist() == [100, 0]


def test_a_rank_all_of_whose_iterations_of_a_length_come_late_is_held_against_these() -> None:
    model = lockstep_model([[[100, 100]]] * 3)
    usual = np.array([[False, True]] * 3)

    assert references(replace(model, usual=usual))[1].before_arrival_ns[:, 0].tolist() == [100, 0]
