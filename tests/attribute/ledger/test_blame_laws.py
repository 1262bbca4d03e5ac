"""What holds for the blame of any run, whatever its groups, overlaps and delays."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.attribute.jobs import excess_of, late_by
from tests.examples import examples
from tests.replay.models import (
    THREE_KINDS,
    Plan,
    lockstep_model,
    lockstep_plan,
    model_of,
    plans,
    times_scaled,
    with_ranks_permuted,
)
from traceforge.attribute.ledger.propagation import Blame, blame_iteration, reference_around_waits
from traceforge.attribute.ledger.shapley import share_lateness
from traceforge.replay.model import StepModel
from traceforge.replay.reference import Reference, references
from traceforge.replay.reference_rule import ReferenceRule

often = examples(150)


def blames(model: StepModel) -> list[Blame]:
    found = references(model)
    return [blame_iteration(model, i, found[calls]) for i, calls in enumerate(model.calls.tolist())]


def reference_time_ns(model: StepModel, i: int, reference: Reference) -> float:
    """How long iteration `i` takes at reference durations, started as it was: simulated in quarters of a ns."""
    calls = int(model.calls[i])
    places, ranks, kinds = model.group.shape[1], len(model.ranks), len(model.kinds)
    plan = Plan(
        calls=model.calls[i : i + 1],
        group=model.group[i : i + 1],
        awaited=model.awaited[i : i + 1],
        transfer_ns=np.zeros((1, places, ranks), dtype=np.int64),
        before_arrival_ns=np.zeros((1, places + 1, ranks, kinds), dtype=np.int64),
        before_wait_ns=np.zeros((1, places, ranks, kinds), dtype=np.int64),
        first_start_ns=4 * (model.start_ns[i] - model.start_ns[i].max()),
        pause_ns=np.zeros((0, ranks), dtype=np.int64),
        kinds=model.kinds,
    )
    plan.transfer_ns[0, :calls] = 4 * reference.transfer_ns[:, None]
    divided = reference_around_waits(model, i, reference)
    plan.before_arrival_ns[0, : calls + 1] = 4 * divided.before_arrival_ns
    plan.before_wait_ns[0, :calls] = 4 * divided.before_wait_ns
    return float(model_of(plan).end_ns.max()) / 4


@often
@given(plans(), st.sampled_from(ReferenceRule))
def test_blame_adds_up_to_the_time_above_the_reference(plan: Plan, rule: ReferenceRule) -> None:
    # given any run, and any rule of what is on time
    model = replace(model_of(plan), rule=rule)

    # then what all owners have together is what the iteration took, less what it takes at reference durations
    for i, blame in enumerate(blames(model)):
        took = model.end_ns[i].max() - model.start_ns[i].max()
        expected = took - reference_time_ns(model, i, references(model)[int(model.calls[i])])
        assert excess_of(blame) == pytest.approx(expected, abs=1e-6)


@often
@given(plans(), st.data())
def test_numbering_the_ranks_otherwise_renumbers_the_owners(plan: Plan, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(plan.group.shape[2])))

    for blame, renamed in zip(blames(model_of(plan)), blames(model_of(with_ranks_permuted(plan, order))), strict=True):
        np.testing.assert_allclose(renamed.work_ns, blame.work_ns[order], atol=1e-6)
        assert renamed.transfers_ns.sum() == pytest.approx(blame.transfers_ns.sum(), abs=1e-6)
        assert renamed.early_ns == pytest.approx(blame.early_ns, abs=1e-6)


@often
@given(plans())
def test_ten_times_the_time_is_ten_times_the_blame(plan: Plan) -> None:
    for blame, scaled in zip(blames(model_of(plan)), blames(model_of(times_scaled(plan, 10))), strict=True):
        np.testing.assert_allclose(scaled.work_ns, 10 * blame.work_ns, atol=1e-5)
        assert scaled.transfers_ns.sum() == pytest.approx(10 * blame.transfers_ns.sum(), abs=1e-5)
        assert scaled.early_ns == pytest.approx(10 * blame.early_ns, abs=1e-5)


@often
@given(plans())
def test_a_rank_that_is_nowhere_slower_than_the_reference_owns_no_delay(plan: Plan) -> None:
    model = model_of(plan)
    for i, blame in enumerate(blames(model)):
        calls = int(model.calls[i])
        reference = references(model)[calls]
        slower = (model.before_arrival_ns[i, : calls + 1] > reference.before_arrival_ns[:, None]).any(axis=(0, 2))
        slower |= (model.before_wait_ns[i, :calls] > reference.before_wait_ns[:, None]).any(axis=(0, 2))

        assert (blame.work_ns[~slower] <= 1e-9).all()


@st.composite
def ideal_plans(draw: st.DrawFn) -> Plan:
    """Runs in which every place takes the same on all ranks in all iterations, whatever waits for what."""
    plan = draw(plans(equal_starts=True))
    same_group, same_awaited = (np.broadcast_to(array[:1], array.shape).copy() for array in (plan.group, plan.awaited))
    times = (plan.transfer_ns, plan.before_arrival_ns, plan.before_wait_ns)
    transfer, before_arrival, before_wait = (np.broadcast_to(t[:1, :, :1], t.shape).copy() for t in times)
    return replace(
        plan,
        calls=np.full_like(plan.calls, plan.calls[0]),
        group=same_group,
        awaited=same_awaited,
        transfer_ns=transfer,
        before_arrival_ns=before_arrival,
        before_wait_ns=before_wait,
    )


@often
@given(ideal_plans())
def test_a_run_in_which_nothing_varies_owes_nothing(plan: Plan) -> None:
    for blame in blames(model_of(plan)):
        assert late_by(blame) == {}
        assert (blame.transfers_ns.sum(), blame.early_ns) == (0, 0)


def test_ranks_that_regularly_begin_an_iteration_before_the_others_are_not_early() -> None:
    # given a run in which nothing varies; rank 0 alone meets nobody at first, and rank 1 alone waits for the others
    #   rank 0   |t 1|meets the others|
    #   rank 1   |meets the others|w 2|t 1|
    #   rank 2   |meets the others|             it begins the next iteration first
    plan = lockstep_plan(np.zeros((3, 2, 3)), transfer_ns=1, groups=[[0, 1, 1], [1, 1, 1]])
    plan.awaited[:] = [[0, -1, -1], [-1, 1, -1]]
    model = model_of(plan)
    assert model.start_ns[1].tolist() == [1, 2, 0]

    # then no iteration owes anything, although the second takes less than the first
    assert [excess_of(blame) for blame in blames(model)] == [0, 0, 0]


@often
@given(ideal_plans(), st.data())
def test_a_single_delay_anywhere_owns_the_whole_excess(plan: Plan, data: st.DataObject) -> None:
    # given a run in which nothing varies but one piece of work of one rank
    before = model_of(plan)
    calls, ranks, kinds = int(plan.calls[0]), plan.group.shape[2], len(plan.kinds)
    reference = references(before)[calls]
    place, rank = data.draw(st.integers(0, calls)), data.draw(st.integers(0, ranks - 1))
    kind, amount = data.draw(st.integers(0, kinds - 1)), data.draw(st.integers(1, 500))
    plan.before_arrival_ns[0, place, rank, kind] += amount
    after = model_of(plan)

    # then what the iteration takes longer is that work's, and nobody else's
    blame = blame_iteration(after, 0, reference)
    longer = float(after.end_ns[0].max() - before.end_ns[0].max())
    assert excess_of(blame) == pytest.approx(longer, abs=1e-9)
    assert late_by(blame) == pytest.approx({(rank, kind): longer} if longer else {}, abs=1e-9)


@often
@given(
    arrays(np.int64, st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(2, 5)), elements=st.integers(0, 90))
)
def test_a_chain_of_meetings_adds_up_meeting_by_meeting(work_ns: np.ndarray) -> None:
    # given ranks that all meet, wait, and go on together
    model = lockstep_model(work_ns)
    reference = references(model)[work_ns.shape[1]]

    # then each meeting's lateness is shared among those that were late to it, or credited to all where none was
    for i, blame in enumerate(blames(model)):
        late = work_ns[i] - reference.before_arrival_ns[:-1]
        shares = sum(share_lateness(np.maximum(0.0, meeting)) for meeting in late)
        np.testing.assert_allclose(blame.work_ns[:, 0], shares, atol=1e-6)
        assert blame.early_ns == pytest.approx(np.minimum(0.0, late.max(axis=1)).sum(), abs=1e-6)


def fastest(plan: Plan) -> Reference:
    """The best time of each place as its reference, so that nothing is ever early."""
    calls = int(plan.calls[0])
    return Reference(
        plan.before_arrival_ns[0, : calls + 1].min(axis=1).astype(np.float64),
        plan.before_wait_ns[0, :calls].min(axis=1).astype(np.float64),
        plan.transfer_ns[0, :calls].min(axis=1).astype(np.float64),
    )


@often
@given(plans(equal_starts=True), st.data())
def test_slower_work_never_loses_blame(plan: Plan, data: st.DataObject) -> None:
    # given any iteration held against the best times, and the same with one piece of work slower
    reference = fastest(plan)
    place = data.draw(st.integers(0, int(plan.calls[0])))
    rank = data.draw(st.integers(0, plan.group.shape[2] - 1))
    kind, amount = data.draw(st.integers(0, len(plan.kinds) - 1)), data.draw(st.integers(1, 60))
    before = blame_iteration(model_of(plan), 0, reference).work_ns[rank, kind]
    plan.before_arrival_ns[0, place, rank, kind] += amount

    # then its owner has at least what it had
    assert blame_iteration(model_of(plan), 0, reference).work_ns[rank, kind] >= before - 1e-6


@often
@given(plans(equal_starts=True))
def test_where_nothing_is_early_nobody_has_a_credit(plan: Plan) -> None:
    blame = blame_iteration(model_of(plan), 0, fastest(plan))

    assert (blame.work_ns >= -1e-9).all()
    assert blame.transfers_ns.sum() >= -1e-9


@often
@given(plans(), st.data())
def test_one_nanosecond_moves_blame_by_a_few_at_most(plan: Plan, data: st.DataObject) -> None:
    # given any run, and one piece of work of its first iteration one ns longer; references as they were
    model = model_of(plan)
    reference = references(model)[int(plan.calls[0])]
    place = data.draw(st.integers(0, int(plan.calls[0])))
    rank = data.draw(st.integers(0, plan.group.shape[2] - 1))
    kind = data.draw(st.integers(0, len(plan.kinds) - 1))
    before = blame_iteration(model, 0, reference).work_ns
    plan.before_arrival_ns[0, place, rank, kind] += 1

    # then no owner's part jumps
    after = blame_iteration(model_of(plan), 0, reference).work_ns
    assert np.abs(after - before).max() <= 3


def test_a_straggler_among_noise_is_not_diluted_by_the_number_of_meetings() -> None:
    # given 16 ranks whose work varies by 10 about 1000, one of which takes 50 more at each of 40 meetings
    rng = np.random.default_rng(0)
    work = np.rint(rng.normal(1_000, 10, (5, 40, 16))).astype(np.int64)
    work[:, :, 3] += 50
    model = lockstep_model(work)

    # then it owns at least what it would own if each meeting were judged alone
    late = work[2] - references(model)[40].before_arrival_ns[:-1]
    alone = sum(float(share_lateness(np.maximum(0.0, meeting))[3]) for meeting in late)
    assert blames(model)[2].work_ns[3, 0] == pytest.approx(alone)
    assert alone > 0.7 * excess_of(blames(model)[2])


def test_kinds_that_nobody_does_change_nothing() -> None:
    # given the same work, told with one kind and with three
    work = np.full((3, 2, 3), 100)
    work[1, 1, 2] += 30
    padded = np.concatenate([work[..., None], np.zeros((3, 2, 3, 2), dtype=np.int64)], axis=3)

    one, three = model_of(lockstep_plan(work)), model_of(lockstep_plan(padded, kinds=THREE_KINDS))

    for plain, rich in zip(blames(one), blames(three), strict=True):
        np.testing.assert_array_equal(rich.work_ns[:, 0], plain.work_ns[:, 0])
        assert not rich.work_ns[:, 1:].any()
