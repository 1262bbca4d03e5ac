"""How late the slowest of N ranks is, from fewer of them."""

import numpy as np
import pytest

from traceforge.forecast.order_statistics import parts_of, slowest_of, step_quantile

EXPECTED_MAXIMUM_OF_NORMAL = {16: 1.766, 32: 2.070, 64: 2.344}


def test_the_quantile_that_sets_the_step() -> None:
    # the slowest of 512 ranks is at its median where one rank is at 99.86 %
    assert step_quantile(1) == pytest.approx(0.5)
    assert step_quantile(64) == pytest.approx(0.9892, abs=1e-4)
    assert step_quantile(512) == pytest.approx(0.99865, abs=1e-5)
    assert step_quantile(1024) == pytest.approx(0.99932, abs=1e-5)


def test_a_persistent_and_a_transient_part_are_told_apart() -> None:
    # given one rank that is always 8 late, and nothing else
    own = np.full((20, 4), 100.0)
    own[:, 3] += 8

    parts = parts_of(own)

    assert parts.persistent[0] == pytest.approx([-2, -2, -2, 6])
    assert parts.transient == pytest.approx(np.zeros((20, 4)))
    assert parts.persistent_share == pytest.approx(1)


def test_parts_add_up() -> None:
    own = np.random.default_rng(0).normal(size=(30, 8))

    parts = parts_of(own)

    assert parts.common + parts.persistent + parts.transient == pytest.approx(own)
    assert parts.persistent_share < 0.2


@pytest.mark.parametrize("seed", range(3))
def test_the_slowest_of_four_times_the_ranks_is_foretold(seed: int) -> None:
    # given 16 ranks with independent normal times of standard deviation 1
    rng = np.random.default_rng(seed)
    own = 100 + rng.standard_normal((80, 16))

    found = slowest_of(own, 64, rng)

    # then the expected maximum of 64 normal draws lies in the interval, and is met within 10 %
    assert found.low < EXPECTED_MAXIMUM_OF_NORMAL[64] < found.high
    assert found.mean == pytest.approx(EXPECTED_MAXIMUM_OF_NORMAL[64], rel=0.10)


def test_at_the_measured_ranks_it_is_what_was_measured() -> None:
    own = np.random.default_rng(5).standard_normal((40, 16))

    found = slowest_of(own, 16, np.random.default_rng(5))

    assert found.mean == pytest.approx((own.max(axis=1) - own.mean(axis=1)).mean())
    assert found.low <= found.mean <= found.high


def test_an_episode_that_strikes_all_ranks_at_once_makes_none_of_them_late() -> None:
    # given iterations that are slow for all ranks alike
    own = np.where(np.arange(40) % 5 == 0, 200.0, 100.0)[:, None] * np.ones((1, 8))

    assert slowest_of(own, 32, np.random.default_rng(0)).mean == pytest.approx(0, abs=1e-9)


def test_the_measured_straggler_stays_when_ranks_are_added() -> None:
    # given one of four ranks that is always 8 late
    own = np.full((20, 4), 100.0)
    own[:, 3] += 8

    four, sixteen = (slowest_of(own, ranks, np.random.default_rng(0)) for ranks in (4, 16))

    assert four.mean == pytest.approx(6)
    assert sixteen.mean >= four.mean
    assert four.low >= 0
