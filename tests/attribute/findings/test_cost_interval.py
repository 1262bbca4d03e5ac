"""How sure a cost is, on series whose uncertainty is known."""

import numpy as np
import pytest

from traceforge.attribute.findings.cost_interval import PeerSpread, interval_of
from traceforge.stats import t_quantile

CERTAIN = PeerSpread(0.0, 10)


def interval(costs: list[float], affected: list[int], known: PeerSpread = CERTAIN) -> tuple[float, float]:
    return interval_of(np.array(costs, dtype=float), np.array(affected), known, np.random.default_rng(0))


def test_what_never_varies_is_known_but_for_what_a_replay_misses() -> None:
    # 1 % of 100, 1.96 times either way
    assert interval([100] * 12, list(range(12))) == pytest.approx((98.04, 101.96))


def test_how_often_it_struck_is_no_uncertainty() -> None:
    # given a cost of 100 in every fourth iteration: 25 on average, and always the same when it strikes
    low, high = interval([100, 0, 0, 0] * 5, [0, 4, 8, 12, 16])

    assert (low, high) == pytest.approx((25 - 0.49, 25 + 0.49))


def test_what_peers_do_not_agree_on_widens_it() -> None:
    # given peers that differ by a standard deviation of 10, from eleven of them
    low, high = interval([100] * 12, list(range(12)), PeerSpread(10.0, 10))

    assert high - 100 == pytest.approx(np.hypot(1.96, 10 * t_quantile(10)))
    assert low == pytest.approx(200 - high)


def test_intervals_of_noise_that_lasts_hold_the_mean() -> None:
    # given 200 runs of 24 iterations whose departures last (AR(1), 0.5)
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        steps = rng.standard_normal(24)
        level = np.empty(24)
        level[0] = steps[0]
        for i in range(1, 24):
            level[i] = 0.5 * level[i - 1] + np.sqrt(0.75) * steps[i]
        low, high = interval_of(1_000 + 100 * level, np.arange(24), CERTAIN, rng)
        held += low <= 1_000 <= high

    assert held >= 0.9 * 200
