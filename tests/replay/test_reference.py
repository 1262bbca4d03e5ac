"""Reference durations: what the same place of the program takes when nothing is late."""

from dataclasses import replace

import numpy as np
import pytest

from tests.replay.models import THREE_KINDS, lockstep_model, lockstep_plan, model_of
from traceforge.replay.reference import clean_transfers, nth, references
from traceforge.replay.reference_rule import ReferenceRule

_KINDS = (("compute", None), ("input", None), ("launching", None))


def test_work_is_held_against_the_lower_median_over_ranks_of_their_medians_at_the_same_place() -> None:
    # given two iterations of three ranks; at the first place 10 and 40, 20 and 50, 30 and 60, at the second always 7
    model = lockstep_model([[[10, 20, 30], [7, 7, 7]], [[40, 50, 60], [7, 7, 7]]])

    # then the references are 20, the middle one of the ranks' lower medians, and 7, and nothing for the tail
    assert references(model)[2].before_arrival_ns[:, 0].tolist() == [20, 7, 0]


def test_half_of_the_ranks_may_be_slow_by_less_than_the_noise() -> None:
    # given 20 iterations of eight ranks that take 100, give or take 5, of which four take 4 more
    work = np.rint(np.random.default_rng(0).normal(1_000, 50, (20, 1, 8)) + 40 * (np.arange(8) >= 4)).astype(np.int64)

    # then the reference is that of the faster four, not a point between
    (reference,) = references(lockstep_model(work))[1].before_arrival_ns[:1, 0]
    assert abs(reference - 1_000) < 15


def test_kinds_of_work_have_references_of_their_own() -> None:
    # given compute of 100 on all ranks, and input of 40 on one of three
    model = lockstep_model([[[[100, 0], [100, 0], [100, 40]]]], kinds=THREE_KINDS)

    assert references(model)[1].before_arrival_ns[0].tolist() == [100, 0]


def test_of_a_role_of_its_own_compute_is_usual_and_pauses_are_not() -> None:
    # given three stages of one rank each; the last computes longer, the first waits for input, and all launch a little
    #            compute  input  launching
    #   stage 0    100      40       3
    #   stage 1    100       0       2
    #   stage 2    300       0       2
    given = [[[[100, 40, 3], [100, 0, 2], [300, 0, 2]]]]
    stages = replace(lockstep_model(given, kinds=_KINDS), role=np.arange(3), pauses=np.array([False, True, True]))

    # then each computes as it does by design, and pauses no longer than the middle one of all: 0 of 40, 2 of 3
    reference = references(stages)[1].before_arrival_ns[0]
    assert reference.tolist() == [[100, 0, 2], [100, 0, 2], [300, 0, 2]]


def test_by_choice_work_is_held_against_its_first_quartile() -> None:
    # given two iterations of three ranks, of which most are slow: 10, 20 and four times 60
    model = replace(lockstep_model([[[10, 60, 60]], [[20, 60, 60]]]), rule=ReferenceRule.FIRST_QUARTILE)

    # then the second of six is the reference, where the median would have been 60
    assert references(model)[1].before_arrival_ns[:, 0].tolist() == [20, 0]


def test_by_choice_work_is_held_against_the_rank_with_the_least_of_it() -> None:
    # given two places; rank 1 has least in sum (70 + 20), though rank 0 is faster at the first place
    #   rank 0   |50··|50··|
    #   rank 1   |70······|20|
    #   rank 2   |80·······|60··|
    model = replace(lockstep_model([[[50, 70, 80], [50, 20, 60]]] * 3), rule=ReferenceRule.BEST_RANK)

    # then its durations count at every place, and none is put together from several ranks
    assert references(model)[2].before_arrival_ns[:, 0].tolist() == [70, 20, 0]


def test_a_transfer_is_held_against_its_first_quartile() -> None:
    # given five iterations, in three of which the fabric is slow
    model = lockstep_model([[[100, 100]]] * 5, transfer_ns=[[10], [10], [90], [90], [90]])

    # then the clean ones set the reference: the first quartile of 10, 10, 90, 90, 90, twice each
    assert references(model)[1].transfer_ns.tolist() == [10]


def test_transfers_that_get_slower_for_good_are_held_against_those_before() -> None:
    # given a fabric that is slow from the third of ten iterations on
    model = lockstep_model([[[100, 100]]] * 10, transfer_ns=[[10]] * 2 + [[90]] * 8)
    before = np.repeat([True, False], [2, 8])

    # then the first quartile of all is slow, too
    assert references(model)[1].transfer_ns.tolist() == [90]
    assert references(replace(model, usual_transfers=before))[1].transfer_ns.tolist() == [10]


