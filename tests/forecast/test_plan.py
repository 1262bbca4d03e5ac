"""The plan at each number of ranks, and what a measurement would add to it."""

import pytest

from tests.forecast.scaling_table import points_of
from traceforge.forecast.ensemble import Ensemble, fit_ensemble
from traceforge.forecast.goodput import Assumptions
from traceforge.forecast.next_measurement import next_measurements
from traceforge.forecast.plan import plan, plan_of_points, scales_to_plan
from traceforge.forecast.scale_point import ScalePoint


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    found = fit_ensemble(points_of("baseline", up_to=32))
    assert found is not None
    return found


def test_the_plan_covers_what_was_measured_and_four_times_as_much(ensemble: Ensemble) -> None:
    rows = plan(ensemble, scales_to_plan(ensemble), Assumptions())

    assert [row.ranks for row in rows] == [4, 8, 16, 32, 64, 128]
    assert [row.extrapolated for row in rows] == [False] * 4 + [True] * 2


def test_cost_rises_as_efficiency_falls(ensemble: Ensemble) -> None:
    rows = plan(ensemble, scales_to_plan(ensemble), Assumptions())

    costs = [row.cost_per_sample for row in rows]
    assert costs == sorted(costs)  # type: ignore[type-var]
    for row in rows:
        assert row.cost_low is not None
        assert row.cost_high is not None
        assert row.cost_per_sample is not None
        assert row.cost_low <= row.cost_per_sample <= row.cost_high


def test_a_batch_turns_iterations_into_samples(ensemble: Ensemble) -> None:
    (plain,), (batched,) = (plan(ensemble, [32], Assumptions(batch=batch)) for batch in (None, 64))

    assert plain.throughput is not None
    assert batched.throughput == pytest.approx(64 * plain.throughput)
    assert batched.efficiency == pytest.approx(plain.efficiency)
    assert batched.cost_per_sample == pytest.approx(plain.cost_per_sample / 64)  # type: ignore[operator]


def test_a_stated_amount_of_work_gives_hours_with_their_band(ensemble: Ensemble) -> None:
    rows = plan(ensemble, [32, 64, 200], Assumptions(samples=1e9, gpus_per_rank=8))

    for row in rows[:2]:
        assert row.hours_low < row.hours < row.hours_high  # type: ignore[operator]
    assert rows[2].hours is None
    assert rows[2].hours_low is not None


def test_where_no_curve_can_be_drawn_the_measured_scale_is_planned_alone() -> None:
    (row,) = plan_of_points([ScalePoint("a", 8, 1_000.0, error=0.01)], Assumptions())

    assert (row.throughput, row.marginal_efficiency, row.extrapolated) == (1_000, None, False)
    assert (row.throughput_low, row.throughput_high) == (
        pytest.approx(980.8, abs=0.05),
        pytest.approx(1020.0, abs=0.05),
    )


def test_the_measurement_that_tells_models_apart_is_the_one_proposed(ensemble: Ensemble) -> None:
    found = next_measurements(ensemble)

    # between the measured scales all models agree; at twice the largest they do not
    assert found[0].ranks == 64
    assert found[0].width < found[0].width_now
    by_ranks = {candidate.ranks: candidate.width for candidate in found}
    assert by_ranks[6] == pytest.approx(found[0].width_now)
