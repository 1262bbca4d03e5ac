"""An account that all ranks have in common since they last waited gives what an account for each rank gives."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.examples import examples
from tests.replay.models import THREE_KINDS, lockstep_plan, model_of
from traceforge.attribute.ledger import propagation
from traceforge.attribute.ledger.propagation import Blame, blame_iteration
from traceforge.replay.model import StepModel
from traceforge.replay.reference import references


@st.composite
def runs_in_which_few_do_not_wait(draw: st.DrawFn) -> StepModel:
    """Three places at which all meet, and mostly all wait; transfers differ by rank, starts as well."""
    ranks = draw(st.integers(2, 5))
    work = draw(arrays(np.int64, (2, 4, ranks, 3), elements=st.integers(0, 60)))
    start_ns = draw(st.lists(st.integers(0, 30), min_size=ranks, max_size=ranks))
    plan = lockstep_plan(work, start_ns=start_ns, kinds=THREE_KINDS)
    calls = plan.awaited.shape[1]
    waits = draw(arrays(np.bool_, (2, calls, ranks), elements=st.sampled_from([True, True, True, True, False])))
    transfer = draw(arrays(np.int64, (2, calls, ranks), elements=st.integers(0, 40)))
    model = model_of(replace(plan, awaited=np.where(waits, plan.awaited, -1), transfer_ns=transfer))
    # Some ranks are held back by an earlier collective on their stream.
    before = np.minimum(
        draw(arrays(np.int64, (2, calls, ranks), elements=st.integers(-1, 2))), np.arange(calls)[:, None] - 1
    )
    return replace(model, queued=before) if draw(st.booleans()) else model


@given(runs_in_which_few_do_not_wait())
@examples(60)
def test_who_owns_what_does_not_depend_on_how_accounts_are_kept(model: StepModel) -> None:
    # half of the ranks may have an account of their own beside the common one
    with patch.object(propagation, "_FEW_APART", 2):
        short = _blames(model)
    with patch.object(propagation._DenseFlow, "_is_awaited_by_all", return_value=False):
        long = _blames(model)

    for one, other in zip(short, long, strict=True):
        np.testing.assert_allclose(one.work_ns, other.work_ns, atol=1e-9)
        np.testing.assert_allclose(one.transfers_ns, other.transfers_ns, atol=1e-9)
        np.testing.assert_allclose(one.early_ns, other.early_ns, atol=1e-9)


def _blames(model: StepModel) -> list[Blame]:
    of_length = references(model)
    return [blame_iteration(model, i, of_length[int(calls)]) for i, calls in enumerate(model.calls)]