def test_where_ranks_lack_in_clean_iterations_all_tell_how_long_a_transfer_takes() -> None:
    # given a second place that nobody joins in the first four of twenty iterations
    model = lockstep_model([[[100, 100], [50, 50]]] * 20, transfer_ns=[[10, 0]] * 4 + [[90, 60]] * 16)
    group = model.group.copy()
    group[:4, 1] = -1
    model = replace(model, group=group, usual_transfers=np.repeat([True, False], [4, 16]))

    # then what was not there in the clean ones is not expected to take no time
    assert references(model)[2].transfer_ns.tolist() == [10, 60]
    of_roles = references(replace(model, role=np.array([0, 1])))[2].transfer_ns
    assert of_roles.tolist() == [[10, 10], [60, 60]]


def test_ranks_that_now_one_now_the_other_make_more_calls_are_held_against_one_another() -> None:
    # given three pairs that each meet at every place but the last, where all do; between the pairs' places they work 10
    #                    pair 0  pair 1  pair 2
    #   iteration 0, 1     1 2     2 1     4 4   calls before the last one
    work = np.zeros((2, 6, 6), dtype=np.int64)
    group = np.full((2, 5, 6), -1)
    for iteration, counts in enumerate([(1, 2, 4), (2, 1, 4)]):
        for pair, calls in enumerate(counts):
            ranks = [2 * pair, 2 * pair + 1]
            work[iteration, :calls, ranks] = 10
            group[iteration, :calls, ranks] = pair
    group[:, 4] = 3
    model = replace(lockstep_model(work[:, :5]), group=group)

    # then the third pair is held against the middle one, which makes one call, and not against itself
    assert references(model)[5].before_arrival_ns[:, 0].tolist() == [10, 0, 0, 0, 0, 0]

    # given that the second pair makes more calls than the first in both iterations, as a stage of a pipeline may
    work[1], group[1] = work[0], group[0]

    # then each pair is held against itself
    alone = references(replace(lockstep_model(work[:, :5]), group=group))[5].before_arrival_ns
    assert alone[:4, [0, 2, 4], 0].T.tolist() == [[10, 0, 0, 0], [10, 10, 0, 0], [10, 10, 10, 10]]


def test_iterations_of_different_lengths_are_different_programs() -> None:
    # given an iteration with two places and one with one, as where gradients are accumulated
    plan = lockstep_plan([[[100, 100], [50, 50]], [[30, 30], [0, 0]]])
    group, awaited = plan.group.copy(), plan.awaited.copy()
    group[1, 1], awaited[1, 1] = -1, -1
    model = model_of(replace(plan, calls=np.array([2, 1]), group=group, awaited=awaited))

    found = references(model)

    assert found[2].before_arrival_ns[:, 0].tolist() == [100, 50, 0]
    assert found[1].before_arrival_ns[:, 0].tolist() == [30, 0]


def test_an_iteration_without_collectives_has_a_reference_too() -> None:
    # given two ranks that work for 40 and 60 and never meet
    plan = lockstep_plan(np.zeros((1, 0, 2), dtype=np.int64))
    tail = np.array([40, 60]).reshape(1, 1, 2, 1)
    model = model_of(replace(plan, before_arrival_ns=tail))

    found = references(model)[0]

    assert found.before_arrival_ns[:, 0].tolist() == [40]
    assert found.before_wait_ns.shape == (0, 1)
    assert found.transfer_ns.shape == (0,)


def test_cleaning_cuts_slow_transfers_down_and_leaves_the_others() -> None:
    model = lockstep_model([[[100, 100]]] * 5, transfer_ns=[[10], [8], [12], [90], [10]])

    # then the reference is the first quartile of 8, 10, 10, 12, 90, twice each: 10
    assert clean_transfers(model)[:, 0, 0].tolist() == [10, 8, 10, 10, 10]


@pytest.mark.parametrize("size", [1, 100, 40_000, 100_000])
@pytest.mark.parametrize("shape", ["alike", "few", "spread", "sorted"])
def test_of_many_values_the_nth_is_that_of_all_in_order(size: int, shape: str) -> None:
    rng = np.random.default_rng(size)
    spread = rng.normal(1e6, 3e4, size).astype(np.int64)
    values = {
        "alike": np.full(size, 7),
        "few": rng.integers(0, 5, size),
        "spread": spread,
        "sorted": np.sort(spread),
    }[shape]

    for kth in (0, (size - 1) // 4, (size - 1) // 2, size - 1):
        assert nth(values, kth) == np.sort(values)[kth]
