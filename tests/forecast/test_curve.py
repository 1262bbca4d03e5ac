"""One more rank: what it adds, where that stops paying, where its time goes."""

import numpy as np
import pytest

from tests.forecast.scaling_table import points_of
from traceforge.forecast.curve import LIMITS, limits, marginal_parts, one_more_rank
from traceforge.forecast.ensemble import Ensemble, fit_ensemble
from traceforge.forecast.goodput import Assumptions, reliability
from traceforge.forecast.scale_point import ScalePoint


def ensemble_of(points: list[ScalePoint]) -> Ensemble:
    found = fit_ensemble(points)
    assert found is not None
    return found


def usl_points(sigma: float, kappa: float) -> list[ScalePoint]:
    return [ScalePoint(str(n), n, n / (1 + sigma * (n - 1) + kappa * n * (n - 1))) for n in (1, 2, 4, 8, 16, 32, 64)]


def test_a_job_that_keeps_the_usl_peaks_where_the_law_says() -> None:
    # throughput of the USL peaks at sqrt((1 - sigma) / kappa) = sqrt(0.99 / 1e-4) = 99.5
    found = {limit.name: limit for limit in limits(ensemble_of(usl_points(0.01, 1e-4)))}

    assert found["peak"].ranks == pytest.approx(99.5, abs=2)
    assert found["knee_70"].ranks < found["knee_50"].ranks < found["peak"].ranks  # type: ignore[operator]


def test_a_job_that_scales_linearly_has_no_limit_in_range() -> None:
    found = limits(ensemble_of([ScalePoint(str(n), n, 100.0 * n) for n in (2, 4, 8, 16)]))

    assert [limit.ranks for limit in found] == [None] * len(LIMITS)
    assert [limit.high for limit in found] == [None] * len(LIMITS)


def test_the_range_of_a_knee_is_that_of_the_models() -> None:
    for limit in limits(ensemble_of(points_of("baseline", up_to=32))):
        assert limit.ranks is not None
        assert limit.low is not None
        assert limit.low <= limit.ranks
        assert limit.high is None or limit.ranks <= limit.high


@pytest.mark.parametrize("ranks", [8, 32, 64])
def test_where_the_time_of_one_more_rank_goes_adds_up(ranks: int) -> None:
    parts = marginal_parts(ensemble_of(points_of("baseline", up_to=32)), ranks)

    assert sum(parts.values()) == pytest.approx(1)
    assert set(parts) == {"useful", "work", "exposed_communication", "straggling"}


def test_what_is_useful_of_one_more_rank_is_the_slope_of_the_curve() -> None:
    ensemble = ensemble_of(points_of("baseline", up_to=32))
    (member,) = (one for one in ensemble.used if one.model.name == "structural")
    around = np.array([31.9, 32.1])
    base = 4 / member.fit.step_s(np.array([4.0]))[0, 0] / 4

    slope = float(np.diff(around / member.fit.step_s(around)[0])[0]) / 0.2 / base

    assert marginal_parts(ensemble, 32)["useful"] == pytest.approx(slope, rel=1e-3)


def test_whether_one_more_rank_helps_is_told_only_where_the_models_agree() -> None:
    ensemble = ensemble_of(points_of("baseline", up_to=32))

    assert one_more_rank(ensemble, 32) == "helps"
    assert one_more_rank(ensemble, 96) == "cannot_be_told"
    assert one_more_rank(ensemble_of(usl_points(0.01, 1e-4)), 200) in {"harms", "cannot_be_told"}


def test_failures_take_their_part_of_one_more_rank() -> None:
    # given a failure every 200 hours of a node
    ensemble, assumed = ensemble_of(points_of("baseline", up_to=32)), Assumptions(mtbf_hours=200)
    (member,) = (one for one in ensemble.used if one.model.name == "structural")
    around = np.array([31.9, 32.1])
    base = 4 / member.fit.step_s(np.array([4.0]))[0, 0] / 4
    goodput = around / member.fit.step_s(around)[0] * [reliability(n, assumed).share for n in around]

    parts = marginal_parts(ensemble, 32, assumed)

    # then all parts still add up, and what is useful is the slope of the goodput
    assert sum(parts.values()) == pytest.approx(1)
    assert parts["useful"] == pytest.approx(float(np.diff(goodput)[0]) / 0.2 / base, rel=1e-3)
    assert parts["failures"] > 1 - reliability(32, assumed).share
