"""The quick way for ranks in lockstep gives what the general one gives."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.replay.models import THREE_KINDS, lockstep_plan, model_of
from traceforge.attribute.ledger.one_group import blame_one_group, is_one_group
from traceforge.attribute.ledger.propagation import blame_iteration
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references

shapes = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(2, 5), st.integers(1, 3))


@st.composite
def lockstep_models(draw: st.DrawFn) -> StepModel:
    """Runs in which all meet, awaited at once or not at all, with transfers that differ by rank, perhaps in a queue."""
    shape = draw(shapes)
    work = draw(arrays(np.int64, shape, elements=st.integers(0, 60)))
    plan = lockstep_plan(
        work, start_ns=draw(st.lists(st.integers(0, 30), min_size=shape[2], max_size=shape[2])), kinds=THREE_KINDS
    )
    transfer = draw(arrays(np.int64, shape[:3], elements=st.integers(0, 40)))
    awaited = draw(arrays(np.bool_, shape[:2]))
    places = np.where(awaited, np.arange(shape[1])[None, :], -1)
    model = model_of(replace(plan, transfer_ns=transfer, awaited=np.repeat(places[..., None], shape[2], axis=2)))
    if not draw(st.booleans()):
        return model
    # Some ranks are held back by an earlier collective on their stream, all by the same one.
    before = draw(arrays(np.int64, shape[:2], elements=st.integers(-1, 2)))
    before = np.minimum(before, np.arange(shape[1]) - 1)
    held = draw(arrays(np.bool_, shape[:3]))
    return replace(model, queued=np.where(held, before[..., None], -1))


@settings(max_examples=200, deadline=None)
@given(lockstep_models())
def test_the_quick_way_is_the_general_way(model: StepModel) -> None:
    assert is_one_group(model).all()
    reference = references(model)[int(model.calls[0])]
    communicator = np.broadcast_to(np.arange(model.group.shape[1])[:, None] % 2, model.group.shape)

    found = list(blame_one_group(model, np.arange(len(model.iterations)), reference, communicator))

    assert sorted(np.concatenate([one.iterations for one in found]).tolist()) == list(range(len(model.iterations)))
    for one in found:
        for n, i in enumerate(one.iterations.tolist()):
            slow = blame_iteration(model, i, reference, communicator[i])
            np.testing.assert_allclose(one.work_ns[n], slow.work_ns, atol=1e-6)
            np.testing.assert_allclose(one.transfers_ns[n], slow.transfers_ns, atol=1e-6)
            np.testing.assert_allclose(one.early_ns[n], slow.early_ns, atol=1e-6)


def test_ranks_that_meet_in_groups_are_not_in_lockstep() -> None:
    model = model_of(lockstep_plan(np.full((2, 1, 4), 100), groups=[[0, 0, 1, 1]]))

    assert not is_one_group(model).any()
