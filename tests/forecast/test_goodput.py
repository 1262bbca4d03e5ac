"""Failures, checkpoints, money: worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.forecast.goodput import (
    Assumptions,
    cost_per_sample,
    energy_per_sample_j,
    job_time,
    reliability,
    sensitivity,
    work_share,
)

PLAIN = Assumptions(price=3.6, mtbf_hours=1_000, checkpoint_s=50, restart_s=360)


def test_failures_at_a_hundred_gpus_worked_by_hand() -> None:
    # a failure every 1,000 hours of a GPU is one every 10 hours of 100: 36,000 s
    found = reliability(100, PLAIN)

    # checkpoints about sqrt(2 x 50 x 36,000) = 1,897 s apart (by renewal 1,864) cost 2.7 %, repeated work as much,
    # restarts 1 %; by renewal, exp(-0.01) x 1,864 / 36,000 / (exp(1,914 / 36,000) - 1)
    assert found.mtbf_s == pytest.approx(36_000)
    assert found.interval_s == pytest.approx(1_864.2, rel=1e-3)
    assert found.share == pytest.approx(0.93882, abs=1e-4)


@given(st.floats(0.3, 3.0).filter(lambda factor: abs(factor - 1) > 0.01), st.integers(1, 1_000))
def test_no_other_interval_loses_less(factor: float, ranks: int) -> None:
    best = reliability(ranks, PLAIN)

    assert work_share(best.interval_s * factor, best.mtbf_s, PLAIN) <= best.share


def test_where_most_time_is_lost_the_share_is_still_that_of_renewal() -> None:
    # given 1,500 GPUs that fail every 1,000 hours each: a failure every 40 minutes, checkpoints of 5 minutes
    assumed = Assumptions(mtbf_hours=1_000, checkpoint_s=300, restart_s=900)
    found = reliability(1_500, assumed)

    # when failures are drawn at random through 4,000 intervals of work, restarts included
    rng, worked_s, passed_s = np.random.default_rng(0), 0.0, 0.0
    for _ in range(4_000):
        while (left_s := rng.exponential(found.mtbf_s)) < found.interval_s + 300:
            passed_s += left_s
            while (again_s := rng.exponential(found.mtbf_s)) < 900:
                passed_s += again_s
            passed_s += 900
        worked_s, passed_s = worked_s + found.interval_s, passed_s + found.interval_s + 300

    # then the share is what was worked; the first-order formula says 0.27
    assert found.share == pytest.approx(worked_s / passed_s, rel=0.03)


def test_the_default_is_the_field_study() -> None:
    # 466 interruptions in 54 days on 16,384 GPUs: one in 2.8 hours
    assert reliability(16_384, Assumptions()).mtbf_s / 3600 == pytest.approx(2.78, abs=0.02)


def test_cost_of_a_sample_worked_by_hand() -> None:
    # 100 GPUs at 3.6 an hour are 0.1 a second; 1,000 samples/s, of which the failures leave 93.88 %
    assert cost_per_sample(1_000, 100, PLAIN) == pytest.approx(0.1 / 1_000 / 0.93878, rel=1e-4)
    assert energy_per_sample_j(1_000, 100, PLAIN) is None
    assert energy_per_sample_j(1_000, 100, Assumptions(watts=700, mtbf_hours=1e12)) == pytest.approx(70, rel=1e-3)


def test_where_failures_leave_no_time_nothing_gets_done() -> None:
    assert reliability(1_000_000, PLAIN).share == 0
    assert cost_per_sample(1_000, 1_000_000, PLAIN) == float("inf")
    assert job_time(1e9, 1_000_000, (1_000, 900, 1_100), PLAIN).hours is None


def test_a_job_takes_its_work_its_checkpoints_and_its_failures() -> None:
    # 36 million samples at 1,000 a second are 10 hours of work, 10.65 with what is lost, and about one failure
    found = job_time(36e6, 100, (1_000, 900, 1_100), PLAIN)

    assert found.hours == pytest.approx(10 / 0.93878, rel=1e-4)
    assert found.failures == pytest.approx(1.065, rel=1e-3)
    assert found.cost == pytest.approx(10.652 * 360, rel=1e-3)
    assert found.low_hours is not None
    assert found.high_hours is not None
    # the fastest case has no failure: the work at 1,100 a second, and its checkpoints
    assert found.low_hours == pytest.approx(10 / 1.1 * (1 + 50 / 1864.2), rel=1e-3)
    assert found.high_hours > 10 / 0.9 / 0.9388


def test_without_a_value_the_job_has_its_band_alone() -> None:
    found = job_time(36e6, 100, (None, 900, 1_100), PLAIN)

    assert (found.hours, found.cost, found.failures) == (None, None, None)
    assert found.low_hours is not None


def test_half_and_twice_of_each_assumption_lie_around_the_cost() -> None:
    cost = cost_per_sample(1_000, 100, PLAIN)

    found = sensitivity(1_000, 100, PLAIN)

    assert set(found) == {"price", "mtbf_hours", "checkpoint_s", "restart_s"}
    assert found["price"] == pytest.approx((cost / 2, cost * 2))
    assert all(min(pair) < cost < max(pair) for pair in found.values())
