"""The quick way for ranks that meet in groups gives what the general one gives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.attribute.jobs import excess_of
from tests.examples import examples
from tests.replay.models import THREE_KINDS, Plan, lockstep_plan, model_of
from traceforge.attribute.ledger.blame_of_run import owned_ns
from traceforge.attribute.ledger.group_waits import in_groups
from traceforge.attribute.ledger.groups import blame_groups
from traceforge.attribute.ledger.hidden_work import hides_work
from traceforge.attribute.ledger.ledger_input import LedgerInput
from traceforge.attribute.ledger.propagation import blame_iteration
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references

# Partitions of eight ranks: all, tensor and data parallel, pairs, uneven groups, and one that crosses the others.
PARTITIONS = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 1, 1],
        [0, 1, 2, 3, 0, 1, 2, 3],
        [0, 0, 1, 1, 2, 2, 3, 3],
        [0, 1, 0, 1, 2, 3, 2, 3],
        [0, 0, 0, 1, 1, 1, 1, 1],
        [0, 1, 1, 0, 0, 2, 2, 0],
    ]
)


@st.composite
def grouped_models(draw: st.DrawFn) -> tuple[StepModel, np.ndarray]:
    """Runs in groups that change from place to place, awaited at once or not at all; and their communicators.

    Durations are dense, since what groups have in common beyond their accounts shows only where nearly all are late.
    """
    iterations, places, kinds = draw(st.integers(1, 4)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    shape, most = (iterations, places, 8), draw(st.sampled_from([3, 60]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    work = rng.integers(0, most, (*shape, kinds))
    start = draw(st.lists(st.integers(0, 30), min_size=8, max_size=8))
    layout = draw(arrays(np.int64, (iterations if draw(st.booleans()) else 1, places), elements=st.integers(0, 6)))
    group = np.broadcast_to(PARTITIONS[layout], shape).copy()
    awaited = draw(arrays(np.bool_, (1, places, 1)))
    transfer = rng.integers(0, most, shape) * draw(st.booleans())
    waits = np.broadcast_to(np.where(awaited, np.arange(places)[None, :, None], -1), shape).copy()
    plan = replace(
        lockstep_plan(work, start_ns=start, kinds=THREE_KINDS), group=group, transfer_ns=transfer, awaited=waits
    )
    if draw(st.booleans()):
        # Ranks go on working before they wait, for no longer than transfers last.
        before_wait = rng.integers(0, most // 3 + 1, plan.before_wait_ns.shape) * draw(st.sampled_from([0, 1]))
        transfer += draw(st.integers(0, most))
        hidden = np.minimum(before_wait, transfer[..., None] // kinds)
        plan.before_wait_ns[:] = np.where(awaited[..., None], hidden, before_wait)
    number = np.broadcast_to(layout[..., None] * 4, shape) + group
    communicator = number % draw(st.sampled_from([1, 2, 3, 32]))
    return model_of(plan), communicator


def assert_is_the_general_way(model: StepModel, communicator: np.ndarray) -> None:
    reference = references(model)[int(model.calls[0])]

    rows = np.flatnonzero(in_groups(model, communicator, hides_work(model, references(model))))

    found = list(blame_groups(model, rows, reference, communicator))

    assert np.concatenate([one.iterations for one in found]).tolist() == rows.tolist()
    for one in found:
        for n, i in enumerate(one.iterations.tolist()):
            slow = blame_iteration(model, i, reference, communicator[i])
            np.testing.assert_allclose(one.work_ns[n], slow.work_ns, atol=1e-6)
            columns = len(slow.transfers_ns)
            np.testing.assert_allclose(one.transfers_ns[n, :columns], slow.transfers_ns, atol=1e-6)
            assert not one.transfers_ns[n, columns:].any()
            np.testing.assert_allclose(one.early_ns[n], slow.early_ns, atol=1e-6)


@examples(150)
@given(grouped_models())
def test_the_quick_way_in_groups_is_the_general_way(given_run: tuple[StepModel, np.ndarray]) -> None:
    model, communicator = given_run

    rows = in_groups(model, communicator, hides_work(model, references(model)))
    assert rows.all() or model.before_wait_ns.any()
    assume(rows.any())
    assert_is_the_general_way(model, communicator)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_where_each_half_of_the_ranks_has_accounts_of_its_own(seed: int) -> None:
    # given halves that never meet, and in each of them pairs that cross, so that ranks are alone with their account
    layout = [1, 1, 4, 3, 4]
    rng = np.random.default_rng(seed)
    group = np.broadcast_to(PARTITIONS[layout], (4, 5, 8)).copy()
    plan = replace(lockstep_plan(rng.integers(0, 3, (4, 5, 8)), transfer_ns=0), group=group)

    assert_is_the_general_way(model_of(plan), np.zeros(group.shape, dtype=np.int64))


@examples(50)
@given(grouped_models())
def test_what_all_own_in_groups_is_what_the_run_took_above_its_reference(
    given_run: tuple[StepModel, np.ndarray],
) -> None:
    model, communicator = given_run
    run = LedgerInput(model, tuple(range(int(communicator.max()) + 1)), communicator)
    of_length = references(model)

    for i, owned in enumerate(owned_ns(run, of_length)):
        slow = blame_iteration(model, i, of_length[int(model.calls[i])], communicator[i])
        np.testing.assert_allclose(owned.sum(), excess_of(slow), atol=1e-6)


def test_rounding_does_not_grow_over_many_meetings() -> None:
    # given 32 ranks that meet a hundred times, in tensor-parallel and data-parallel groups by turns
    rng = np.random.default_rng(0)
    tensor, data = np.arange(32) // 4, np.arange(32) % 4
    work = rng.normal(1_000_000, 30_000, (2, 100, 32)).astype(np.int64)
    plan = lockstep_plan(work, groups=[(tensor, data)[place % 2].tolist() for place in range(100)])
    model = model_of(replace(plan, transfer_ns=300_000 + rng.exponential(2_000, work.shape).astype(np.int64)))
    communicator = np.where(np.arange(100)[:, None] % 2 == 0, tensor, 8 + data)
    run = LedgerInput(model, tuple(range(12)), np.broadcast_to(communicator, work.shape))
    reference = references(model)

    owned = owned_ns(run, reference)

    # then what all own is still what each iteration took above its reference
    expected = sum(durations.sum() for durations in (reference[100].before_arrival_ns, reference[100].transfer_ns))
    took = model.end_ns.max(axis=1) - model.start_ns.max(axis=1)
    np.testing.assert_allclose(owned.sum(axis=1), took - expected, atol=1e-6)
    slow = blame_iteration(model, 1, reference[100], communicator)
    np.testing.assert_allclose(owned[1, :32], slow.work_ns[:, 0], atol=1e-6)


def plan_of_pairs() -> Plan:
    """Two iterations of four ranks that meet in pairs, and then in the other pairs."""
    return lockstep_plan(np.full((2, 2, 4), 100), groups=[[0, 0, 1, 1], [0, 1, 0, 1]])


def are_in_groups(plan: Plan, communicator: int = 0) -> list[bool]:
    """Of each iteration; `communicator` is that of rank 0 in the first place of the second, of all others 0."""
    own = np.zeros(plan.group.shape, dtype=np.int64)
    own[1, 0, 0] = communicator
    model = model_of(plan)
    return in_groups(model, own, hides_work(model, references(model))).tolist()


def test_ranks_that_all_wait_at_once_in_pairs_are_in_groups() -> None:
    assert are_in_groups(plan_of_pairs()) == [True, True]


def test_a_rank_that_waits_while_the_others_go_on_is_left_to_the_general_way() -> None:
    plan = plan_of_pairs()
    plan.awaited[1, 0, 2] = -1

    assert are_in_groups(plan) == [True, False]


def test_work_that_outlasts_the_transfer_it_hides_behind_is_left_to_the_general_way() -> None:
    plan = plan_of_pairs()
    plan.before_wait_ns[1, 0, 2] = plan.transfer_ns[1, 0, 2]

    assert are_in_groups(plan) == [True, True]

    plan.before_wait_ns[1, 0, 2] += 1

    assert are_in_groups(plan) == [True, False]


def test_a_transfer_that_clocks_make_negative_is_left_to_the_general_way() -> None:
    plan = plan_of_pairs()
    plan.transfer_ns[1, 0, 2] = -5

    assert are_in_groups(plan) == [True, False]


def test_a_rank_that_meets_nobody_is_left_to_the_general_way() -> None:
    plan = plan_of_pairs()
    plan.group[1, 0] = [0, 0, 1, 2]

    assert are_in_groups(plan) == [True, False]


def test_a_pair_of_two_communicators_is_left_to_the_general_way() -> None:
    assert are_in_groups(plan_of_pairs(), communicator=1) == [True, False]


def test_a_collective_that_a_busy_stream_holds_back_is_left_to_the_general_way() -> None:
    plain = model_of(plan_of_pairs())
    queued = np.full(plain.group.shape, -1)
    queued[1, 1, 0] = 0
    model = replace(plain, queued=queued)

    found = in_groups(model, np.zeros(model.group.shape, dtype=np.int64), hides_work(model, references(model)))

    assert found.tolist() == [True, False]
