"""Interval arithmetic, against an oracle that looks at every ns."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceforge.timeline.layers import (
    Intervals,
    active,
    covered_before,
    in_turn,
    intersect,
    join,
    length_ns,
    subtract,
    sweep,
    union,
)

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


def test_a_sweep_tells_which_layers_are_active() -> None:
    # layer 0       |10–20|
    # layer 1   |0–––––––––––30|
    found = sweep([_union([(10, 20)]), _union([(0, 30)])])

    assert found.edges_ns.tolist() == [0, 10, 20, 30]
    assert found.masks.tolist() == [0b10, 0b11, 0b10, 0]


def test_a_sweep_is_cut_at_further_edges_too() -> None:
    # layer    |0––––––20|
    # edges          |10|         |50
    found = sweep([_union([(0, 20)])], np.array([10, 50]))

    assert found.edges_ns.tolist() == [0, 10, 20, 50]
    assert found.masks.tolist() == [1, 1, 0, 0]


def test_time_covered_before_an_instant_counts_the_part_of_a_stretch() -> None:
    # |10––20|     |30––––50|
    starts, durations = np.array([10, 30]), np.array([10, 20])

    assert covered_before(starts, durations, np.array([0, 15, 25, 40, 99])).tolist() == [0, 5, 10, 20, 30]


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


@given(drawn_intervals, drawn_intervals)
def test_an_intersection_covers_what_both_cover(pairs: Pairs, others: Pairs) -> None:
    common = intersect(_union(pairs), _union(others))

    assert _ticks(_pairs(common)) == _ticks(pairs) & _ticks(others)
    assert length_ns(common) == len(_ticks(pairs) & _ticks(others))


@given(st.lists(drawn_intervals, max_size=4), st.lists(st.integers(0, HORIZON), max_size=3))
def test_between_two_edges_the_active_layers_never_change(layers: list[Pairs], further: list[int]) -> None:
    found = sweep([_union(pairs) for pairs in layers], np.array(further, dtype=np.int64))

    assert (np.diff(found.edges_ns) > 0).all()
    assert set(further) <= set(found.edges_ns.tolist())
    for begin, end, mask in zip(found.edges_ns[:-1], found.edges_ns[1:], found.masks, strict=False):
        for ns in range(begin, end):
            assert mask == sum(1 << n for n, pairs in enumerate(layers) if ns in _ticks(pairs))


def test_blocks_that_were_read_out_of_turn_are_put_in_order() -> None:
    # two threads read blocks of two: one of them the first and the third, the other the second and the last
    starts = np.array([0, 1, 4, 5, 2, 3, 6, 7])

    assert in_turn(starts) == [(0, 2), (4, 6), (2, 4), (6, 8)]


@given(st.lists(st.integers(0, HORIZON), max_size=20))
def test_whatever_is_put_in_order_is_all_there(starts: list[int]) -> None:
    stretches = in_turn(np.array(starts, dtype=np.int64))

    if stretches is not None:
        assert [start for since, until in stretches for start in starts[since:until]] == sorted(starts)


def test_what_has_no_order_at_all_is_left_to_sorting() -> None:
    assert in_turn(np.arange(10_000)[::-1]) is None
