"""What evening out tokens over experts saves, worked by hand."""

import numpy as np

from traceforge.attribute.findings.counterfactual import BlamedTime
from traceforge.attribute.findings.routing import _saved, saved_of


def test_what_a_hot_expert_has_more_is_shared_by_all_of_its_group() -> None:
    # given groups of four and of two, in each of which rank 1 is hot: of four tokens more each gets one
    assert _saved({1}, [[0, 1, 2, 3]]) == {1: 0.75}
    # and of two hot ones a half of what both have more
    assert _saved({1, 2}, [[0, 1, 2, 3], [4, 5, 6, 7]]) == {1: 0.5, 2: 0.5}
    # and where ranks exchange in a part of the group as well, that part shares
    assert _saved({1}, [[0, 1], [0, 1, 2, 3]]) == {1: 0.5}
    assert _saved(set(), [[0, 1, 2, 3]]) == {}


def test_ranks_of_which_one_gets_no_more_tokens_than_others_are_slow_by_themselves() -> None:
    assert saved_of({1: 0.75, 5: 0.75}, [1, 5]) == [0.75, 0.75]
    assert saved_of({1: 0.75}, [1, 5]) == [1.0, 1.0]


def test_a_share_of_what_is_blamed_is_taken_rank_by_rank() -> None:
    blamed = BlamedTime((3, 7), np.full((1, 2, 2), 100), np.full((1, 1, 2), 8))

    scaled = blamed.scaled([0.75, 0.5])
    assert scaled.before_arrival_ns.tolist() == [[[75, 50], [75, 50]]]
    assert scaled.before_wait_ns.tolist() == [[[6, 4]]]
    assert scaled.rank_places == (3, 7)
