"""Whose it is: sets of ranks that are slow alike, and what people call them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.attribute.findings.runs import judged_run
from traceforge.attribute.findings.subjects import known_sets, ranks_said, slow_set

HOSTS = ["a"] * 4 + ["b"] * 4
RUN = judged_run(10, 8, hosts=HOSTS, groups={3: [0, 4], 5: list(range(8))})


def named(*shifts: float) -> tuple[str, str]:
    found = slow_set(RUN, np.array(shifts, dtype=np.float64), known_sets(RUN))
    assert found is not None
    return found.kind, found.name


def test_known_are_hosts_and_groups_that_are_not_the_whole_job() -> None:
    assert [(one.kind, one.name) for one in known_sets(RUN)] == [("host", "a"), ("host", "b"), ("ranks", "0, 4")]


def test_one_slow_rank_is_itself() -> None:
    assert named(0, 0, 9, 0, 0, 0, 0, 0) == ("rank", "2")


def test_the_slow_ranks_of_a_host_are_the_host() -> None:
    assert named(9, 8, 10, 9, 0, 1, 0, 0) == ("host", "a")


def test_two_ranks_slow_alike_are_named_together() -> None:
    assert named(0, 9, 0, 0, 0, 0, 8, 0) == ("ranks", "1, 6")


def test_two_ranks_of_which_one_is_far_slower_are_not_alike() -> None:
    # 20 and 10: together they explain more than either, but one does not explain the other
    assert named(0, 20, 0, 0, 0, 0, 10, 0) == ("rank", "1")


def test_most_of_the_ranks_are_no_set_of_their_own() -> None:
    # given five of eight, across both hosts: against them the other three are fast
    assert named(0, 10, 9, 9, 9, 9, 0, 0) == ("rank", "1")


def test_all_ranks_slow_alike_are_the_job() -> None:
    assert named(9, 8, 10, 9, 9, 10, 8, 9) == ("job", "all")


def test_a_group_that_is_slow_alike_is_said_with_its_number() -> None:
    found = slow_set(RUN, np.array([9.0, 0, 0, 0, 9, 0, 0, 0]), known_sets(RUN))
    assert found is not None
    assert (found.name, found.said) == ("0, 4", "each of ranks 0 and 4 (communicator 3)")


def test_where_no_rank_is_slow_there_is_nobody() -> None:
    assert slow_set(RUN, np.array([0.0, -1, 0, 0, -5, 0, 0, 0]), known_sets(RUN)) is None


@given(st.permutations(range(8)), st.integers(1, 4), st.floats(1, 1e6))
def test_no_set_is_better_than_the_one_that_was_shifted(order: list[int], size: int, shift: float) -> None:
    shifts = np.zeros(8)
    shifts[order[:size]] = shift

    found = slow_set(RUN, shifts, [])
    assert found is not None
    assert set(found.places) == set(order[:size])


def test_many_ranks_are_said_by_their_ends_where_none_is_missing_between() -> None:
    assert ranks_said(range(300)) == "ranks 0\N{EN DASH}299"
    assert ranks_said(range(0, 20, 2)) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, …"
    assert ranks_said([3, 4, 5]) == "ranks 3, 4, 5"
