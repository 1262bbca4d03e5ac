"""The innermost span around a point, and what of a span is its own."""

import tracemalloc
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceforge.operation import nesting
from traceforge.operation.nesting import NONE, Spans, innermost, longest_inside_ns, own_duration_ns

NESTED = Spans.between(
    *(np.array(column) for column in zip((0, 0, 100), (0, 10, 60), (0, 20, 40), (1, 0, 100), strict=True))
)
"""On track 0 [0, 100) holds [10, 60), which holds [20, 40); track 1 has a span of its own."""


def test_the_innermost_span_is_found_and_its_end_lies_outside() -> None:
    points = [(0, 5), (0, 10), (0, 30), (0, 40), (0, 60), (0, 100), (1, 30), (2, 30)]

    found = innermost(NESTED, *(np.array(column) for column in zip(*points, strict=True)))

    assert found.tolist() == [0, 1, 2, 1, 0, NONE, 3, NONE]


def test_what_is_inside_is_not_own_time() -> None:
    assert own_duration_ns(NESTED).tolist() == [50, 30, 20, 100]


def test_the_longest_span_directly_inside_is_told() -> None:
    # [0, 100) holds [0, 30) and [40, 90), which holds [50, 60) and [60, 85); the last one is on another track
    spans = Spans.between(
        *(
            np.array(column)
            for column in zip((0, 0, 100), (0, 0, 30), (0, 40, 90), (0, 50, 60), (0, 60, 85), (1, 0, 100), strict=True)
        )
    )

    assert longest_inside_ns(spans).tolist() == [50, 0, 25, 0, 0, 0]


def test_of_spans_that_begin_at_once_the_longer_is_outside() -> None:
    spans = Spans.between(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.array([10, 30]))

    assert innermost(spans, np.array([0, 0]), np.array([0, 20])).tolist() == [0, 1]
    assert own_duration_ns(spans).tolist() == [10, 20]


def _on_one_track(*spans: tuple[int, int]) -> Spans:
    starts, ends = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    return Spans.between(np.zeros(len(spans), dtype=np.int64), starts, ends)


def test_spans_that_overlap_by_a_rounding_follow_one_another() -> None:
    # given a, and in it b, which both end 1 ns after c begins; c ends 1 ns after d begins
    #   a |0 ––––––––––– 10_000|
    #   b      |4_000 –– 10_000|
    #   c                 |9_999 –––––– 20_000|
    #   e                   |12_000 – 13_000|
    #   d                                |19_999 –– 30_000|
    spans = _on_one_track((0, 10_000), (4_000, 10_000), (9_999, 20_000), (19_999, 30_000), (12_000, 13_000))
    points = np.array([2_000, 5_000, 9_999, 15_000, 12_500, 25_000])

    found = innermost(spans, np.zeros(len(points), dtype=np.int64), points)

    assert found.tolist() == [0, 1, 2, 2, 4, 3]
    assert own_duration_ns(spans).tolist() == [4_000, 6_000, 9_001, 10_001, 1_000]


def test_a_span_that_ends_a_rounding_after_the_one_around_it_is_inside() -> None:
    # given b in a, which ends 1 ns after it, when c begins
    spans = _on_one_track((0, 10_000), (4_000, 10_001), (10_000, 20_000))

    assert innermost(spans, np.zeros(2, dtype=np.int64), np.array([5_000, 15_000])).tolist() == [1, 2]


def test_spans_that_overlap_by_more_stay_as_they_are() -> None:
    spans = _on_one_track((0, 10_000), (8_000, 20_000))

    assert innermost(spans, np.zeros(2, dtype=np.int64), np.array([9_000, 15_000])).tolist() == [1, NONE]


@st.composite
def nested(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Spans (track, start, end) that are apart or inside of one another: cuts of an interval, again and again."""
    found: list[tuple[int, int, int]] = []
    for track in range(2):
        open_ = [(0, 200)]
        for _ in range(draw(st.integers(0, 8))):
            start, end = open_.pop(draw(st.integers(0, len(open_) - 1))) if open_ else (0, 0)
            if end - start < 2:
                continue
            first = draw(st.integers(start, end - 1))
            last = draw(st.integers(first + 1, end))
            found.append((track, first, last))
            open_ += [(start, first), (first, last), (last, end)]
    return found


@given(nested(), st.lists(st.tuples(st.integers(0, 1), st.integers(0, 210)), min_size=1))
def test_the_answer_is_that_of_looking_at_every_span(
    spans: list[tuple[int, int, int]], points: list[tuple[int, int]]
) -> None:
    columns = np.array(spans, dtype=np.int64).reshape(-1, 3).T
    found = innermost(Spans.between(*columns), *np.array(points, dtype=np.int64).T)

    for (track, at), place in zip(points, found.tolist(), strict=True):
        around = [(end - start, n) for n, (t, start, end) in enumerate(spans) if t == track and start <= at < end]
        # Spans of equal extent are equally innermost.
        assert (place == NONE) == (not around)
        assert place == NONE or spans[place][2] - spans[place][1] == min(around)[0]


@given(nested())
def test_own_times_add_up_to_what_the_spans_cover(spans: list[tuple[int, int, int]]) -> None:
    columns = np.array(spans, dtype=np.int64).reshape(-1, 3).T

    covered = {(track, at) for track, start, end in spans for at in range(start, end)}
    assert int(own_duration_ns(Spans.between(*columns)).sum()) == len(covered)


@given(nested())
def test_spans_looked_at_one_after_the_other_are_told_the_same(spans: list[tuple[int, int, int]]) -> None:
    whole = Spans.between(*np.array(spans, dtype=np.int64).reshape(-1, 3).T)

    with mock.patch.object(nesting, "_AT_ONCE", 1):
        own, longest = own_duration_ns(whole), longest_inside_ns(whole)

    assert own.tolist() == own_duration_ns(whole).tolist()
    assert longest.tolist() == longest_inside_ns(whole).tolist()


def test_millions_of_spans_take_little_more_memory_than_their_times() -> None:
    # given spans of 500 ns, one a us, in blocks of 2^16 of which every second was read first
    count = 2**19
    blocks = np.arange(count).reshape(-1, 2**16)
    start = 1000 * np.concatenate([*blocks[1::2], *blocks[::2]])
    spans = Spans.between(np.zeros(count, dtype=np.int32), start, start + 500)

    tracemalloc.start()
    try:
        assert (own_duration_ns(spans) == 500).all()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # 8 are the answer; sorted as a whole they took 59.
    assert peak_bytes < 36 * count
