"""Losses of all ranks in some iterations: of everyone, of one rank or another, or mostly of one. Steps take 100."""

import numpy as np
import pytest

from tests.attribute.findings.runs import found_in, judged_run, lost, subjects
from traceforge.attribute.findings.effects import effect_on_job
from traceforge.attribute.findings.grading import GradeLimits

STRUCK = [2, 5, 9, 10, 13, 16, 18, 19]
USUAL = np.full(20, 100.0)


def noise(size: float = 0.1, ranks: int = 4) -> np.ndarray:
    return np.random.default_rng(1).exponential(size, (20, ranks))


def said(own: np.ndarray, cost: np.ndarray | None = None, *, has_device: bool = False) -> list[str]:
    """Who pauses, of four ranks of one host."""
    run = judged_run(20, 4, hosts=["a"] * 4, has_device=has_device)
    losses = lost({"host_stall": own}, None if cost is None else {"host_stall": cost})
    return [one.subject.said for one in found_in(run, losses)]


def test_pauses_that_strike_one_rank_at_a_time_are_of_one_or_another() -> None:
    # given eight iterations in which another rank each time pauses for 160
    own = noise()
    for n, i in enumerate(STRUCK):
        own[i, n % 4] += 160

    assert said(own) == ["one rank or another"]


def test_pauses_of_all_ranks_in_the_same_iterations_are_of_every_rank() -> None:
    # given the same iterations, in which all pause, and one of them, another each time, is waited for
    own, cost = noise(), noise(0.05)
    own[STRUCK] += 160
    for n, i in enumerate(STRUCK):
        cost[i, n % 4] += 160

    assert said(own, cost) == ["every rank"]


@pytest.mark.parametrize(("others", "named"), [(25, "rank 3"), (60, "every rank")])
def test_of_what_everyone_loses_the_rank_that_has_most_by_itself_is_named(others: int, named: str) -> None:
    # given an evaluation in every fifth iteration that takes rank 3 72, and the others 25 or 60
    own, cost = noise(), noise(0.05)
    own[4::5] += others
    own[4::5, 3] += 72 - others
    cost[4::5, 3] += 72

    assert said(own, cost, has_device=True) == [named]


def test_a_long_pause_of_everyone_is_one_where_others_lose_a_little() -> None:
    # given 500 once, and 8 in two other iterations
    delays = np.zeros(20)
    delays[[6, 7, 19]] = 500, 8, 8

    effect = effect_on_job(delays, USUAL, 0, GradeLimits())

    assert effect is not None
    assert effect.affected.tolist() == [6]
    assert effect.affected_delay_ns == 500


def test_ranks_that_lose_alike_are_named_with_their_pattern() -> None:
    own, cost = noise(), noise(0.05)
    own[4::5] += 60
    cost[4::5, 1] += 60
    run = judged_run(20, 4, hosts=["a"] * 4)

    assert subjects(found_in(run, lost({"host_stall": own}, {"host_stall": cost}))) == [
        ("job", "all", "host_stall", "transient", "medium")
    ]
