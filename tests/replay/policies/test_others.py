"""The policies beside the paper's: what each of them does, worked by hand."""

import numpy as np

from tests.replay.models import lockstep_model, lockstep_plan, model_of
from traceforge.replay.engine import Arm, measured, replay_arms
from traceforge.replay.policies import adaptive, constant, oracle, random
from traceforge.replay.policy import Past


def past_of(waits: list[int], *, ranks: int = 1, iteration_ns: int = 1_000) -> Past:
    """Every rank waited like this, in iterations of one length."""
    wait = np.repeat(np.array(waits, dtype=np.int64).reshape(-1, 1), ranks, axis=1)
    return Past(wait, np.zeros_like(wait), np.full_like(wait, iteration_ns))


def test_constant_delays_all_ranks_by_a_share_of_their_iterations() -> None:
    assert constant.POLICY.delay(past_of([0, 500], ranks=2), {"delay": 0.02}).tolist() == [20, 20]


def test_constant_and_random_hold_still_before_the_first_iteration() -> None:
    for policy in (constant.POLICY, random.POLICY):
        assert policy.delay(past_of([], ranks=2), policy.defaults).tolist() == [0, 0]


def test_random_is_the_same_for_the_same_seed_and_other_for_another_or_later() -> None:
    def delay(seed: float, iterations: int = 2) -> list[int]:
        past = past_of([0] * iterations, ranks=4, iteration_ns=1_000_000)
        return list(random.POLICY.delay(past, {"max_delay": 0.02, "seed": seed}))

    assert delay(1) == delay(1)
    assert delay(1) != delay(2)
    assert delay(1) != delay(1, iterations=3)
    assert max(delay(1)) <= 20_000


def test_adaptive_paces_a_rank_that_always_waits_and_leaves_one_alone_that_waits_at_random() -> None:
    parameters = {"window": 2.0, "memory": 8.0, "threshold": 1.0, "gain": 0.5, "max_delay": 1.0}

    # given a rank that always waits 100: its forecasts miss nothing
    assert adaptive.POLICY.delay(past_of([100] * 8), parameters).tolist() == [50]
    # given waits that come and go: forecasts of 100 miss by 100 each time
    assert adaptive.POLICY.delay(past_of([0, 200] * 4), parameters).tolist() == [0]
    # given too short a past to have made any forecast
    assert adaptive.POLICY.delay(past_of([100] * 3), parameters).tolist() == [0]


def test_the_adaptive_gain_falls_with_the_error_of_its_forecasts() -> None:
    # given waits of 100, 100, 130: the forecast of the last was 100, which missed by 30
    parameters = {"window": 2.0, "memory": 2.0, "threshold": 1.0, "gain": 1.0, "max_delay": 1.0}

    delay = adaptive.POLICY.delay(past_of([100, 100, 100, 130]), parameters)

    # then error 30^2 / 2, power (100^2 + 130^2) / 2, forecast 115
    assert delay.tolist() == [int((1 - 900 / 26_900) * 115)]


def test_the_oracle_lets_all_ranks_arrive_together_and_nothing_ends_later() -> None:
    # given ranks that work 100, 60 and 80, and in the next iteration 50, 90 and 70
    model = lockstep_model([[[100, 60, 80]], [[50, 90, 70]]], transfer_ns=10)

    outcome = replay_arms(model, measured(model), [Arm(lambda past: oracle.POLICY.delay(past, {}), sees_future=True)])[
        0
    ]

    assert outcome.delay_ns.tolist() == [[0, 40, 20], [40, 0, 20]]
    assert outcome.wait_ns.tolist() == [[0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(outcome.end_ns, model.end_ns)


def test_the_oracle_delays_by_no_more_than_the_least_wait_before_a_rank_is_blocked() -> None:
    # given two meetings of which only the second is awaited: rank 1 waits 40 at the first and 10 at the second
    plan = lockstep_plan([[[100, 60], [20, 50]]], transfer_ns=10)
    plan.awaited[0, 0] = -1
    model = model_of(plan)

    outcome = replay_arms(model, measured(model), [Arm(lambda past: oracle.POLICY.delay(past, {}), sees_future=True)])[
        0
    ]

    assert outcome.delay_ns.tolist() == [[0, 10]]
    np.testing.assert_array_equal(outcome.end_ns, model.end_ns)
