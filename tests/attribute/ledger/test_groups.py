"""The quick way for ranks that meet in groups gives what the general one gives."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.replay.models import THREE_KINDS, lockstep_plan, model_of
from traceforge.attribute.delay import owned_ns
from traceforge.attribute.ledger.groups import blame_groups, in_groups
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
    """Runs in groups that change from place to place, awaited at once or not at all; and their communicators."""
    iterations, places, kinds = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    shape = (iterations, places, 8)
    work = draw(arrays(np.int64, (*shape, kinds), elements=st.integers(0, 60)))
    start = draw(st.lists(st.integers(0, 30), min_size=8, max_size=8))
    layout = draw(arrays(np.int64, (iterations if draw(st.booleans()) else 1, places), elements=st.integers(0, 6)))
    group = np.broadcast_to(PARTITIONS[layout], shape).copy()
    awaited = draw(arrays(np.bool_, (1, places, 1)))
    transfer = draw(arrays(np.int64, shape, elements=st.integers(0, 40)))
    waits = np.broadcast_to(np.where(awaited, np.arange(places)[None, :, None], -1), shape).copy()
    plan = replace(
        lockstep_plan(work, start_ns=start, kinds=THREE_KINDS), group=group, transfer_ns=transfer, awaited=waits
    )
    number = np.broadcast_to(layout[..., None] * 4, shape) + group
    communicator = number % draw(st.sampled_from([1, 2, 3, 32]))
    return model_of(plan), communicator


@settings(max_examples=300, deadline=None)
@given(grouped_models())
def test_the_quick_way_in_groups_is_the_general_way(given_run: tuple[StepModel, np.ndarray]) -> None:
    model, communicator = given_run
    assert in_groups(model, communicator).all()
    reference = references(model)[int(model.calls[0])]

    found = list(blame_groups(model, np.arange(len(model.iterations)), reference, communicator))

    assert np.concatenate([one.iterations for one in found]).tolist() == list(range(len(model.iterations)))
    for one in found:
        for n, i in enumerate(one.iterations.tolist()):
            slow = blame_iteration(model, i, reference, communicator[i])
            np.testing.assert_allclose(one.work_ns[n], slow.work_ns, atol=1e-6)
            columns = len(slow.transfers_ns)
            np.testing.assert_allclose(one.transfers_ns[n, :columns], slow.transfers_ns, atol=1e-6)
            assert not one.transfers_ns[n, columns:].any()
            np.testing.assert_allclose(one.early_ns[n], slow.early_ns, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(grouped_models())
def test_what_all_own_in_groups_is_what_the_run_took_above_its_reference(
    given_run: tuple[StepModel, np.ndarray],
) -> None:
    model, communicator = given_run
    run = LedgerInput(model, tuple(range(int(communicator.max()) + 1)), communicator)
    of_length = references(model)

    for i, owned in enumerate(owned_ns(run, of_length)):
        slow = blame_iteration(model, i, of_length[int(model.calls[i])], communicator[i])
        np.testing.assert_allclose(owned.sum(), slow.excess_ns, atol=1e-6)


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


def test_a_rank_that_waits_while_the_others_go_on_is_left_to_the_general_way() -> None:
    plan = lockstep_plan(np.full((2, 2, 4), 100), groups=[[0, 0, 1, 1], [0, 1, 0, 1]])
    assert in_groups(model_of(plan), np.zeros(plan.group.shape, dtype=np.int64)).all()
    plan.awaited[1, 0, 2] = -1

    assert in_groups(model_of(plan), np.zeros(plan.group.shape, dtype=np.int64)).tolist() == [True, False]
