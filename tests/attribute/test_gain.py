"""What fixing one thing would gain, worked by hand; it is not that thing's share of the ledger."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.models import THREE_KINDS, Plan, lockstep_model, model_of, plans
from traceforge.attribute.booking import by_cause
from traceforge.attribute.cause import causes
from traceforge.attribute.gain import gain_without_transfer_excess, gain_without_work_excess


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


@settings(max_examples=50, deadline=None)
@given(plans(), st.data())
def test_fixing_anything_never_costs(plan: Plan, data: st.DataObject) -> None:
    model = model_of(plan)
    rank = data.draw(st.integers(0, len(model.ranks) - 1))
    cause = data.draw(st.sampled_from(list(causes())))
    if model.end_ns[-1].max() <= model.start_ns[0].min():
        return  # a run of no length has no throughput

    assert gain_without_work_excess(by_cause(model), cause, [rank]) >= 0
    assert gain_without_transfer_excess(model) >= 0
