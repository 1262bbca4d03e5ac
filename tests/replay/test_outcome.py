"""What a policy would have done, worked by hand, and the verdict on it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.given import data_parallel_job, rows_of
from tests.replay.models import coupled_by, lockstep_model, scene_of
from tests.stories import told
from traceforge.replay.engine import Replay
from traceforge.replay.evidence import NOTHING_KNOWN, Evidence
from traceforge.replay.model import StepModel
from traceforge.replay.outcome import Outcome, outcomes, overshoot
from traceforge.replay.policy import parse_policy
from traceforge.replay.replay_input import next_interval, ratio_interval

# No transfer grows with the spread of arrivals.
UNCOUPLED = replace(NOTHING_KNOWN, largest_spread=0.0)


def outcome_of(model: StepModel, policy: str, known: Evidence = NOTHING_KNOWN) -> Outcome:
    return outcomes(scene_of(model, known), [parse_policy(policy)])[0]


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

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=2,max_delay=0.5", UNCOUPLED)

    assert outcome.throughput_ratio == pytest.approx(360 / 420)
    assert (outcome.p50_ns, outcome.p95_ns, outcome.p99_ns) == (140, 158, 160)
    assert outcome.cv == pytest.approx(20 / 140)
    assert outcome.delay_ns == round((60 + 40 + 65) / 6)
    assert outcome.engaged_share == pytest.approx(3 / 6)
    assert outcome.gain_ceiling == 0
    assert outcome.verdict == "harm"
    assert outcome.reason == (
        "The delays cost 14 %, more than they gain even if transfers grow by 0 times the mean wait before them."
    )


def test_a_delay_within_the_slack_costs_nothing() -> None:
    # given the same job and half the slack given back: rank 1 arrives at 80, still before rank 0
    model = lockstep_model([[[100, 60]]] * 3, transfer_ns=20)

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5", UNCOUPLED)

    # then it delays rank 1 by 20 in two of three iterations, to no effect
    assert outcome.throughput_ratio == 1
    assert outcome.delay_ns == round(2 * 20 / 6)
    assert outcome.verdict == "no_effect"


def test_where_no_coupling_was_measured_the_ceiling_is_that_of_the_largest_that_is_possible() -> None:
    # given four iterations of 100 and 60, so that the mean wait is 20, and transfers of 50, 50, 50 and 90: 640 in all;
    # at 2 ns for each ns of wait transfers would be 10, 10, 10 and 50 if nobody waited: 480
    model = lockstep_model([[[100, 60]]] * 4, transfer_ns=[[50], [50], [90], [50]])

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5")

    # then no pacing could gain more than 640 / 480 - 1; that one transfer is slow by itself does not count
    assert outcome.gain_ceiling == pytest.approx(1 / 3)
    # and the interval ends where this one would: from the second iteration on rank 1 waits 20 less, and so do
    # transfers: 150 + 130 + 170 + 130
    assert outcome.throughput_ratio_low == outcome.throughput_ratio == 1
    assert outcome.throughput_ratio_high == pytest.approx(640 / 580)
    assert outcome.verdict == "not_identifiable"
    assert (
        "if they grow by 2 times the mean wait before them, by +10 %, and no pacing gains more than 33 %"
        in outcome.reason
    )


def test_a_transfer_takes_no_less_than_no_time_whatever_the_coupling() -> None:
    # given a mean wait of 20 and transfers of 20: twice the wait is more than all of them
    model = lockstep_model([[[100, 60]]] * 4, transfer_ns=20)

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5")

    assert outcome.gain_ceiling == pytest.approx(480 / 400 - 1)


def test_an_unsure_coupling_bounds_the_ceiling_by_its_upper_end() -> None:
    # given the same job and a coupling of which it is only known that it is at most 0.1: 2 of each transfer
    model = lockstep_model([[[100, 60]]] * 4, transfer_ns=20)
    known = replace(NOTHING_KNOWN, largest_spread=0.1)

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5", known)

    assert outcome.gain_ceiling == pytest.approx(480 / 472 - 1)


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


def test_with_a_coupling_early_ranks_that_hold_back_make_transfers_shorter() -> None:
    # given rank 0 that works 100 and rank 1 that works 60, thirty times, and transfers of 30 of which 0.5 x 20 are due
    # to the spread
    #
    #   recorded   |100·······|30|  x 30                                              3,900
    #   paced      the first as recorded; then rank 1 delays by 20 (half of its slack), the mean wait is 10 and
    #              the transfer 25                                                    130 + 29 x 125 = 3,755
    model = lockstep_model([[[100, 60]]] * 30, transfer_ns=30)

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5", coupled_by(0.5))

    assert outcome.throughput_ratio == pytest.approx(3900 / 3755)
    # the ceiling: no wait costs anything, transfers of 20
    assert outcome.gain_ceiling == pytest.approx(3900 / 3600 - 1)
    # kappa = 0: the delays lie within the slack
    assert outcome.throughput_ratio_without_coupling == 1
    # the same delays at random hit rank 0 half of the time
    assert outcome.throughput_ratio_placebo < 1
    assert outcome.throughput_ratio_low > 1
    assert outcome.verdict == "supported"


def test_the_interval_holds_what_both_ends_of_the_coupling_predict() -> None:
    # given the same job and a coupling between 0.25 and 0.75
    model = lockstep_model([[[100, 60]]] * 30, transfer_ns=30)
    known = coupled_by(0.5, low=0.25, high=0.75)

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5", known)

    # then transfers fall by 2.5 to 7.5
    assert outcome.throughput_ratio_low == pytest.approx(3900 / (130 + 29 * 127.5), abs=0.01)
    assert outcome.throughput_ratio_high == pytest.approx(3900 / (130 + 29 * 122.5), abs=0.01)


def test_the_oracle_is_a_bound_and_never_called_supported() -> None:
    model = lockstep_model([[[100, 60]]] * 30, transfer_ns=30)

    outcome = outcome_of(model, "oracle", coupled_by(0.5))

    # then nobody waits and transfers take 20 in every iteration
    assert outcome.throughput_ratio == pytest.approx(3900 / 3600)
    assert outcome.verdict == "not_identifiable"
    assert outcome.reason.startswith("A bound")


def test_every_policy_has_a_row_in_the_table() -> None:
    # given a job that five iterations long waits for rank 0
    with told(*data_parallel_job([[100, 60]] * 5), stage="replay") as store:
        rows = rows_of(store, "SELECT policy, throughput_ratio, p50_ns FROM replay.outcome ORDER BY policy")

    # then every policy is there with its defaults; none makes the job faster
    assert {policy for policy, _, _ in rows} >= {"none", "bounded_delay"}
    assert ("none", 1.0, 110) in rows
    assert all(ratio <= 1 for _, ratio, _ in rows if isinstance(ratio, float))


def test_an_iteration_that_is_missing_is_not_counted_as_a_long_one() -> None:
    # given five iterations of 110, the third of which rank 1 does not mark
    traces = data_parallel_job([[100, 60]] * 5)
    traces[1].events = [event for event in traces[1].events if event["name"] != "ProfilerStep#2"]

    with told(*traces, stage="replay") as store:
        rows = rows_of(store, "SELECT p50_ns, p99_ns, cv FROM replay.outcome WHERE policy = 'none'")

    assert rows == [(110, 110, 0.0)]


def test_warm_up_counts_neither_in_the_variation_nor_in_what_a_policy_costs() -> None:
    # given an iteration of 2,010 that warms up, and seven of 110
    with told(*data_parallel_job([[2_000, 60]] + [[100, 60]] * 7), stage="replay") as store:
        ((p99, cv),) = rows_of(store, "SELECT p99_ns, cv FROM replay.outcome WHERE policy = 'none'")
        ((ratio,),) = rows_of(store, "SELECT throughput_ratio FROM replay.outcome WHERE policy = 'constant'")

    # then no step of the seven varies, and delays of some 58 in all (a hundredth of the mean so far, which the first
    # iteration raises) are held against seven steps of 110: 7 %, not the 2 % of all eight
    assert (p99, cv) == (110, 0.0)
    assert ratio == pytest.approx(770 / (770 + 58), abs=0.005)


def test_a_run_without_collectives_has_no_outcome() -> None:
    traces = data_parallel_job([[100, 60]] * 5)
    for trace in traces:
        trace.events = [event for event in trace.events if "nccl" not in str(event["name"])]
        trace.collectives = []

    with told(*traces, stage="replay") as store:
        assert rows_of(store, "FROM replay.outcome") == []


def test_overshoot_counts_the_iterations_in_which_a_rank_that_is_held_back_comes_last() -> None:
    # given rank 0, which comes last without delays, and rank 1, which is held back in all three iterations
    #
    #   waits     without     with        rank 1 comes last
    #   first     0  40       0  10       no
    #   second    0  40       5   0       yes
    #   third     0  40       0   0       yes: as late as rank 0
    def run(wait_ns: list[list[int]], delay_ns: list[list[int]]) -> Replay:
        nothing = np.zeros((3, 2), dtype=np.int64)
        return Replay(nothing, nothing, np.array(wait_ns), np.array(delay_ns))

    paced = run([[0, 10], [5, 0], [0, 0]], [[0, 30]] * 3)
    unpaced = run([[0, 40]] * 3, [[0, 0]] * 3)

    assert overshoot(paced, unpaced) == pytest.approx(2 / 3)


def test_steps_to_come_are_less_sure_than_those_recorded_and_may_go_on_as_they_went() -> None:
    # given twelve steps of 100 that pacing makes 99 and 97 in turn
    recorded = np.full(12, 100.0)
    even = np.tile([99.0, 97.0], 6)
    replayed = np.stack([even] * 3)

    # then the steps to come have the same middle, and a wider interval
    known, to_come = ratio_interval(recorded, replayed), next_interval(recorded, replayed)
    assert to_come.low < known.low < 1200 / 1176 < known.high < to_come.high

    # and where each step saves half less than the one before it, the steps to come may lose
    shrinking = recorded - np.linspace(5.5, 0.0, 12)
    fading = next_interval(recorded, np.stack([shrinking] * 3))
    # the last saves nothing; on average the next twelve would cost 3.25 each
    assert fading.low <= 100 / 103.25 + 1e-9
    assert ratio_interval(recorded, np.stack([shrinking] * 3)).low > 1


def test_a_gain_that_fades_is_not_supported() -> None:
    # given rank 0 that works 100 and rank 1 that works 60 and comes nearer by 2 an iteration, and transfers of 30 that
    # grow by half of the mean wait
    work = [[[100, 60 + 2 * i]] for i in range(20)]
    model = lockstep_model(work, transfer_ns=30)

    outcome = outcome_of(model, "bounded_delay:window=1,threshold=0.1,gain=0.5,max_delay=0.5", coupled_by(0.5))

    assert outcome.throughput_ratio_low > 1
    assert outcome.throughput_ratio_next_low is not None
    assert outcome.throughput_ratio_next_low <= 1
    assert outcome.verdict == "not_identifiable"
    assert "in as many steps to come" in outcome.reason
