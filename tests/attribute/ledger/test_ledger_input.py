"""Runs as the ledger books them: same events, told so that they compare."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tests.examples import examples
from tests.replay.models import Plan, lockstep_plan, model_of, plans
from traceforge.attribute.ledger.ledger_input import (
    by_cause,
    with_even_boundaries,
    with_pauses,
    without_empty_waits,
    without_false_waits,
)
from traceforge.replay.engine import measured, replay
from traceforge.replay.model import StepModel

KINDS = (("compute", None), ("idle", "unnamed"), ("runtime", "launch"))


def replays_as(model: StepModel, other: StepModel) -> bool:
    """Whether two models end each iteration at the same times."""
    return bool((replay(model, measured(model)).end_ns[-1] == replay(other, measured(other)).end_ns[-1]).all())


def test_kinds_of_work_are_added_up_by_the_cause_that_claims_them() -> None:
    plan = lockstep_plan(
        [[[[70, 20, 0], [70, 0, 5]]]] * 3, kinds=(("compute", None), ("input", "input"), ("copy", None))
    )
    model = by_cause(model_of(plan))

    assert [name for name, _ in model.kinds] == ["input_stall", "slow_compute", "slow_copy"]
    assert model.before_arrival_ns[0, 0].tolist() == [[20, 70, 0], [0, 70, 5]]


def test_a_device_kept_idle_between_operations_is_its_hosts_if_operations_are_on_record() -> None:
    # given rank 1 whose device is idle for 50 while its host does nothing that has a name
    work = np.array([[[[100, 0, 5], [100, 50, 5], [100, 0, 5]]]] * 3)
    model = by_cause(model_of(lockstep_plan(work, kinds=KINDS)))

    stalled = [name for name, _ in model.kinds].index("host_stall")
    assert model.before_arrival_ns[0, 0, :, stalled].tolist() == [0, 50, 0]


@pytest.mark.parametrize("phase", ["transfer", "wait", "communication"])
def test_a_gap_of_the_host_that_communication_hides_without_being_awaited_is_the_hosts(phase: str) -> None:
    # given rank 1 whose host does nothing that has a name for 50, while its device runs only a prefetch
    kinds = (("compute", None), (phase, "unnamed"), ("runtime", "launch"))
    work = np.array([[[[100, 0, 5], [100, 50, 5], [100, 0, 5]]]] * 3)
    model = by_cause(model_of(lockstep_plan(work, kinds=kinds)))

    stalled = [name for name, _ in model.kinds].index("host_stall")
    assert model.before_arrival_ns[0, 0, :, stalled].tolist() == [0, 50, 0]


def test_unnamed_gaps_of_a_rank_that_launches_late_are_late_launches() -> None:
    # given rank 1 that loses 80 in launches and 50 between them
    work = np.array([[[[100, 0, 5], [100, 50, 85], [100, 0, 5]]]] * 3)
    model = by_cause(model_of(lockstep_plan(work, kinds=KINDS)))

    launching = [name for name, _ in model.kinds].index("late_launch")
    assert model.before_arrival_ns[0, 0, :, launching].tolist() == [5, 135, 5]


def test_unnamed_gaps_of_ranks_that_stall_in_turns_are_stalls_on_each_of_them() -> None:
    # given four ranks that lose 50 in turns, and half of which spend 1 more in launches always
    work = np.tile(np.array([100, 0, 5]), (8, 1, 4, 1))
    work[np.arange(8), 0, np.arange(8) % 4, 1] += 50
    work[:, 0, :2, 2] += 1
    model = by_cause(model_of(lockstep_plan(work, kinds=KINDS)))

    stalled = [name for name, _ in model.kinds].index("host_stall")
    assert model.before_arrival_ns[..., stalled].sum(axis=(0, 1)).tolist() == [100] * 4


def one_slow_stage() -> StepModel:
    """Three stages, one rank each; stage 1 loses 80 in launches, 50 between them, which once vary by 1 and by 2."""
    work = np.array([[[[100, 0, 5], [100, 50, 85], [100, 0, 5]]]] * 3)
    work[1, 0, 1] = [100, 52, 86]
    return replace(model_of(lockstep_plan(work, kinds=KINDS)), role=np.arange(3))


def test_unnamed_gaps_of_a_stage_that_always_launches_late_are_late_launches() -> None:
    model = by_cause(one_slow_stage())

    launching = [name for name, _ in model.kinds].index("late_launch")
    assert model.before_arrival_ns[:, 0, 1, launching].tolist() == [135, 138, 135]


def test_hosts_without_devices_are_held_against_their_own_role() -> None:
    # given that the stage may do by design what it always does: only the 2 and the 1 are above what is typical of it
    model = by_cause(one_slow_stage(), has_device=False)

    stalled = [name for name, _ in model.kinds].index("host_stall")
    assert model.before_arrival_ns[:, 0, 1, stalled].tolist() == [50, 52, 50]


def test_without_operations_on_record_unnamed_gaps_stay_unexplained() -> None:
    plan = lockstep_plan([[[[100, 0], [100, 50]]]] * 3, kinds=KINDS[:2])

    assert ("unexplained", None) in by_cause(model_of(plan)).kinds


@examples(100)
@given(plans())
def test_dropping_waits_in_which_no_time_passed_changes_no_end(plan: Plan) -> None:
    model = model_of(plan)

    assert replays_as(without_empty_waits(model), model)


@examples(100)
@given(plans())
def test_cutting_iterations_elsewhere_changes_no_work_and_no_last_end(plan: Plan) -> None:
    model = model_of(plan)
    even = with_even_boundaries(model)

    assert (even.before_arrival_ns.sum(axis=(0, 1)) == model.before_arrival_ns.sum(axis=(0, 1))).all()
    assert (even.start_ns[0] == model.start_ns[0]).all()
    assert (even.end_ns[-1] == model.end_ns[-1]).all()


def test_work_that_falls_into_the_next_iteration_on_one_rank_is_put_back() -> None:
    # given 30 of work after the last meeting, which rank 1's window once cuts off: it stands before the next arrival
    work = np.full((4, 1, 3), 100)
    plan = lockstep_plan(work)
    plan.before_arrival_ns[:, 1] = 30
    plan.before_arrival_ns[1, 1, 1], plan.before_arrival_ns[2, 0, 1] = 0, 130

    even = with_even_boundaries(model_of(plan))
    assert (even.before_arrival_ns[:, 1] == 30).all()
    assert (even.before_arrival_ns[:, 0] == 100).all()


def test_work_that_a_host_ahead_of_its_device_leaves_for_later_steps_is_put_back() -> None:
    # given two rounds of four steps that communicate in the last one alone; hosts are ahead of their devices, which
    # do 10 of the 100 of each step while it lasts and catch up in the last one, but the host of rank 2 is not ahead:
    #   others   |10|10|10|       370         |t|
    #   rank 2   |100·····|100·····|100·····|100·····|t|
    work = np.full((8, 1, 3), 10)
    work[3::4], work[:, :, 2] = 370, 100
    plan = lockstep_plan(work, transfer_ns=np.tile([0, 0, 0, 10], 2)[:, None])
    plan.calls[[0, 1, 2, 4, 5, 6]] = 0
    plan.group[plan.calls == 0] = plan.awaited[plan.calls == 0] = -1
    model = model_of(plan)

    even = with_even_boundaries(model)

    # then each step of rank 2 has what the others' have, and ends with it
    assert even.before_arrival_ns[:, 0, 2, 0].tolist() == [10, 10, 10, 370] * 2
    assert (even.end_ns[:, 2] == even.end_ns[:, 0]).all()
    assert (even.start_ns[1:] == even.end_ns[:-1]).all()


def test_a_wait_before_work_that_others_do_before_it_is_none() -> None:
    # given 60 of compute under a transfer, then a wait; rank 2 stands still after 20 of it, as its host is late, and
    # does the other 40 only after 60 more of launching
    #   others   |100·······|60······|w 10|
    #   rank 2   |100·······|20|"w 50"|+60·|40····|
    kinds = (("compute", None), ("runtime", "launch"))
    work = np.zeros((4, 2, 4, 2), dtype=np.int64)
    work[:, 0, :, 0] = 100
    plan = lockstep_plan(work, transfer_ns=70, kinds=kinds)
    plan.before_wait_ns[:, 0, :, 0] = 60
    plan.before_wait_ns[:, 0, 2, 0] = 20
    plan.before_arrival_ns[:, 1, 2] = [40, 60]
    model = without_empty_waits(by_cause(model_of(plan)))

    told = without_false_waits(model)

    # then rank 2 waits for nothing, and the 50 in which it stood still are its late launches
    assert (told.awaited[:, 0, 2] == -1).all()
    assert (told.awaited[:, 0, [0, 1, 3]] == 0).all()
    launching = [name for name, _ in told.kinds].index("late_launch")
    assert (told.before_wait_ns[:, 0, 2, launching] == 50).all()
    assert replays_as(told, model)


def test_a_run_without_collectives_stays_as_it_is() -> None:
    plan = lockstep_plan(np.full((2, 1, 2), 100))
    empty = replace(
        model_of(plan),
        calls=np.zeros(2, dtype=np.int64),
        group=np.zeros((2, 0, 2), dtype=np.int64),
        awaited=np.zeros((2, 0, 2), dtype=np.int64),
        transfer_ns=np.zeros((2, 0, 2), dtype=np.int64),
        before_wait_ns=np.zeros((2, 0, 2, 1), dtype=np.int64),
        before_arrival_ns=np.full((2, 1, 2, 1), 100),
    )

    told = with_even_boundaries(without_false_waits(by_cause(without_empty_waits(empty))))
    assert (told.before_arrival_ns == 100).all()


def test_a_pause_between_two_marked_iterations_is_work_of_its_rank() -> None:
    # given three iterations of two ranks; rank 1 begins the second one 400 after it ended the first
    #   rank 0   |100|t|      wait 400       |100|t|
    #   rank 1   |100|t|   no mark here 400  |100|t|
    plan = lockstep_plan([[[100, 100]]] * 3)
    model = with_pauses(by_cause(model_of(replace(plan, pause_ns=np.array([[0, 400], [0, 0]])))))

    stalled = [name for name, _ in model.kinds].index("host_stall")
    assert model.before_arrival_ns[:, 0, :, stalled].tolist() == [[0, 0], [0, 400], [0, 0]]
    assert model.start_ns[1].tolist() == model.end_ns[0].tolist()


def test_marks_that_follow_one_another_leave_the_model_as_it_is() -> None:
    model = by_cause(model_of(lockstep_plan([[[100, 100]]] * 3)))

    assert with_pauses(model) is model


@settings(deadline=None)
@given(plans())
def test_counting_pauses_as_work_changes_no_time(plan: Plan) -> None:
    model = by_cause(model_of(plan))

    assert replays_as(model, with_pauses(model))
