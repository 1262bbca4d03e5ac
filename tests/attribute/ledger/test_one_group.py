"""The quick way for ranks in lockstep gives what the general one gives."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.examples import examples
from tests.replay.models import THREE_KINDS, lockstep_plan, model_of
from traceforge.attribute.ledger.hidden_work import hides_work
from traceforge.attribute.ledger.one_group import blame_one_group, is_one_group
from traceforge.attribute.ledger.propagation import blame_iteration
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references

shapes = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(2, 5), st.integers(1, 3))


@st.composite
def lockstep_models(draw: st.DrawFn) -> StepModel:
    """Runs in which all meet, awaited at once or not at all, with transfers that differ by rank, perhaps in a queue.

    Perhaps ranks go on working before they wait, for no longer than most transfers last.
    """
    shape = draw(shapes)
    work = draw(arrays(np.int64, shape, elements=st.integers(0, 60)))
    plan = lockstep_plan(
        work, start_ns=draw(st.lists(st.integers(0, 30), min_size=shape[2], max_size=shape[2])), kinds=THREE_KINDS
    )
    transfer = draw(arrays(np.int64, shape[:3], elements=st.integers(0, 40)))
    awaited = draw(arrays(np.bool_, shape[:2]))
    places = np.where(awaited, np.arange(shape[1])[None, :], -1)
    plan = replace(plan, transfer_ns=transfer, awaited=np.repeat(places[..., None], shape[2], axis=2))
    if draw(st.booleans()):
        transfer += draw(st.integers(0, 20))
        before_wait = draw(arrays(np.int64, plan.before_wait_ns.shape, elements=st.integers(0, 12)))
        hidden = np.minimum(before_wait, transfer[..., None] // before_wait.shape[3])
        plan.before_wait_ns[:] = np.where(awaited[..., None, None], hidden, before_wait)
    model = model_of(plan)
    if not draw(st.booleans()):
        return model
    # Some ranks are held back by an earlier collective on their stream, all by the same one.
    before = draw(arrays(np.int64, shape[:2], elements=st.integers(-1, 2)))
    before = np.minimum(before, np.arange(shape[1]) - 1)
    held = draw(arrays(np.bool_, shape[:3]))
    return replace(model, queued=np.where(held, before[..., None], -1))


@examples(200)
@given(lockstep_models())
def test_the_quick_way_is_the_general_way(model: StepModel) -> None:
    of_length = references(model)
    one_group = np.flatnonzero(is_one_group(model, hides_work(model, of_length)))
    assert len(one_group) == len(model.iterations) or model.before_wait_ns.any()
    assume(len(one_group))
    reference = of_length[int(model.calls[0])]
    communicator = np.broadcast_to(np.arange(model.group.shape[1])[:, None] % 2, model.group.shape)

    found = list(blame_one_group(model, one_group, reference, communicator))

    assert sorted(np.concatenate([one.iterations for one in found]).tolist()) == one_group.tolist()
    for one in found:
        for n, i in enumerate(one.iterations.tolist()):
            slow = blame_iteration(model, i, reference, communicator[i])
            np.testing.assert_allclose(one.work_ns[n], slow.work_ns, atol=1e-6)
            np.testing.assert_allclose(one.transfers_ns[n], slow.transfers_ns, atol=1e-6)
            np.testing.assert_allclose(one.early_ns[n], slow.early_ns, atol=1e-6)


def test_ranks_that_meet_in_groups_are_not_in_lockstep() -> None:
    model = model_of(lockstep_plan(np.full((2, 1, 4), 100), groups=[[0, 0, 1, 1]]))

    assert not is_one_group(model, hides_work(model, references(model))).any()


def of_work_before_waits(before_wait_ns: list[list[int]], transfer_ns: int = 40) -> list[bool]:
    """Whether iterations of three ranks that meet once, and work on before they wait, are judged in the quick way."""
    plan = lockstep_plan(np.full((len(before_wait_ns), 1, 3), 100), transfer_ns=transfer_ns)
    plan.before_wait_ns[:, 0, :, 0] = before_wait_ns
    model = model_of(plan)
    return is_one_group(model, hides_work(model, references(model))).tolist()


def test_work_that_a_transfer_hides_delays_nobody() -> None:
    assert of_work_before_waits([[0, 0, 0], [0, 39, 0], [40, 0, 0]]) == [True, True, True]


def test_work_that_outlasts_a_transfer_is_left_to_the_general_way() -> None:
    assert of_work_before_waits([[0, 0, 0], [0, 41, 0], [0, 0, 0]]) == [True, False, True]


def test_work_that_usually_outlasts_a_transfer_is_left_to_the_general_way() -> None:
    # given transfers that last 40 ns in most iterations, beside 50 ns of work
    assert of_work_before_waits([[50, 50, 50], [50, 50, 50], [0, 0, 0]]) == [False, False, False]
