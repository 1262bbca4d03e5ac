"""Models together: what they said of scales that were left out, and when they say nothing."""

import numpy as np
import pytest

from tests.forecast.scaling_table import COLUMNS, points_of, throughput
from traceforge.forecast.ensemble import fit_ensemble
from traceforge.forecast.scale_point import ScalePoint

AT_64 = np.array([64.0])


def amdahl_points(*ranks: int, noise: float = 0.0) -> list[ScalePoint]:
    rng = np.random.default_rng(1)
    return [
        ScalePoint(str(n), n, 100 * n / (1 + 0.01 * (n - 1)) * float(np.exp(noise * rng.standard_normal())))
        for n in ranks
    ]


@pytest.mark.parametrize("column", COLUMNS)
def test_from_4_to_32_nodes_the_64th_is_told_within_ten_per_cent_and_inside_the_band(column: str) -> None:
    ensemble = fit_ensemble(points_of(column, up_to=32))
    assert ensemble is not None

    found = ensemble.predict(AT_64)

    measured = throughput(column, 64)
    assert abs(found.value[0] / measured - 1) < 0.10
    assert found.low[0] < measured < found.high[0]
    assert found.extrapolated[0]


@pytest.mark.parametrize("column", COLUMNS)
def test_from_4_to_16_nodes_the_band_covers_the_64th(column: str) -> None:
    ensemble = fit_ensemble(points_of(column, up_to=16))
    assert ensemble is not None

    found = ensemble.predict(AT_64)

    assert found.low[0] < throughput(column, 64) < found.high[0]


def test_a_band_that_covers_is_not_one_that_covers_everything() -> None:
    # from four scales the band at twice the largest spans less than a factor of two
    for column in COLUMNS:
        ensemble = fit_ensemble(points_of(column, up_to=32))
        assert ensemble is not None
        found = ensemble.predict(AT_64)
        assert found.high[0] / found.low[0] < 2


def test_one_scale_makes_no_curve() -> None:
    assert fit_ensemble(amdahl_points(8)) is None
    assert fit_ensemble(amdahl_points(8, 8, 8)) is None


def test_two_scales_make_amdahls_line_without_a_band() -> None:
    ensemble = fit_ensemble(amdahl_points(4, 8))
    assert ensemble is not None

    found = ensemble.predict(np.array([16.0]))

    assert [member.model.name for member in ensemble.members] == ["amdahl"]
    assert found.value[0] == pytest.approx(1600 / 1.15, rel=1e-6)
    assert np.isnan([found.low[0], found.high[0]]).all()


def test_beyond_four_times_the_largest_scale_only_the_band_is_given() -> None:
    ensemble = fit_ensemble(points_of("baseline", up_to=32))
    assert ensemble is not None

    found = ensemble.predict(np.array([128.0, 129.0]))

    assert not np.isnan(found.value[0])
    assert np.isnan(found.value[1])
    assert found.low[1] < found.high[1]


def test_a_model_that_missed_the_largest_scale_counts_less() -> None:
    # Amdahl's law, fitted to 4 to 16 nodes, says 6.8 % too much of 32; the power law misses by 2.7 %
    ensemble = fit_ensemble(points_of("baseline", up_to=32))
    assert ensemble is not None

    by_name = {member.model.name: member for member in ensemble.members}

    assert by_name["amdahl"].backtest == pytest.approx(0.069, abs=0.002)
    assert by_name["power_law"].backtest == pytest.approx(-0.027, abs=0.002)
    assert by_name["power_law"].weight > 2 * by_name["amdahl"].weight
    assert by_name["power_law"].weight > by_name["usl"].weight > 0
    assert sum(member.weight for member in ensemble.members) == pytest.approx(1)


def test_the_true_law_is_found_where_the_job_keeps_it() -> None:
    ensemble = fit_ensemble(amdahl_points(2, 4, 8, 16))
    assert ensemble is not None

    found = ensemble.predict(AT_64)

    assert found.value[0] == pytest.approx(6400 / 1.63, rel=0.02)


def test_the_band_covers_the_truth_of_noisy_jobs() -> None:
    # given 20 jobs that keep Amdahl's law with errors of 1 %
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = [
            ScalePoint(p.name, p.ranks, p.throughput * float(np.exp(0.01 * rng.standard_normal())))
            for p in amdahl_points(2, 4, 8, 16)
        ]
        ensemble = fit_ensemble(points)
        assert ensemble is not None
        found = ensemble.predict(np.array([32.0]))
        covered += bool(found.low[0] < 3200 / 1.31 < found.high[0])

    # then at least nine in ten bands hold it
    assert covered >= 18


def test_runs_at_one_scale_are_one_point_with_the_error_between_them() -> None:
    # given two runs at 8 ranks that differ by 10 %
    points = [*amdahl_points(2, 4), ScalePoint("a", 8, 700), ScalePoint("b", 8, 770), *amdahl_points(16)]
    ensemble = fit_ensemble(points)
    assert ensemble is not None

    eight = ensemble.points[2]

    assert (eight.ranks, eight.name) == (8, "a, b")
    assert eight.throughput == pytest.approx((700 * 770) ** 0.5)
    assert ensemble.noise == pytest.approx(0.5 * np.log(1.1))


def test_the_same_draws_make_the_same_band() -> None:
    points = points_of("coordinated", up_to=32)
    first, second = (fit_ensemble(points) for _ in range(2))
    assert first is not None
    assert second is not None

    assert (first.predict(AT_64).low == second.predict(AT_64).low).all()
