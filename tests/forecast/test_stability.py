"""Trends, churn, and who is at fault: parts or coupling."""

import numpy as np
import pytest

from tests.attribute.jobs import traces_of
from tests.given import MS, US, built, data_parallel_job, rows_of, store_of
from traceforge.forecast.stability import Measure, by_chance, changes, of_iterations, trend, verdict

NUMBERS = np.arange(40.0)


def test_a_trend_is_found_and_noise_is_none() -> None:
    rng = np.random.default_rng(1)
    rising = 100 + 0.5 * NUMBERS + rng.standard_normal(40)

    assert trend(NUMBERS, rising, 100.0).value == pytest.approx(0.5, abs=0.05)
    assert trend(NUMBERS, rising, 100.0).is_clear
    assert not trend(NUMBERS, 100 + rng.standard_normal(40), 100.0).is_clear


def test_errors_that_follow_one_another_widen_the_interval() -> None:
    # given the same values, once scattered and once as a slow wave
    wave = np.sin(NUMBERS / 3)
    scattered = np.random.default_rng(0).permutation(wave)

    slow, quick = trend(NUMBERS, wave, 1.0), trend(NUMBERS, scattered, 1.0)

    assert slow.high - slow.low > 2 * (quick.high - quick.low)


def test_churn_against_chance() -> None:
    assert changes(["a", "a", "b", "a"]) == pytest.approx(2 / 3)
    assert by_chance(["a", "b"] * 5) == pytest.approx(0.5)
    assert by_chance(["a"] * 5) == 0


def test_tails_are_told_only_where_there_are_enough_iterations() -> None:
    few = {measure.measure for measure in of_iterations(NUMBERS[:12], 100 + NUMBERS[:12])}
    more = {measure.measure for measure in of_iterations(NUMBERS, 100 + NUMBERS)}

    assert "p95_over_median" not in few
    assert "p95_over_median" in more
    assert "p99_over_median" not in more


def verdict_of(work: list[list[int]]) -> str:
    with built(store_of(*data_parallel_job(work, transfer_ns=5 * MS)), "forecast.stability") as store:
        ((meaning,),) = rows_of(store, "SELECT meaning FROM forecast.stability WHERE measure = 'verdict'")
    return str(meaning)


def test_each_part_is_healthy_and_the_coupling_is_not() -> None:
    # given four ranks of which a random one takes 140 ms instead of 100, in turns that favour none
    rng = np.random.default_rng(4)
    turns = rng.permutation(np.tile(np.arange(4), 15))
    work = [[140 * MS if rank == turn else 100 * MS for rank in range(4)] for turn in turns]

    said = verdict_of(work)

    assert said.startswith("No part is slow, yet ranks wait for one another: waiting is 21 % of the time")


def test_a_rank_that_is_always_late_is_a_part_that_is_not_healthy() -> None:
    said = verdict_of([[100 * MS, 100 * MS, 140 * MS, 100 * MS]] * 20)

    assert said.startswith("One part of the job is slow")


@pytest.mark.parametrize(("is_found", "said"), [(False, "No part is slow"), (True, "What the verdict names is slow")])
def test_a_part_that_attribution_found_guilty_is_not_called_healthy(is_found: bool, said: str) -> None:
    # given much waiting for last arrivers that change as chance has it, as when one of several paths is slow
    lasting = Measure("lasting_lateness", 0.003, 0.001, 0.005, 12, "")

    assert verdict(0.07, lasting, 0.73, 0.68, 12, is_found=is_found).meaning.startswith(said)


@pytest.mark.parametrize(("low", "high", "said"), [
    (0.03, 0.05, "One part of the job is slow"),
    (-0.01, 0.03, "Whether one part is slow or ranks merely take turns is not clear"),
    (-0.01, 0.01, "No part is slow"),
])  # fmt: skip
def test_lateness_that_lasts_is_at_fault_only_where_its_interval_says_so(low: float, high: float, said: str) -> None:
    # given waiting of 7 %, and no finding
    lasting = Measure("lasting_lateness", (low + high) / 2, low, high, 12, "")

    assert verdict(0.07, lasting, 0.73, 0.68, 12).meaning.startswith(said)


def test_ranks_that_wait_little_are_no_matter() -> None:
    assert verdict_of([[100 * MS, 101 * MS]] * 20).startswith("Ranks wait little for one another")


def test_few_iterations_have_no_outlook() -> None:
    with built(store_of(*data_parallel_job([[100 * MS, 90 * MS]] * 9)), "forecast.stability") as store:
        assert rows_of(store, "SELECT COUNT(*) FROM forecast.stability") == [(0,)]


def test_the_bottleneck_of_a_job_with_one_cause_does_not_change_hands() -> None:
    traces = traces_of({(i, 1): 30 * US for i in range(12)}, by="input_stall", iterations=12)
    with built(store_of(*traces), "forecast.stability") as store:
        rows = rows_of(store, "SELECT measure, value FROM forecast.stability WHERE measure LIKE '%churn' AND value > 0")

    assert ("bottleneck_churn", pytest.approx(0)) not in rows
