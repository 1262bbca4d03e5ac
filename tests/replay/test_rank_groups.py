"""Layouts: who meets whom, whatever the numbers of the groups."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.examples import examples
from traceforge.replay.rank_groups import partition_of, rank_groups


def test_the_latest_and_the_mean_of_each_group_are_given_to_all_its_members() -> None:
    # given ranks 0 and 2 in one group, 1 and 3 in another
    layout, times = partition_of(np.array([3, 8, 3, 8])), np.array([5, 9, 7, 1])

    assert layout.latest(times).tolist() == [7, 9, 7, 9]
    assert layout.mean(times).tolist() == [6, 5, 6, 5]


def test_ranks_without_a_group_meet_nobody() -> None:
    layout = partition_of(np.array([-1, 4, -1, 4]))

    assert layout.latest(np.array([5, 9, 7, 1])).tolist() == [5, 9, 7, 9]


def test_the_same_partition_under_other_numbers_is_the_same_layout() -> None:
    # given pairs (0, 1) and (2, 3) in two iterations, and (0, 2) and (1, 3) in a third
    met = rank_groups(np.array([[[5, 5, 6, 6]], [[9, 9, 7, 7]], [[1, 2, 1, 2]]]))

    assert met.at.ravel().tolist() == [0, 0, 1]


@examples(200)
@given(arrays(np.int64, (3, 4, 5), elements=st.integers(-1, 3)), arrays(np.int64, 5, elements=st.integers(0, 99)))
def test_each_place_gets_a_layout_that_groups_its_ranks_as_they_are(group: np.ndarray, times: np.ndarray) -> None:
    met = rank_groups(group)

    for i, p in np.ndindex(3, 4):
        latest = np.broadcast_to(met.layouts[met.at[i, p]].latest(times), 5)
        for rank in range(5):
            same = (group[i, p] == group[i, p, rank]) & ((group[i, p] >= 0) | (np.arange(5) == rank))
            assert latest[rank] == times[same].max()
