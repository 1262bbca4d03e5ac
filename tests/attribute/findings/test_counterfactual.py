"""What fixing things would gain, what they cost together and alone, worked by hand; it is not the ledger's share."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.replay.models import THREE_KINDS, Plan, lockstep_model, lockstep_plan, model_of, plans
from traceforge.attribute.cause import causes
from traceforge.attribute.findings.counterfactual import BlamedTime, Counterfactual, blamed_transfers, blamed_work
from traceforge.attribute.ledger.ledger_input import by_cause
from traceforge.replay.coupling import Couplings
from traceforge.replay.model import StepModel


def gain_without(model: StepModel, source: BlamedTime) -> float:
    replays = Counterfactual(model)
    before, after = float(replays.without_ns([]).sum()), float(replays.without_ns([source]).sum())
    return (before - after) / max(after, 1.0)


def gain_without_work_excess(model: StepModel, cause: str, rank_places: Sequence[int]) -> float:
    return gain_without(model, blamed_work(model, cause, rank_places))


def gain_without_transfer_excess(model: StepModel) -> float:
    return gain_without(model, blamed_transfers(model))


def test_a_lone_straggler_gains_all_it_costs() -> None:
    # given 100, 100, 140 and a transfer of 10: 150 an iteration, 110 without the straggler's 40
    model = lockstep_model([[[100, 100, 140]]] * 4, transfer_ns=10)

    assert gain_without_work_excess(by_cause(model), "slow_compute", [2]) == pytest.approx(150 / 110 - 1)


def test_behind_a_straggler_the_next_one_takes_its_place() -> None:
    # given 100, 100, 100, 130, 140: fixing the last rank leaves the one before it
    model = lockstep_model([[[100, 100, 100, 130, 140]]] * 4, transfer_ns=10)

    assert gain_without_work_excess(by_cause(model), "slow_compute", [4]) == pytest.approx(150 / 140 - 1)


def test_fixing_a_rank_that_hides_behind_another_gains_nothing() -> None:
    model = lockstep_model([[[100, 100, 100, 130, 140]]] * 4, transfer_ns=10)

    assert gain_without_work_excess(by_cause(model), "slow_compute", [3]) == 0


def test_work_that_is_divided_unevenly_is_held_against_an_even_division() -> None:
    # given 400 of work in each iteration, divided anew over four ranks: 70, 90, 110 and 130, in turns
    parts = [70, 90, 110, 130]
    model = by_cause(
        lockstep_model([[[parts[(i + rank) % 4] for rank in range(4)]] for i in range(12)], transfer_ns=10)
    )

    # then divided evenly the last rank would have 100; the lower median of ranks would have been 90
    source = blamed_work(model, "slow_compute", range(4), in_turns=True)
    assert gain_without(model, source) == pytest.approx(140 / 110 - 1)


def test_what_ranks_lose_now_and_then_in_turns_is_held_against_what_they_take_else() -> None:
    # given 100 of work, and 40 more on one of four ranks, in turns
    model = by_cause(
        lockstep_model([[[140 if rank == i % 4 else 100 for rank in range(4)]] for i in range(12)], transfer_ns=10)
    )

    # then the mean, 110, would be no iteration's pace
    source = blamed_work(model, "slow_compute", range(4), in_turns=True)
    assert gain_without(model, source) == pytest.approx(150 / 110 - 1)


def test_what_all_ranks_lose_at_one_place_or_another_is_no_uneven_division() -> None:
    # given 10 of work at each of four places, and 38, 40 or 42 more at one of them: on each of four ranks another one
    lost = [38, 42, 40, 40]
    work = [
        [[10 + (lost[(i + rank) % 4] if place == (i + rank) % 4 else 0) for rank in range(4)] for place in range(4)]
        for i in range(12)
    ]
    model = by_cause(lockstep_model(work, transfer_ns=1))

    blamed = blamed_work(model, "slow_compute", range(4), in_turns=True)

    # then all of it is blamed, for without it no place takes more than 10
    assert Counterfactual(model).without_ns([blamed]).tolist() == [4.0 * 11] * 12


def test_of_ranks_that_are_struck_in_turns_the_noise_of_the_others_stays() -> None:
    # given 40 more on one rank after the other, and noise of 2 more or less on the other three
    noise = [[-2, 0, 2], [2, -2, 0], [0, 2, -2], [2, 0, -2]]
    work = [[100 + one for one in noise[i % 4]] for i in range(12)]
    for i, of_iteration in enumerate(work):
        of_iteration.insert(i % 4, 140)
    model = by_cause(lockstep_model([[one] for one in work], transfer_ns=10))

    blamed = blamed_work(model, "slow_compute", range(4), in_turns=True)

    # then only the struck rank is blamed, by what it takes above the usual 100: the others' 102 stay
    assert sorted(blamed.before_arrival_ns[0].sum(axis=0).tolist()) == [0, 0, 0, 40]
    assert Counterfactual(model).without_ns([blamed]).tolist() == [112.0] * 12


def test_in_steps_that_vary_alike_a_rank_is_held_against_its_peers_of_the_same_step() -> None:
    # given steps of 80, 100 and 120 in turns for all of four ranks, of which the last takes a tenth longer
    steps = [80, 100, 120] * 4
    model = by_cause(lockstep_model([[[step, step, step, step * 11 // 10]] for step in steps], transfer_ns=10))

    # then without its 8, 10 and 12 an iteration takes 110 in place of 120; against the usual step it would be
    # 0, 10 and 32, of which the peers' own time hides some
    source = blamed_work(model, "slow_compute", [3])
    assert source.rank_seconds_ns().tolist() == [8, 10, 12] * 4
    assert gain_without(model, source) == pytest.approx(120 / 110 - 1)


def test_a_peer_that_varies_on_its_own_does_not_move_the_reference() -> None:
    # given a rank whose work is 90 and 110 in turns, and another one that always takes 140
    model = by_cause(lockstep_model([[[90 + 20 * (i % 2), 140]] for i in range(12)]))

    # then the reference is the lower of two ranks' medians, 90, in all iterations
    assert blamed_work(model, "slow_compute", [1]).rank_seconds_ns().tolist() == [50] * 12


def test_only_the_cause_that_is_fixed_goes_away() -> None:
    # given a rank that is late by 30 of compute and 10 of input: 150 an iteration, 120 without the compute
    work = np.full((4, 1, 3, 2), 50)
    work[:, 0, 2] += [30, 10]
    model = lockstep_model(work, transfer_ns=10, kinds=THREE_KINDS)

    assert gain_without_work_excess(by_cause(model), "slow_compute", [2]) == pytest.approx(150 / 120 - 1)
    assert gain_without_work_excess(by_cause(model), "input_stall", [2]) == pytest.approx(150 / 140 - 1)


def test_without_slow_transfers_only_their_excess_goes_away() -> None:
    # given transfers of 10, 10, 10, 90 after 100 of compute: 520 in all, 440 at the first quartile
    model = lockstep_model([[[100, 100]]] * 4, transfer_ns=[[10], [10], [10], [90]])

    assert gain_without_transfer_excess(model) == pytest.approx(520 / 440 - 1)


@examples(50)
@given(plans(), st.data())
def test_fixing_anything_never_costs(plan: Plan, data: st.DataObject) -> None:
    model = model_of(plan)
    rank = data.draw(st.integers(0, len(model.ranks) - 1))
    cause = data.draw(st.sampled_from(list(causes())))
    if model.end_ns[-1].max() <= model.start_ns[0].max():
        return  # a run of no length has no throughput

    assert gain_without_work_excess(by_cause(model), cause, [rank]) >= 0
    assert gain_without_transfer_excess(model) >= 0


def test_two_findings_that_hide_each_other_share_what_fixing_both_saves() -> None:
    # given 100, 140 by compute, 130 by input: 150 an iteration; 140 without the first, 150 without the second, 110
    # without both
    work = np.zeros((4, 1, 3, 2))
    work[:, 0] = [[100, 0], [140, 0], [100, 30]]
    model = by_cause(lockstep_model(work, transfer_ns=10, kinds=THREE_KINDS))
    straggler, stall = blamed_work(model, "slow_compute", [1]), blamed_work(model, "input_stall", [2])

    costs = Counterfactual(model).costs_ns([straggler, stall])

    # the straggler saves 10 with the stall there and 40 without, the stall nothing and 30
    assert costs.tolist() == [[25.0] * 4, [15.0] * 4]


def test_alone_each_would_cost_all_of_it() -> None:
    work = np.zeros((4, 1, 3, 2))
    work[:, 0] = [[100, 0], [140, 0], [100, 30]]
    model = by_cause(lockstep_model(work, transfer_ns=10, kinds=THREE_KINDS))
    replays = Counterfactual(model)

    assert replays.isolated_cost_ns(blamed_work(model, "slow_compute", [1])).tolist() == [40.0] * 4
    assert replays.isolated_cost_ns(blamed_work(model, "input_stall", [2])).tolist() == [30.0] * 4


def test_what_a_rank_loses_here_and_gains_there_is_no_excess() -> None:
    # given places of 100 each, and rank 2 that takes 140 at the first and 80 at the second: 20 above in sum
    model = by_cause(lockstep_model([[[100, 100, 140], [100, 100, 80]]] * 4, transfer_ns=10))

    source = blamed_work(model, "slow_compute", [2])

    assert source.rank_seconds_ns().tolist() == [20.0] * 4


def test_transfers_are_compared_with_those_that_are_not_blamed() -> None:
    # given transfers of 10, and of 90 in the last two of ten iterations
    model = lockstep_model([[[100, 100]]] * 10, transfer_ns=[[10]] * 8 + [[90]] * 2)

    source = blamed_transfers(model, None, [8, 9])

    assert Counterfactual(model).costs_ns([source]).tolist() == [[0.0] * 8 + [80.0] * 2]


def test_where_waiting_slows_transfers_down_fixing_a_straggler_saves_that_too() -> None:
    # given a straggler by 40 of two ranks: a mean wait of 20, and transfers that grow by half of it
    model = by_cause(lockstep_model([[[100, 140]]] * 4, transfer_ns=30))
    straggler = blamed_work(model, "slow_compute", [1])

    assert Counterfactual(model, Couplings(spread=0.5)).costs_ns([straggler]).tolist() == [[50.0] * 4]


@examples(25)
@given(plans(), st.data())
def test_costs_add_up_to_what_fixing_everything_saves(plan: Plan, data: st.DataObject) -> None:
    model = by_cause(model_of(plan))
    names = [name for name, _ in model.kinds]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    sources = [blamed_work(model, name, [0]) for name in chosen]
    replays = Counterfactual(model)

    total = replays.costs_ns(sources).sum(axis=0)

    assert total == pytest.approx(replays.without_ns([]) - replays.without_ns(sources))


def test_where_transfers_slow_kernels_down_fixing_them_saves_that_too() -> None:
    # given eight iterations with a transfer of 20 beside 50 of compute, and two where it takes 100, at half speed:
    #   both   |100|transfer 20 ··|                     both   |100|transfer 100 ··············|
    #              |10 in 20, then 40|                             |50 in 100 ·················|
    stretch = [100 if i >= 8 else 60 for i in range(10)]
    plan = lockstep_plan(
        [[[100, 100], [own, own]] for own in stretch], transfer_ns=[[100 if i >= 8 else 20, 0] for i in range(10)]
    )
    plan.awaited[:, 0] = -1
    model = by_cause(model_of(plan))
    slow = blamed_transfers(model, None, [8, 9])

    assert Counterfactual(model).costs_ns([slow]).tolist() == [[0.0] * 10]
    assert Counterfactual(model, Couplings(transferring=1.0)).costs_ns([slow]).tolist() == [[0.0] * 8 + [40.0] * 2]
