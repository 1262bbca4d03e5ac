"""Interval arithmetic, against an oracle that looks at every ns."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceforge.timeline.layers import Intervals, active, cut, first_active, join, subtract, union

HORIZON = 40
drawn_intervals = st.lists(st.tuples(st.integers(0, HORIZON), st.integers(0, HORIZON)), max_size=6)

Pairs = list[tuple[int, int]]


def _union(pairs: Pairs) -> Intervals:
    starts, ends = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    return union(starts, ends)


def _ticks(pairs: Pairs) -> set[int]:
    """The oracle: every ns that lies in one of the half-open intervals."""
    return {ns for start, end in pairs for ns in range(start, end)}


def _pairs(intervals: Intervals) -> Pairs:
    return list(zip(intervals.starts_ns.tolist(), intervals.ends_ns.tolist(), strict=True))


def test_touching_intervals_become_one_and_empty_ones_vanish() -> None:
    # |0––10|10––20|   |30|   |50––40|
    assert _pairs(_union([(10, 20), (0, 10), (30, 30), (50, 40)])) == [(0, 20)]


def test_an_interval_inside_another_one_does_not_shorten_it() -> None:
    # |0––––––––––––––50|
    #     |10–20|         |60–70|
    assert _pairs(_union([(0, 50), (10, 20), (60, 70)])) == [(0, 50), (60, 70)]


def test_taking_the_middle_out_leaves_two_ends() -> None:
    # |0––––––––––30|
    #     |10–20|
    assert _pairs(subtract(_union([(0, 30)]), _union([(10, 20)]))) == [(0, 10), (20, 30)]


def test_the_first_of_several_active_layers_wins() -> None:
    # layer 0       |10–20|
    # layer 1   |0–––––––––––30|
    layers = [_union([(10, 20)]), _union([(0, 30)])]

    assert first_active(layers, np.array([0, 10, 19, 20, 30])).tolist() == [1, 0, 0, 1, 2]


def test_edges_outside_of_the_window_do_not_cut_it() -> None:
    # layer    |0––––––20|  |30––40|  |50–60|
    # window         |10––––––––––––––50|
    assert cut([_union([(0, 20), (30, 40), (50, 60)])], (10, 50)).tolist() == [10, 20, 30, 40, 50]


@given(drawn_intervals)
def test_a_union_covers_the_same_ns_sorted_and_apart(pairs: Pairs) -> None:
    found = _pairs(_union(pairs))

    assert _ticks(found) == _ticks(pairs)
    assert all(start < end for start, end in found)
    assert all(end < start for (_, end), (start, _) in pairwise(found))


@given(drawn_intervals, drawn_intervals)
def test_a_difference_covers_what_the_first_has_and_the_second_has_not(pairs: Pairs, removed: Pairs) -> None:
    assert _ticks(_pairs(subtract(_union(pairs), _union(removed)))) == _ticks(pairs) - _ticks(removed)


@given(drawn_intervals, drawn_intervals)
def test_a_join_covers_what_either_covers(pairs: Pairs, others: Pairs) -> None:
    assert _ticks(_pairs(join(_union(pairs), _union(others)))) == _ticks(pairs) | _ticks(others)


@given(drawn_intervals)
def test_an_instant_is_active_if_an_interval_covers_it(pairs: Pairs) -> None:
    instants = np.arange(-1, HORIZON + 2)

    assert set(instants[active(_union(pairs), instants)].tolist()) == _ticks(pairs)


@given(st.lists(drawn_intervals, max_size=4), st.integers(0, HORIZON - 1), st.integers(1, HORIZON))
def test_between_two_cuts_the_winning_layer_never_changes(layers: list[Pairs], start: int, length: int) -> None:
    intervals = [_union(pairs) for pairs in layers]
    window = (start, start + length)

    cuts = cut(intervals, window)

    assert (cuts[0], cuts[-1]) == window
    assert (np.diff(cuts) > 0).all()
    winners = first_active(intervals, cuts[:-1])
    for begin, end, winner in zip(cuts[:-1], cuts[1:], winners, strict=True):
        oracle = [
            next((n for n, pairs in enumerate(layers) if ns in _ticks(pairs)), len(layers)) for ns in range(begin, end)
        ]
        assert oracle == [winner] * (end - begin)
