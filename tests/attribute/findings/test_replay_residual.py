"""What struck iterations last beyond others once they are replayed without what struck them."""

import numpy as np
import pytest

from traceforge.attribute.findings.replay_residual import ReplayResidual, replay_residual

NONE = np.zeros(0, dtype=np.int64)
# 100 and 102 in turns: 101 on average
UNEVEN = np.array([100.0, 102.0] * 10)


def struck(by: float, iterations: list[int], cost: float = 50.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Durations without a delay, what the delay costs, and where it strikes."""
    durations, delays = UNEVEN.copy(), np.zeros(20)
    durations[iterations] += by
    delays[iterations] = cost
    return durations, delays, np.array(iterations)


def left_of(
    durations: np.ndarray, delays: np.ndarray, where: np.ndarray, others: np.ndarray, calls: np.ndarray | None = None
) -> ReplayResidual:
    """What is left, of iterations of the same program unless their collectives are given."""
    same = np.ones(len(durations), dtype=np.int64)
    return replay_residual(durations, delays, where, others, same if calls is None else calls)


def test_where_struck_iterations_last_as_long_as_others_nothing_is_left() -> None:
    durations, delays, where = struck(0, [4, 5, 10, 11])

    assert left_of(durations, delays, where, NONE) == ReplayResidual()


def test_what_makes_other_work_faster_meanwhile_is_left() -> None:
    # given four iterations that last 20 less than the others once they are replayed without a stall of 50
    durations, delays, where = struck(-20, [4, 5, 10, 11])

    found = left_of(durations, delays, where, NONE)

    assert found.mean_ns == -20
    # the struck vary by 2 / sqrt(3) among four, the others by about 1 among sixteen
    assert (found.low_ns, found.high_ns) == pytest.approx((-20 - 1.3, -20 + 1.3), abs=0.1)


def test_what_may_be_chance_only_widens_the_interval() -> None:
    durations, delays, where = struck(1, [4, 5, 10, 11], cost=30)

    assert left_of(durations, delays, where, NONE) == ReplayResidual(0.0, 0.0, 1.0)


def test_a_trifle_is_not_mended_however_sure() -> None:
    durations, delays = np.full(20, 100.0), np.zeros(20)
    durations[4:8] -= 0.5
    delays[4:8] = 50

    assert left_of(durations, delays, np.arange(4, 8), NONE) == ReplayResidual(0.0, -0.5, 0.0)


def test_iterations_that_something_else_strikes_too_tell_nothing() -> None:
    # given iterations of which two alone are free of the other delay
    durations, delays, where = struck(-20, [4, 5, 10, 11])

    assert left_of(durations, delays, where, np.array([4, 5])) == ReplayResidual()


def test_a_delay_in_all_iterations_leaves_nothing_to_compare_with() -> None:
    assert left_of(UNEVEN, np.full(20, 50.0), np.arange(20), NONE) == ReplayResidual()


def test_delays_that_grow_with_the_step_are_no_two_kinds_of_iterations() -> None:
    # given steps of 100 to 119 that cost a slow rank 10 % of themselves, of which the longer ones count as struck
    durations = np.arange(100.0, 120.0)

    assert left_of(durations, durations / 10, np.arange(8, 20), NONE) == ReplayResidual()


def test_longer_steps_are_no_other_kind_where_the_shorter_ones_lose_as_large_a_part() -> None:
    # given steps of about 24 and of about 36, and a host that takes 15 % longer in all of them
    durations = np.array([23.0, 24.0, 24.5, 25.0] * 3 + [35.0, 36.0, 36.5, 37.0] * 3)
    delays = 0.15 * durations

    # then the longer ones, which count as struck, last 12 more because of their length
    assert left_of(durations, delays, np.arange(12, 24), NONE) == ReplayResidual()


def test_a_short_step_that_is_struck_counts_as_struck() -> None:
    # given five of twenty iterations that are struck, of which only the four long ones were affected enough to count
    durations, delays = UNEVEN.copy(), np.zeros(20)
    durations[4:9], delays[4:9] = [60.0, 110.0, 112.0, 111.0, 112.0], [6.0, 10.0, 11.0, 10.0, 11.0]

    # then all five together last 101 on average, as long as the others, and not 111 as the four
    found = left_of(durations, delays, np.arange(5, 9), NONE)
    assert (found.mean_ns, found.low_ns) == (0.0, pytest.approx(101.0 - 1516 / 15))


def test_iterations_of_another_program_are_not_compared() -> None:
    # given four iterations in which all ranks evaluate, with a collective more, that last 80 longer
    durations, delays, where = struck(80, [4, 9, 14, 19])
    evaluates = np.ones(20, dtype=np.int64)
    evaluates[where] = 2

    assert left_of(durations, delays, where, NONE).mean_ns == pytest.approx(80, abs=0.5)
    assert left_of(durations, delays, where, NONE, evaluates) == ReplayResidual()
