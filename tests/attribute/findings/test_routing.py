"""What evening out tokens over experts saves, worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attribute.findings.runs import judged_run
from tests.replay.models import lockstep_model
from traceforge.attribute.cause import causes
from traceforge.attribute.findings.candidates import blamed_time
from traceforge.attribute.findings.counterfactual import BlamedTime, Counterfactual
from traceforge.attribute.findings.effects import Effect
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.routing import _saved, saved_of, tokens_beyond_usual
from traceforge.attribute.findings.subjects import Subject
from traceforge.attribute.ledger.ledger_input import LedgerInput, by_cause


def test_what_a_hot_expert_has_more_is_shared_by_all_of_its_group() -> None:
    # given groups of four and of two, in each of which rank 1 is hot: of four tokens more each gets one
    assert _saved({1}, [[0, 1, 2, 3]]) == {1: 0.75}
    # and of two hot ones a half of what both have more
    assert _saved({1, 2}, [[0, 1, 2, 3], [4, 5, 6, 7]]) == {1: 0.5, 2: 0.5}
    # and where ranks exchange in a part of the group as well, that part shares
    assert _saved({1}, [[0, 1], [0, 1, 2, 3]]) == {1: 0.5}
    assert _saved(set(), [[0, 1, 2, 3]]) == {}


def test_a_hot_expert_is_not_evened_out_below_what_others_usually_have() -> None:
    # given two iterations of one call each, in which others get up to 10 % more than their mean, as routing goes
    others = [0.9 * 0.8, 1.1 * 0.8]
    load = np.array([[[1.4, *others]], [[1.1, *others]]])
    only = np.zeros((2, 1, 3), dtype=np.int64)

    # then of 40 % more in the first iteration 10 points are usual, and all 10 in the second
    excess, part = tokens_beyond_usual(load, np.array([True, False, False]), only)
    assert excess.tolist() == pytest.approx([0.4, 0.1])
    assert part.tolist() == pytest.approx([0.75, 0.0])


def test_transfers_that_a_hot_expert_makes_longer_are_blamed_with_its_work() -> None:
    # given rank 2 of four that computes 40 longer, and all-to-alls that take 8 longer because of its tokens
    model = by_cause(lockstep_model([[[100, 100, 140, 100]]] * 4, transfer_ns=18))
    run = replace(judged_run(4, 4), ledger=LedgerInput(model, (0,), np.zeros(model.group.shape, dtype=np.int64)))
    run = replace(run, even_routing={2: 0.75}, uneven_ns=np.full(model.group.shape, 8))
    effect = Effect(40.0, None, 0.25, "high", "persistent", np.arange(4), 40.0, np.full(4, 40.0))
    found = FindingCandidate(
        causes()["slow_compute"], effect, Subject("rank", "2", (2,), "rank 2"), {"slow_compute": 40}
    )

    # then without it an iteration is 30 + 8 shorter; its own work is 30
    blamed = blamed_time(run, found)
    replays = Counterfactual(model)
    assert (replays.without_ns([]) - replays.without_ns([blamed])).tolist() == [38.0] * 4
    assert blamed.rank_seconds_ns().tolist() == [30.0] * 4
    # a rank with a hot expert that the finding does not name owns a part of these transfers
    several = replace(run, even_routing={2: 0.75, 3: 0.75})
    assert blamed_time(several, found).transfer_ns is None


def test_ranks_of_which_one_gets_no_more_tokens_than_others_are_slow_by_themselves() -> None:
    assert saved_of({1: 0.75, 5: 0.75}, [1, 5]) == [0.75, 0.75]
    assert saved_of({1: 0.75}, [1, 5]) == [1.0, 1.0]


def test_a_share_of_what_is_blamed_is_taken_rank_by_rank() -> None:
    blamed = BlamedTime((3, 7), np.full((1, 2, 2), 100), np.full((1, 1, 2), 8))

    scaled = blamed.scaled([0.75, 0.5])
    assert scaled.before_arrival_ns.tolist() == [[[75, 50], [75, 50]]]
    assert scaled.before_wait_ns.tolist() == [[[6, 4]]]
    assert scaled.rank_places == (3, 7)


def test_of_a_rank_with_a_hot_expert_only_what_evening_out_saves_is_blamed() -> None:
    # given rank 2 of four that computes 140 where the others compute 100, because it gets more tokens
    model = by_cause(lockstep_model([[[100, 100, 140, 100]]] * 4, transfer_ns=10))
    run = replace(judged_run(4, 4), ledger=LedgerInput(model, (0,), np.zeros(model.group.shape, dtype=np.int64)))
    effect = Effect(40.0, None, 0.25, "high", "persistent", np.arange(4), 40.0, np.full(4, 40.0))
    found = FindingCandidate(
        causes()["slow_compute"], effect, Subject("rank", "2", (2,), "rank 2"), {"slow_compute": 40}
    )

    # then each would compute 110 with as many tokens as any other; a rank that is slow by itself would save all
    assert blamed_time(run, found).rank_seconds_ns().tolist() == [40.0] * 4
    assert blamed_time(replace(run, even_routing={2: 0.75}), found).rank_seconds_ns().tolist() == [30.0] * 4
