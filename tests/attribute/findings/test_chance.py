"""Could it be chance: worked by hand where that is possible, and against shuffling where it is not."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from traceforge.attribute.findings.chance import gathering_p_value, level_p_value, spacing_p_value, stretches, subsets


def places(*ranks: int) -> np.ndarray:
    return np.array(ranks, dtype=np.int64)


def test_chance_worked_by_hand() -> None:
    # given two ranks and three iterations, in each of which rank 0 alone is late by 10
    delays = np.array([[10.0, 0.0]] * 3)

    # then by chance one of the two has all three with probability 2 x 1/8; and some rank has at least nothing
    assert gathering_p_value(delays, places(0), 2) == pytest.approx(1 / 4, rel=0.01)
    assert gathering_p_value(delays, places(1), 2) == 1


def test_one_rank_or_one_iteration_shows_nothing() -> None:
    assert gathering_p_value(np.full((30, 1), 10.0), places(0), 1) == 1
    assert gathering_p_value(np.array([[50.0, 0.0, 0.0]]), places(0), 3) == pytest.approx(1, rel=0.01)


def test_nothing_lost_is_chance() -> None:
    assert gathering_p_value(np.zeros((30, 4)), places(0), 4) == 1


def test_noise_that_lasts_counts_once() -> None:
    # given two other ranks whose delays last five iterations each
    lasting = np.repeat(np.random.default_rng(0).uniform(0, 10, (4, 2)), 5, axis=0)
    delays = np.column_stack([np.full(20, 20.0), lasting])

    # then stretches of them change places, and the same delay is far less unlikely than in single iterations
    assert len(stretches(delays, places(0))) < 10
    alone = np.column_stack([np.full(20, 20.0), np.random.default_rng(0).permutation(lasting)])
    assert gathering_p_value(delays, places(0), 3) > 100 * gathering_p_value(alone, places(0), 3)


def test_many_delays_count_beside_a_large_one() -> None:
    # given four ranks, and 16 of 20 iterations in which rank 2 or 3 loses 10, but 100 in the last one
    delays = np.zeros((20, 4))
    delays[np.arange(16), [2, 3] * 8] = [10.0] * 15 + [100.0]

    # then the large one, nearly half of the sum, decides little: cut to 12.5 it is one of sixteen on these two alone
    assert gathering_p_value(delays, places(2, 3), 1) < 0.01
    # and as many, in turns on all four ranks, are chance whoever has the large one
    delays = np.zeros((20, 4))
    delays[np.arange(16), [0, 1, 2, 3] * 4] = [10.0] * 15 + [100.0]
    assert gathering_p_value(delays, places(2, 3), 1) > 0.5


def test_a_rank_that_always_loses_a_little_is_not_the_owner_of_its_large_delays() -> None:
    # given eight ranks that lose 100 once each, and rank 0 that loses 5 more in all 20 iterations
    delays = np.zeros((20, 8))
    delays[2 * np.arange(8), np.arange(8)] = 100.0
    delays[:, 0] += 5.0

    # then one rank or another has 200 of the 900 by chance, and its level does not count a second time
    assert gathering_p_value(delays, places(0), 8) == 1


def test_there_are_six_pairs_of_four_ranks() -> None:
    assert subsets(4, 2) == pytest.approx(6)
    assert subsets(1_024, 1) == pytest.approx(1_024)


@examples(25)
@example(757, 3, 6)  # two of 729 ways, the rarest tail of so few: 0.00125 for 0.00274
@given(st.integers(0, 10_000), st.integers(3, 8), st.integers(6, 20))
def test_the_tail_is_that_of_shuffled_ranks(seed: int, ranks: int, iterations: int) -> None:
    # given noise, of which rank 0 has somewhat more
    rng = np.random.default_rng(seed)
    delays = rng.exponential(1.0, (iterations, ranks))
    delays[:, 0] *= 1.6
    blocks = stretches(delays, places(0))

    # when the ranks of each stretch are shuffled many times
    picked = rng.integers(0, ranks, size=(20_000, len(blocks)))
    shuffled = float((blocks[np.arange(len(blocks)), picked].sum(axis=1) >= blocks[:, 0].sum()).mean())

    # then the tail by cumulants is never far too small, and where it matters not far too large
    found = gathering_p_value(delays, places(0), 1)
    assert found >= shuffled / 2.5 or shuffled < 0.002
    assert found <= 4 * shuffled + 0.02 or shuffled > 0.1


def test_a_level_is_held_against_how_much_ranks_differ() -> None:
    # given ranks that take 0, 2, 0 and 2 longer for a whole run, and two more that take 5 and 7
    own = np.tile([0.0, 2.0, 0.0, 2.0, 5.0, 7.0], (10, 1))

    # then all spread by 6 / 4 about their means, the two lie 5 above: t = 5 / sqrt(3/2 x 3/4) = 4.71, 4 degrees
    assert level_p_value(own, places(4, 5), 15) == pytest.approx(15 * 0.00461, rel=0.01)
    # and who is below the others is not late, and of two ranks none is left to show how much they differ
    assert level_p_value(own, places(0, 2), 15) == 1
    assert level_p_value(own[:, 3:5], places(1), 2) == 0


ALL = np.arange(20)


def test_four_that_are_evenly_spaced_are_unlikely_for_that() -> None:
    # of 4,845 ways to draw four of twenty, 14 + 11 + 8 + 5 + 2 have a distance of 2 to 6
    assert spacing_p_value(np.array([4, 9, 14, 19]), ALL) == pytest.approx(40 / 4_845)
    # of 15,504 ways to draw five, 12 + 8 + 4
    assert spacing_p_value(np.array([0, 4, 8, 12, 16]), ALL) == pytest.approx(24 / 15_504)


@pytest.mark.parametrize("struck", [[4, 9, 14, 18], [4, 9, 14], [4, 5, 6, 7]], ids=["uneven", "three", "in a row"])
def test_what_is_not_evenly_spaced_or_too_seldom_shows_nothing(struck: list[int]) -> None:
    assert spacing_p_value(np.array(struck), ALL) == 1.0


def test_where_only_every_fourth_iteration_communicates_delays_are_evenly_spaced_by_themselves() -> None:
    struck, communicating = np.array([3, 7, 11, 15]), np.arange(3, 20, 4)

    assert spacing_p_value(struck, communicating) == 1.0
    assert spacing_p_value(struck, np.array([0, 1, 2, 3, 7, 9, 15])) == 1.0


def test_of_thousands_of_iterations_the_probability_is_next_to_nothing() -> None:
    assert spacing_p_value(np.arange(0, 10_000, 100), np.arange(10_000)) < 1e-100
