"""The paper's policy, worked by hand: one rank, its past waits, and the delay before its next iteration."""

import numpy as np
import pytest

from traceforge.replay.policies.bounded_delay import POLICY
from traceforge.replay.policy import Past


def next_delay(
    waits: list[int], *, delays: list[int] | None = None, iteration_ns: int = 1_000, **parameters: float
) -> int:
    """Delay of a rank whose iterations all took `iteration_ns`."""
    wait = np.array(waits, dtype=np.int64)[:, None]
    own = np.zeros_like(wait) if delays is None else np.array(delays, dtype=np.int64)[:, None]
    past = Past(wait, own, np.full_like(wait, iteration_ns))
    # A window of two iterations, no threshold to speak of, and room enough, unless a test says otherwise.
    chosen = {"window": 2.0, "threshold": 0.0, "gain": 0.5, "max_delay": 1.0, **parameters}
    return int(POLICY.delay(past, chosen)[0])


def test_it_delays_by_its_gain_times_the_mean_slack() -> None:
    # waits of 100 and 300: mean 200, half of it
    assert next_delay([100, 300]) == 100


def test_only_the_window_counts() -> None:
    # of 900, 100, 300 the last two
    assert next_delay([900, 100, 300], window=2) == 100


def test_it_holds_still_until_its_window_is_full() -> None:
    assert next_delay([300, 300, 300], window=4) == 0
    assert next_delay([300, 300, 300, 300], window=4) == 150


def test_slack_includes_the_delay_it_injected_itself() -> None:
    # a rank that waited 300 and then, delayed by 200, only 100, still has a slack of 300
    assert next_delay([300, 100], delays=[0, 200]) == 150


def test_it_never_delays_by_more_than_its_bound() -> None:
    # half of the slack would be 200; the bound is a tenth of an iteration of 1,000
    assert next_delay([400, 400], max_delay=0.1) == 100


@pytest.mark.parametrize(("wait", "delay"), [(100, 0), (102, 51)])
def test_it_engages_above_its_threshold_and_disengages_at_it(wait: int, delay: int) -> None:
    # threshold: a tenth of an iteration of 1,000
    assert next_delay([wait, wait], threshold=0.1) == delay


def test_pacing_ends_when_the_slack_is_gone() -> None:
    # given waits of 300 that cease
    delays = [next_delay([300, 300, 0, 0][:seen], threshold=0.1) for seen in (2, 3, 4)]

    # then the mean slack of the window falls to 150 and 0, and the delay with it
    assert delays == [150, 75, 0]


def test_a_window_below_one_iteration_means_one() -> None:
    # of 900, 300 the last one
    assert next_delay([900, 300], window=0) == 150


def test_each_rank_follows_its_own_slack() -> None:
    past = Past(
        wait_ns=np.array([[0, 400], [0, 200]]),
        delay_ns=np.zeros((2, 2), dtype=np.int64),
        duration_ns=np.full((2, 2), 1_000),
    )

    delay = POLICY.delay(past, {"window": 2, "threshold": 0.02, "gain": 0.5, "max_delay": 1.0})

    assert delay.tolist() == [0, 150]
