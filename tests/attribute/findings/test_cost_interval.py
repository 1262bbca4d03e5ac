"""How sure a cost is, on series whose uncertainty is known."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from traceforge.attribute.findings.cost_interval import PeerSpread, interval_of, peer_spread_of
from traceforge.attribute.findings.counterfactual import BlamedTime
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.stats import SD_PER_MAD, t_quantile

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


class TestPeers:
    """Who shows what the blamed rank would have taken: ranks of its own role, or else its own other iterations."""

    # given 20 iterations, in which the stages compute 100, 100, 100 and 140 by design, each one up to 1 more or less
    LENGTHS = np.array([[100, 100, 100, 140]] * 20) + np.arange(80).reshape(20, 4) % 3 - 1

    def _spread(
        self, role: list[int] | None, late: int = 2, warm_up: int = 0, late_themselves: Sequence[int] = ()
    ) -> PeerSpread:
        work = self.LENGTHS.copy()
        work[0] += warm_up
        work[8:, late] += 50
        model = SimpleNamespace(
            iterations=np.arange(20), ranks=np.arange(4), kinds=[("slow_compute", None)],
            role=None if role is None else np.array(role),
            before_arrival_ns=work[:, None, :, None], before_wait_ns=np.zeros((20, 1, 4, 1), dtype=np.int64),
        )  # fmt: skip
        blamed = BlamedTime((late,), np.zeros((20, 1, 1), dtype=np.int64), np.zeros((20, 1, 1), dtype=np.int64))
        run = cast("LedgerInput", SimpleNamespace(model=model))
        return peer_spread_of(run, ["slow_compute"], blamed, np.arange(8, 20), late_themselves)

    def test_a_stage_alone_is_its_own_reference(self) -> None:
        # 12 of 20 iterations against 8 that vary by about 1: the 40 that stage 3 has more by design do not matter
        known = self._spread([0, 1, 2, 3])

        assert known.degrees == 7
        assert known.sd_ns < 1.5 * 12 / 20 * np.sqrt(1 / 12 + 1 / 8)

    def test_stages_of_other_roles_are_no_peers(self) -> None:
        # ranks 1 and 2 are one stage, of which rank 1 is the only other
        assert self._spread([0, 1, 1, 2]) == PeerSpread(pytest.approx(SD_PER_MAD), 2)

    def test_a_first_iteration_that_warms_up_does_not_blur_what_a_single_peer_shows(self) -> None:
        assert self._spread([0, 1, 1, 2], warm_up=500) == self._spread([0, 1, 1, 2])

    def test_without_roles_all_others_are_peers(self) -> None:
        # 100, 100 and 140 differ by 23
        assert self._spread(None).sd_ns == pytest.approx(40 / np.sqrt(3), rel=0.01)

    def test_a_rank_that_another_finding_blames_shows_nothing(self) -> None:
        # given rank 3's 140 as another finding's: 100 and 100 are left
        assert self._spread(None, late_themselves=[3]).sd_ns < 1

    def test_a_late_rank_that_is_the_only_other_leaves_a_rank_its_own_reference(self) -> None:
        assert self._spread([0, 1, 1, 2], late_themselves=[1]) == self._spread([0, 1, 2, 3])
