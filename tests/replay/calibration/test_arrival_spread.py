"""Kappa is found where it is, its interval covers, and what says nothing is refused."""

from dataclasses import replace

import numpy as np
import pytest

from tests.replay.calibration.runs import MS, Run, plain_slope, simulate
from traceforge.replay.calibration.arrival_spread import Collectives, spread_coupling

TROUBLED = Run(iterations=100, episodes=0.05)


def drawn(transfer_ns: object, wait_ns: object, local_ns: object, error_ns: float = 1.0) -> Collectives:
    """One collective an iteration."""
    columns = [np.asarray(values, dtype=np.float64) for values in (transfer_ns, wait_ns, local_ns)]
    count = len(columns[0])
    return Collectives(np.arange(count), np.zeros(count, dtype=np.int64), *columns, np.full(count, error_ns))


def test_transfers_that_grow_by_half_the_wait_have_kappa_one_half() -> None:
    # given 24 iterations whose arrivals spread 0, 100, 200, 300 ns in turn, by own work alone
    spread = np.tile([0.0, 100.0, 200.0, 300.0], 6)

    # when transfers are 1000 ns + half of that
    found = spread_coupling(drawn(1000 + 0.5 * spread, spread, spread))

    # then
    assert found.coefficient == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5, abs=1e-6)
    assert found.high == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(
    "run",
    [
        Run(kappa=0.0, iterations=30),
        Run(kappa=0.5, iterations=100),
        replace(TROUBLED, kappa=0.5),
        Run(kappa=2.0, iterations=60, tail=True),
        Run(kappa=0.5, iterations=60, ranks=2, lasting=0.9),
    ],
    ids=["few iterations", "calm", "fabric episodes", "heavy tail", "lasting"],
)
def test_intervals_cover_the_truth_as_often_as_they_say(run: Run) -> None:
    found = [spread_coupling(simulate(run, seed)) for seed in range(120)]
    judged = [one for one in found if one.low is not None and one.high is not None]
    covered = [one.low <= run.kappa <= one.high for one in judged]  # type: ignore[operator]

    assert len(judged) >= 30
    assert np.mean(covered) >= 0.90


def test_two_collectives_of_which_one_waits_when_the_other_does_not_claim_no_coupling() -> None:
    # given 24 iterations in which every third has less work before the first collective, and so more wait at the second
    rng = np.random.default_rng(7)
    local = np.tile([8.8, 9.2, 5.6], 8) * MS
    first, second = local, np.tile([2.9, 2.8, 5.6], 8) * MS

    # when transfers are 5 ms +- 0.1 ms, whoever waits
    collectives = Collectives(
        np.tile(np.arange(24), 2),
        np.repeat([0, 1], 24),
        5 * MS + rng.normal(0, 0.1 * MS, 48),
        np.concatenate([first, second]) + rng.normal(0, 0.1 * MS, 48),
        np.concatenate([local, local]) + rng.normal(0, 0.1 * MS, 48),
        np.full(48, 3020.0),
    )
    found = spread_coupling(collectives)

    # then no strength fits both, and none is claimed
    assert found.coefficient is None
    assert "No coupling fits" in found.refusal


def test_a_plain_regression_takes_fabric_episodes_for_a_coupling_and_the_instrument_does_not() -> None:
    runs = [simulate(TROUBLED, seed) for seed in range(60)]
    found = [one.coefficient for one in map(spread_coupling, runs) if one.coefficient is not None]

    assert np.mean([plain_slope(run) for run in runs]) > 0.15
    assert abs(np.mean(found)) < 0.05


def test_hardly_ever_is_a_coupling_found_that_is_not_there() -> None:
    found = [spread_coupling(simulate(replace(TROUBLED, iterations=40), seed)) for seed in range(200)]

    assert sum(one.surely_low is not None and one.surely_low > 0 for one in found) <= 3


def test_a_negative_coupling_is_told_with_its_sign() -> None:
    found = spread_coupling(simulate(Run(kappa=-0.4, iterations=100), 1))

    assert found.surely_high is not None
    assert found.surely_high < 0


def test_errors_of_the_last_arrival_are_not_taken_for_a_coupling() -> None:
    # given arrivals of equal ranks, recorded with an error that the clocks do not own up to
    rng = np.random.default_rng(0)
    work, error = MS * rng.exponential(0.05, 60), MS * rng.exponential(1.0, 60)

    # when the last arrival is recorded late by that error, and the instrument has it too
    found = spread_coupling(drawn(10 * MS - error, work + error, work + error))

    # then the slope of -1 is seen for what it is
    assert found.coefficient is None
    assert "error in the time" in found.refusal


def test_spread_below_three_clock_residuals_is_refused() -> None:
    # given waits that vary by 50 ns (0 or 100) and clocks that are unsure by 20 ns
    spread = np.tile([0.0, 100.0], 15)

    assert "three times the uncertainty" in spread_coupling(drawn(1000 + spread, spread, spread, error_ns=20)).refusal
    assert not spread_coupling(drawn(1000 + spread, spread, spread, error_ns=10)).refusal


def test_below_twenty_iterations_nothing_is_measured() -> None:
    spread = np.arange(19.0)

    assert ": 19, and 20 are needed" in spread_coupling(drawn(spread, spread, spread)).refusal


def test_waits_that_own_work_does_not_foretell_are_refused() -> None:
    rng = np.random.default_rng(3)
    wait, local = rng.exponential(MS, 40), rng.exponential(MS, 40)

    found = spread_coupling(drawn(10 * MS + wait, wait, local))

    assert found.coefficient is None
    assert found.f_statistic is not None
    assert found.f_statistic < 10


def test_an_interval_that_says_nothing_is_not_shown() -> None:
    rng = np.random.default_rng(7)
    spread = rng.exponential(0.1 * MS, 40)

    found = spread_coupling(drawn(10 * MS + rng.normal(0, 5 * MS, 40), spread, spread))

    # then no number is told, but what it does not rule out is: as much as is taken for possible
    assert (found.coefficient, found.low, found.high) == (None, None, 2.0)
    assert "wider than 1" in found.refusal


def test_what_slows_collectives_without_spread_too_is_no_coupling() -> None:
    # given a host on which own work and every transfer are slow together
    rng = np.random.default_rng(5)
    slow = rng.exponential(MS, 60)
    spread, transfer = slow, 10 * MS + 0.5 * slow + rng.normal(0, 0.05 * MS, 60)
    with_spread = drawn(transfer, spread, spread)

    # when a second place of the program has no spread, and its transfers move all the same
    other = drawn(transfer + rng.normal(0, 0.05 * MS, 60), np.zeros(60), np.zeros(60))
    both = Collectives(
        *(
            np.concatenate([getattr(with_spread, name), getattr(other, name) + (name == "place")])
            for name in Collectives.__dataclass_fields__
        )
    )

    # then what looked like a coupling is refused
    assert spread_coupling(with_spread).coefficient == pytest.approx(0.5, abs=0.1)
    assert "something else slows both" in spread_coupling(both).refusal
