"""What a policy would have done, worked by hand, and the verdict on it."""

import numpy as np
import pytest

from tests.given import built, data_parallel_job, rows_of, store_of
from tests.replay.models import lockstep_model
from traceforge.replay.model import StepModel
from traceforge.replay.outcome import Outcome, judge, outcomes
from traceforge.replay.policy import parse_policy


def outcome_of(model: StepModel, policy: str) -> Outcome:
    return outcomes(0, model, [parse_policy(policy)])[0]


def test_a_harmful_policy_worked_by_hand() -> None:
    # given rank 0 that works 100 and rank 1 that works 60, three times, and a gain that is far too high
    #
    #   recorded   rank 0 |100·······|20|100·······|20|100·······|20|          360
    #              rank 1 |60··|w 40·|20|60··|w 40·|20|60··|w 40·|20|
    #
    #   paced      after the first: rank 1 has a slack of 40 > 0.1 x 120, delays by min(0.5 x 120, 2 x 40) = 60
    #              second: arrivals at 100 and 60 + 60 = 120, end at 140; rank 0 waited 20
    #              after it: rank 0 has a slack of 20 > 0.1 x 130, delays by min(0.5 x 130, 2 x 20) = 40
    #                        rank 1 has a slack of 0 + 60, delays by min(0.5 x 130, 2 x 60) = 65
    #              third: arrivals at 40 + 100 = 140 and 65 + 60 = 125, end at 160
    #                                                                          120 + 140 + 160 = 420
    model = lockstep_model([[[100, 60]]] * 3, transfer_ns=20)

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=2,max_delay=0.5")

    assert outcome.throughput_ratio == pytest.approx(360 / 420)
    assert (outcome.p50_ns, outcome.p95_ns, outcome.p99_ns) == (140, 158, 160)
    assert outcome.cv == pytest.approx(20 / 140)
    assert outcome.delay_ns == round((60 + 40 + 65) / 6)
    assert outcome.engaged_share == pytest.approx(3 / 6)
    assert outcome.gain_ceiling == 0
    assert outcome.verdict == "harm"
    assert outcome.reason == "The delays cost 14 %, more than any pacing could gain."


def test_a_delay_within_the_slack_costs_nothing() -> None:
    # given the same job and half the slack given back: rank 1 arrives at 80, still before rank 0
    model = lockstep_model([[[100, 60]]] * 3, transfer_ns=20)

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5")

    # then it delays rank 1 by 20 in two of three iterations, to no effect
    assert outcome.throughput_ratio == 1
    assert outcome.delay_ns == round(2 * 20 / 6)
    assert outcome.verdict == "no_effect"


def test_the_ceiling_is_the_run_with_every_transfer_at_its_reference() -> None:
    # given four iterations of 100, with transfers of 20, 20, 20 and 60: 520 in all; clean, 480
    model = lockstep_model([[[100, 60]]] * 4, transfer_ns=[[20], [20], [60], [20]])

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5")

    # then no pacing could gain more than 520 / 480 - 1, and that is where the interval ends
    assert outcome.gain_ceiling == pytest.approx(1 / 12)
    assert outcome.throughput_ratio_low == outcome.throughput_ratio == 1
    assert outcome.throughput_ratio_high == pytest.approx(13 / 12)
    assert outcome.verdict == "not_identifiable"
    assert "8.3 %" in outcome.reason


def test_no_pacing_is_the_recorded_run() -> None:
    model = lockstep_model([[[100, 60]]] * 4, transfer_ns=[[20], [20], [60], [20]])

    outcome = outcome_of(model, "none")

    # steps of 120, 120, 160, 120
    assert (outcome.throughput_ratio_low, outcome.throughput_ratio_high) == (1, 1)
    assert (outcome.p50_ns, outcome.delay_ns, outcome.engaged_share) == (120, 0, 0)
    assert outcome.cv == pytest.approx(np.std([120, 120, 160, 120], ddof=1) / 130)
    assert (outcome.verdict, outcome.reason) == ("no_effect", "No rank is ever delayed.")


def test_one_iteration_has_no_variation() -> None:
    assert outcome_of(lockstep_model([[[100, 60]]]), "none").cv is None


@pytest.mark.parametrize(
    ("ratio", "ceiling", "is_paced", "verdict"),
    [
        (1.0, 0.5, False, "no_effect"),  # nobody is ever delayed
        (1.0, 0.0, True, "no_effect"),  # nothing to gain
        (1.0, 0.0099, True, "no_effect"),  # less than one per cent to gain
        (1.0, 0.01, True, "not_identifiable"),  # one per cent to gain, if there is a coupling
        (0.99, 0.0, True, "no_effect"),  # costs one per cent, not more
        (0.9899, 0.0, True, "harm"),  # costs more than one per cent, and nothing to gain
        (0.95, 0.03, True, "harm"),  # 1.03 x 0.95 = 0.979: even the ceiling does not make up for it
        (0.95, 0.05, True, "not_identifiable"),  # 1.05 x 0.95 = 0.998: it might
    ],
)
def test_the_verdict_at_its_borders(ratio: float, ceiling: float, is_paced: bool, verdict: str) -> None:
    assert judge(ratio, ceiling, is_paced=is_paced)[0] == verdict


def test_no_verdict_supports_a_policy_while_no_coupling_is_measured() -> None:
    verdicts = {judge(ratio, ceiling, is_paced=True)[0] for ratio in (0.5, 1.0) for ceiling in (0.0, 0.02, 2.0)}

    assert verdicts == {"harm", "no_effect", "not_identifiable"}


def test_every_policy_has_a_row_in_the_table() -> None:
    # given a job that five iterations long waits for rank 0
    with built(store_of(*data_parallel_job([[100, 60]] * 5)), "replay") as store:
        rows = rows_of(store, "SELECT policy, throughput_ratio, p50_ns FROM replay.outcome ORDER BY policy")

    # then every policy is there with its defaults; none makes the job faster
    assert {policy for policy, _, _ in rows} >= {"none", "bounded_delay"}
    assert ("none", 1.0, 110) in rows
    assert all(ratio <= 1 for _, ratio, _ in rows if isinstance(ratio, float))


def test_an_iteration_that_is_missing_is_not_counted_as_a_long_one() -> None:
    # given five iterations of 110, the third of which rank 1 does not mark
    traces = data_parallel_job([[100, 60]] * 5)
    traces[1].events = [event for event in traces[1].events if event["name"] != "ProfilerStep#2"]

    with built(store_of(*traces), "replay") as store:
        rows = rows_of(store, "SELECT p50_ns, p99_ns, cv FROM replay.outcome WHERE policy = 'none'")

    assert rows == [(110, 110, 0.0)]


def test_a_run_without_collectives_has_no_outcome() -> None:
    traces = data_parallel_job([[100, 60]] * 5)
    for trace in traces:
        trace.events = [event for event in trace.events if "nccl" not in str(event["name"])]
        trace.collectives = []

    with built(store_of(*traces), "replay") as store:
        assert rows_of(store, "FROM replay.outcome") == []
