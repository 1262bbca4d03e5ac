"""Who owns an iteration's excess, worked by hand: `t` is a transfer, `w` a wait, `+` what is late."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attribute.jobs import blame_of, disturbed, excess_of, late_by
from tests.replay.models import THREE_KINDS, lockstep_model, lockstep_plan, model_of


@pytest.mark.parametrize("kind", range(3), ids=[phase for phase, _ in THREE_KINDS])
def test_one_late_rank_owns_the_whole_excess_whatever_it_did(kind: int) -> None:
    #   rank 0   |100·······|w 50·|t|
    #   rank 1   |100·······|+50··|t|
    #   rank 2   |100·······|w 50·|t|
    work = np.full((5, 1, 3, 3), 100)
    work[2, 0, 1, kind] += 50

    blame = blame_of(lockstep_model(work, kinds=THREE_KINDS), 2)

    assert late_by(blame) == {(1, kind): 50}
    assert excess_of(blame) == 50


def test_iterations_without_any_disturbance_owe_nothing() -> None:
    blame = blame_of(lockstep_model(np.full((5, 2, 3), 100)), 0)

    assert late_by(blame) == {}
    assert (blame.transfers_ns.sum(), blame.early_ns) == (0, 0)


def test_each_of_two_meetings_is_charged_to_its_own_culprit() -> None:
    #   rank 0   |100·······|+30|t|100·······|w 20|t|
    #   rank 1   |100·······|w..|t|100·······|w 20|t|
    #   rank 2   |100·······|w..|t|100·······|+20·|t|
    model = disturbed({(0, 0): 30, (1, 2): 20}, places=2, ranks=3)

    assert late_by(blame_of(model)) == {(0, 0): 30, (2, 0): 20}


def test_a_rank_that_is_fast_later_does_not_take_back_what_it_cost_at_an_earlier_meeting() -> None:
    #   rank 0   |100·······|+90······|t|10|w 100·······|t|
    #   rank 1   |100·······|w 90·····|t|100·······|+10·|t|
    #   others   |100·······|w 90·····|t|100·······|w 10|t|
    model = disturbed({(0, 0): 90, (1, 0): -90, (1, 1): 10}, places=2, ranks=11)

    # then the first wait is rank 0's and the second is rank 1's
    assert late_by(blame_of(model)) == pytest.approx({(0, 0): 90, (1, 0): 10})


def test_two_late_ranks_share_what_both_cost_and_the_later_one_owns_the_rest() -> None:
    #   rank 0   |100·······|+10··|t|       the first 4 are both's: 2 each
    #   rank 1   |100·······|+4|w |t|       the other 6 are rank 0's
    model = disturbed({(0, 0): 10, (0, 1): 4}, ranks=4)

    assert late_by(blame_of(model)) == {(0, 0): 8, (1, 0): 2}


def test_ranks_that_are_equally_late_share_equally() -> None:
    assert late_by(blame_of(disturbed({(0, 0): 10, (0, 1): 10}, ranks=4))) == {(0, 0): 5, (1, 0): 5}


@pytest.mark.parametrize("transfer_ns", [0, 5, 15, 40])
def test_how_long_the_transfer_takes_does_not_change_who_is_late(transfer_ns: int) -> None:
    # given ranks that are late by 30, 20 and 10 among many, before a transfer that is shorter or longer than that
    #   the first 10 are shared by three, the next 10 by two, the last 10 are rank 0's
    model = disturbed({(0, 0): 30, (0, 1): 20, (0, 2): 10}, ranks=9, transfer_ns=transfer_ns)

    assert late_by(blame_of(model)) == pytest.approx(
        {(0, 0): 10 / 3 + 5 + 10, (1, 0): 10 / 3 + 5, (2, 0): 10 / 3},
    )


def test_lateness_that_travels_from_pair_to_pair_stays_with_its_first_owner() -> None:
    # given tensor-parallel pairs 0-1 and 2-3, then data-parallel pairs 0-2 and 1-3; rank 1 is late by 40
    #
    #   rank 0   |100·······|w 40·|t|100·······|     |t|
    #   rank 1   |100·······|+40··|t|100·······|     |t|
    #   rank 2   |100·······|t|100·······|w 40·······|t|     waits for rank 0, which is late through no fault of its own
    #   rank 3   |100·······|t|100·······|w 40·······|t|
    model = disturbed({(0, 1): 40}, places=2, ranks=4, groups=[[0, 0, 1, 1], [0, 1, 0, 1]])

    assert late_by(blame_of(model)) == {(1, 0): 40}


def test_two_pairs_that_are_late_alike_share_what_their_meeting_costs() -> None:
    # given the same pairs; rank 1 and rank 2, of different pairs, are both late by 40
    model = disturbed({(0, 1): 40, (0, 2): 40}, places=2, ranks=4, groups=[[0, 0, 1, 1], [0, 1, 0, 1]])

    assert late_by(blame_of(model)) == {(1, 0): 20, (2, 0): 20}


def test_lateness_that_a_running_transfer_hides_costs_nothing() -> None:
    # given 30 of compute under a transfer of 50, of which rank 0 once makes 45
    #   |100·······|transfer 50······|
    #   .          |30·······|+15|w 5|
    plan = lockstep_plan(np.full((5, 1, 3), 100), transfer_ns=50)
    plan.before_wait_ns[:, 0, :, 0] = 30
    plan.before_wait_ns[2, 0, 0, 0] = 45

    assert late_by(blame_of(model_of(plan))) == {}


def test_lateness_beyond_the_transfer_that_hid_it_is_charged() -> None:
    # given the same, of which rank 0 once makes 60: 10 longer than the transfer
    plan = lockstep_plan(np.full((5, 1, 3), 100), transfer_ns=50)
    plan.before_wait_ns[:, 0, :, 0] = 30
    plan.before_wait_ns[2, 0, 0, 0] = 60

    assert late_by(blame_of(model_of(plan))) == {(0, 0): 10}


def test_a_slow_transfer_is_no_ranks() -> None:
    # given five transfers of 10, one of which takes 35
    model = lockstep_model(np.full((5, 1, 3), 100), transfer_ns=[[10], [10], [35], [10], [10]])

    blame = blame_of(model)

    assert late_by(blame) == {}
    assert blame.transfers_ns.sum() == 25


def test_a_slow_transfer_that_outlasts_a_late_rank_keeps_only_its_own_part() -> None:
    # given a rank that is late by 30 and, after it, a transfer that takes 25 more
    #   rank 0   |100·······|+30···|t 10|+25··|
    plan = lockstep_plan(np.full((5, 1, 3), 100), transfer_ns=[[10], [10], [35], [10], [10]])
    plan.before_arrival_ns[2, 0, 0, 0] += 30

    blame = blame_of(model_of(plan))

    assert late_by(blame) == {(0, 0): 30}
    assert blame.transfers_ns.sum() == 25


def test_that_everyone_is_early_is_everyones_credit() -> None:
    # given an iteration in which all ranks take 90 instead of 100
    work = np.full((5, 1, 3), 100)
    work[2] = 90

    blame = blame_of(lockstep_model(work))

    assert late_by(blame) == {}
    assert (blame.early_ns, excess_of(blame)) == (-10, -10)


def test_that_one_rank_is_early_changes_nothing() -> None:
    # rank 0 is early by 50, and waits for the others
    blame = blame_of(disturbed({(0, 0): -50}, ranks=3))

    assert late_by(blame) == {}
    assert excess_of(blame) == 0


def test_a_rank_that_is_late_in_two_ways_owns_both() -> None:
    # given 30 more compute and 10 more input on rank 1
    work = np.full((5, 1, 3, 2), 100)
    work[2, 0, 1] += [30, 10]

    assert late_by(blame_of(lockstep_model(work, kinds=THREE_KINDS))) == {(1, 0): 30, (1, 1): 10}


def test_time_saved_in_one_way_counts_against_time_lost_in_another() -> None:
    # given 30 more compute and 10 less input on rank 1: it arrives 20 late, because of its compute
    work = np.full((5, 1, 3, 2), 100)
    work[2, 0, 1] += [30, -10]

    assert late_by(blame_of(lockstep_model(work, kinds=THREE_KINDS))) == {(1, 0): 20}


def test_a_rank_that_catches_up_before_it_waits_owes_nothing() -> None:
    # given two collectives, the first of which nobody awaits
    #   rank 0   |100·······|+30|70·····|t|
    #   rank 1   |100·······|100········|t|
    plan = lockstep_plan(np.full((5, 2, 3), 100))
    plan.awaited[:, 0] = -1
    plan.before_arrival_ns[2, :2, 0, 0] += [30, -30]

    blame = blame_of(model_of(plan))

    assert late_by(blame) == {}
    assert excess_of(blame) == 0


def test_work_after_the_last_meeting_can_be_late_too() -> None:
    # given 40 more on rank 2 after the last collective
    plan = lockstep_plan(np.full((5, 1, 3), 100))
    plan.before_arrival_ns[2, 1, 2, 0] = 40

    assert late_by(blame_of(model_of(plan))) == {(2, 0): 40}


def test_an_iteration_is_reckoned_from_the_last_start() -> None:
    # given rank 0 that starts 40 after the others and is as fast as they are
    #   rank 0   ....|100·······|t|
    #   rank 1   |100·······|w 40|t|
    blame = blame_of(lockstep_model(np.full((1, 1, 3), 100), start_ns=[40, 0, 0]), 0)

    # then nothing in this iteration was late; the late start belongs to what came before
    assert late_by(blame) == {}
    assert excess_of(blame) == 0


def test_a_head_start_does_not_excuse_who_loses_it_and_more() -> None:
    # given rank 1 that starts 40 before the others and takes 60 longer
    #   rank 0   ....|100·······|w 20|t|
    #   rank 1   |100·······|+60·····|t|
    plan = lockstep_plan(np.full((5, 1, 3), 100))
    pauses = np.zeros((4, 3), dtype=np.int64)
    pauses[1] = [40, 0, 40]
    plan.before_arrival_ns[2, 0, 1, 0] += 60

    blame = blame_of(model_of(replace(plan, pause_ns=pauses)))

    # then it costs the job 20, and they are its own
    assert late_by(blame) == {(1, 0): 20}
