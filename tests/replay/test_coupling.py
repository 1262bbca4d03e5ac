"""Couplings: what gets slower where ranks are early. The recorded run stays exact; what changes is worked by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.replay.models import THREE_KINDS, Plan, lockstep_model, lockstep_plan, model_of, plans
from traceforge.replay.coupling import Couplings, more_transfer, with_host_contention, without_host_contention
from traceforge.replay.engine import Arm, Delay, measured, record, replay, replay_arms
from traceforge.replay.policy import Past

strengths = st.floats(0, 9)


@examples(200)
@given(plans(), st.builds(Couplings, strengths, strengths, strengths, strengths), st.data())
def test_whatever_the_couplings_the_recorded_run_is_rebuilt_to_the_nanosecond(
    plan: Plan, couplings: Couplings, data: st.DataObject
) -> None:
    # given any run, on any hosts, and any couplings
    model = model_of(plan)
    hosts = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(model.ranks), max_size=len(model.ranks))))

    # when it is replayed as it was
    again = replay(model, measured(model), couplings=couplings, recorded=record(model, hosts))

    # then every iteration ends on every rank when it did
    np.testing.assert_array_equal(again.end_ns, model.end_ns)


def late_by(rank: int, delay_ns: int, ranks: int = 2) -> Delay:
    """A policy that delays one rank in each iteration."""

    def delay(past: Past) -> np.ndarray:
        del past
        return np.where(np.arange(ranks) == rank, delay_ns, 0)

    return delay


def test_a_transfer_shrinks_with_the_mean_wait_of_its_group() -> None:
    #   rank 0   |100················|transfer 30|      mean wait (0 + 40) / 2 = 20
    #   rank 1   |60········|wait 40·|transfer 30|      of the 30, 0.5 x 20 = 10 are due to it
    model = lockstep_model([[[100, 60]]], transfer_ns=30)

    # when rank 1 comes 40 later, so that nobody waits
    paced = replay(model, measured(model), late_by(1, 40), couplings=Couplings(spread=0.5))

    # then the transfer takes 20
    assert paced.end_ns.tolist() == [[120, 120]]


def test_only_the_spread_within_a_group_counts() -> None:
    # given pairs (0, 1) and (2, 3), of which only the first waits
    model = lockstep_model([[[100, 60, 10, 10]]], transfer_ns=30, groups=[[0, 0, 1, 1]])

    # when rank 1 comes 40 later
    paced = replay(model, measured(model), late_by(1, 40, 4), couplings=Couplings(spread=0.5))

    assert paced.end_ns.tolist() == [[120, 120, 40, 40]]


def test_a_transfer_never_falls_below_nothing() -> None:
    # given a coupling so strong that more than the whole transfer would be due to the wait
    model = lockstep_model([[[100, 60]]], transfer_ns=5)

    paced = replay(model, measured(model), late_by(1, 40), couplings=Couplings(spread=2.0))

    assert paced.end_ns.tolist() == [[100, 100]]


def test_device_work_runs_free_once_nothing_waits_beside_it() -> None:
    #   rank 0   |100·······················|transfer 10|
    #   rank 1   |60·········|wait 40·······|transfer 10|
    #                        |30 under the wait, 20 of them its own at eta = 0.5
    plan = lockstep_plan([[[100, 60]]], transfer_ns=10)
    plan.before_wait_ns[0, 0, 1, 0] = 30
    plan.awaited[:] = -1
    model = model_of(plan)
    assert model.end_ns.tolist() == [[100, 90]]

    # when rank 1 is delayed by 40: nobody waits any more, and the transfer costs nothing
    paced = replay(model, measured(model), late_by(1, 40), couplings=Couplings(waiting=0.5))

    # then its 30 are 20: 40 + 60 + 20
    assert paced.end_ns.tolist() == [[100, 120]]


def test_host_work_is_not_slowed_by_a_waiting_device() -> None:
    plan = lockstep_plan([[[[100, 0, 0], [60, 0, 0]]]], transfer_ns=10, kinds=THREE_KINDS)
    plan.before_wait_ns[0, 0, 1, 1] = 30
    plan.awaited[:] = -1
    model = model_of(plan)

    paced = replay(model, measured(model), late_by(1, 40), couplings=Couplings(waiting=0.5))

    assert paced.end_ns.tolist() == [[100, 130]]


def test_work_before_the_next_arrival_is_slowed_by_the_transfer_under_way() -> None:
    #   both   |100|transfer 40 ........|
    #              |60: 40 under the transfer at half speed (eta = 1), then 20   -> 40 alone
    plan = lockstep_plan([[[100, 100], [60, 60]]], transfer_ns=[[40, 0]])
    plan.awaited[0, 0] = -1
    model = model_of(plan)
    assert model.end_ns.tolist() == [[160, 160]]
    faster = replace(measured(model), transfer_ns=np.zeros_like(model.transfer_ns))

    # when the transfer takes no time
    again = replay(model, faster, couplings=Couplings(transferring=1.0), recorded=record(model))

    assert again.end_ns.tolist() == [[140, 140]]


def test_ranks_of_a_host_are_slowed_by_those_that_wait_there() -> None:
    # given arrivals at 10, 20 and 30 on one host and 30 on another, if nobody slowed anybody down; phi = 0.5
    base, host = np.array([[30.0, 10.0, 20.0, 30.0]]), np.array([0, 0, 0, 1])

    moved = with_host_contention(base, host, np.array([[0.5]]))

    # then the second of the host works 10 at 2/3 of its speed (15), the third the same and then 10 at half (20)
    assert moved.tolist() == [[45.0, 10.0, 25.0, 30.0]]
    assert without_host_contention(moved, host, np.array([[0.5]])) == pytest.approx(base)


def test_without_waiting_neighbours_a_straggler_is_faster() -> None:
    # given ranks 0 and 1 on one host, of which 1 arrives 40 earlier and busy-waits (phi = 1)
    model = lockstep_model([[[100, 60]]], transfer_ns=10)
    recorded = record(model, np.array([0, 0]))

    # when rank 1 comes 20 later, which is when rank 0 would be there alone
    paced = replay(
        model,
        measured(model),
        late_by(1, 20),
        couplings=Couplings(host=1.0),
        recorded=recorded,
    )

    # then nothing slows rank 0 down
    assert paced.end_ns.tolist() == [[90, 90]]


def test_on_another_host_nobody_is_slowed() -> None:
    model = lockstep_model([[[100, 60]]], transfer_ns=10)

    paced = replay(
        model,
        measured(model),
        late_by(1, 20),
        couplings=Couplings(host=1.0),
        recorded=record(model, np.array([0, 1])),
    )

    assert paced.end_ns.tolist() == [[110, 110]]


@examples(50)
@given(plans(), st.lists(st.builds(Couplings, strengths), min_size=1, max_size=3))
def test_arms_replayed_side_by_side_are_what_each_is_alone(plan: Plan, couplings: list[Couplings]) -> None:
    model = model_of(plan)
    delay = late_by(0, 7, len(model.ranks))

    together = replay_arms(model, measured(model), [Arm(delay, one) for one in couplings])

    for one, arm in zip(couplings, together, strict=True):
        alone = replay(model, measured(model), delay, couplings=one)
        np.testing.assert_array_equal(alone.end_ns, arm.end_ns)
        np.testing.assert_array_equal(alone.wait_ns, arm.wait_ns)


def test_variants_of_different_contention_share_one_recorded_run() -> None:
    # given one row of arrivals, and two variants: without contention, and with phi = 1 (half speed beside a waiter)
    host, recorded = np.array([0, 0]), np.array([[100.0, 160.0]])

    # when the contention is taken out of both
    alone = without_host_contention(recorded, host, np.array([[0.0], [1.0]]))

    # then only the second loses half of the 60 ns in which rank 0 waited
    assert alone.tolist() == [[100.0, 160.0], [100.0, 130.0]]


def test_ranks_that_meet_at_different_places_are_not_slowed_by_each_others_waiting() -> None:
    # given two pairs of a host that meet one after the other, as stages of a pipeline do, and a rank that is 500 late
    model = lockstep_model(np.full((3, 2, 4), 100), transfer_ns=10)
    model.group[:, 0, 2:] = model.group[:, 1, :2] = -1
    slower = measured(model)
    slower.before_arrival_ns[1, 0, 0] += 500
    recorded = record(model, np.zeros(4, dtype=np.int64))

    # then who waits there does not follow from arrivals, and the coupling is left out
    alone = replay(model, slower, recorded=recorded)
    coupled = replay(model, slower, couplings=Couplings(host=-0.2), recorded=recorded)
    assert (coupled.end_ns == alone.end_ns).all()


def test_where_waits_make_waits_without_end_transfers_stop_growing_while_a_run_still_adds_up() -> None:
    # given a wait of 30 years, as the thousandth of a run that runs away has, and one of 1 ms
    now = np.array([[1e18, 1e6]])

    more = more_transfer(np.array([[2.0]]), now, np.zeros((1, 2)))

    # then ten million of them are a time that 64 bits hold, and what does not run away is as it was
    assert more.tolist() == [[600 * 10**9, 2 * 10**6]]
    assert int(more.max()) * 10_000_000 < np.iinfo(np.int64).max
