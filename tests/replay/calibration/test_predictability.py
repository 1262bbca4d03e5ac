"""Whether ranks can know that they will be early."""

import numpy as np
import pytest

from traceforge.replay.calibration.predictability import lasting_share, predictability


def test_a_rank_that_always_waits_is_wholly_predictable() -> None:
    # given rank 0 waits 100 ns in every iteration and rank 1 never
    found = predictability(np.tile([100.0, 0.0], (30, 1)), 1.0)

    assert found.coefficient == pytest.approx(1.0, abs=1e-4)
    assert "100" in found.caveat


def test_ranks_that_wait_in_strict_turns_foretell_the_contrary() -> None:
    found = predictability(np.array([[100.0, 0.0], [0.0, 100.0]] * 15), 1.0)

    assert found.surely_high is not None
    assert found.surely_high < 0


def test_chance_foretells_nothing() -> None:
    rng = np.random.default_rng(0)
    found = [predictability(rng.exponential(1000, (40, 8)), 1.0) for _ in range(100)]

    # Less than chance level by the mean over ranks and by the few iterations is fine; a false yes is not.
    assert sum(one.surely_low is not None and one.surely_low > 0 for one in found) <= 3


@pytest.mark.parametrize("correlation", [0.3, 0.8])
def test_intervals_cover_the_correlation(correlation: float) -> None:
    covered = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        wait = rng.standard_normal((60, 8))
        for i in range(1, 60):
            wait[i] = correlation * wait[i - 1] + np.sqrt(1 - correlation**2) * wait[i]
        found = predictability(wait, 0.0)
        assert found.low is not None
        assert found.high is not None
        covered.append(found.low <= correlation <= found.high)

    assert np.mean(covered) >= 0.88


def test_differences_below_the_clocks_uncertainty_are_refused() -> None:
    # given waits of +-50 ns around the mean of two ranks
    wait = np.tile([100.0, 0.0], (30, 1))

    assert "three times the uncertainty" in predictability(wait, 17.0).refusal
    assert not predictability(wait, 16.0).refusal


def test_twenty_iterations_give_nineteen_steps_and_are_too_few() -> None:
    assert "more than 20" in predictability(np.ones((20, 2)), 0.0).refusal


def test_the_lasting_share_is_that_of_a_one_way_analysis() -> None:
    # given two ranks at +1 and -1 for good, and +-1 around that in turn:
    # between = 4 x var([1, -1]) = 8, within = 8 / (2 x 3), share = (8 - 4/3) / (8 + 3 x 4/3) = 5/9
    relative = np.array([[2.0, 0.0], [0.0, -2.0], [2.0, 0.0], [0.0, -2.0]])

    assert lasting_share(relative) == pytest.approx(5 / 9)
