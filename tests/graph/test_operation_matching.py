"""Recorded operations find their events by handle, by a constant apart, or by the order of names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.graph.operation_matching import (
    ABSENT,
    Pairs,
    RecordedOperations,
    TimelineEvents,
    agreement,
    align,
    pair,
)


def operations(handles: list[int], names: list[int], threads: list[int] | None = None) -> RecordedOperations:
    columns = (handles, names, threads or [1] * len(handles))
    return RecordedOperations(*(np.array(column, np.int64) for column in columns))


def events(names: list[int], *, handles: list[int] | None = None, external: list[int] | None = None) -> TimelineEvents:
    absent = [ABSENT] * len(names)
    columns = (handles or absent, external or absent, names, [0] * len(names))
    return TimelineEvents(*(np.array(column, np.int64) for column in columns))


def as_pairs(found: Pairs) -> list[tuple[int, int]]:
    return list(zip(found.operation.tolist(), found.event.tolist(), strict=True))


def test_equal_handles_are_pairs_and_events_without_one_are_left_out() -> None:
    ours = operations([5, 7, 9], [0, 1, 2])
    theirs = events([2, 0, 3, 1], handles=[9, 5, ABSENT, 7])

    found = pair("rf_id", ours, theirs)

    assert as_pairs(found) == [(0, 1), (1, 3), (2, 0)]
    assert agreement(found, ours, theirs) == 1.0


def test_names_tell_that_equal_handles_are_of_two_different_runs() -> None:
    ours, theirs = operations([1, 2, 3, 4], [0, 1, 2, 3]), events([3, 2, 1, 3], handles=[1, 2, 3, 4])

    assert agreement(pair("rf_id", ours, theirs), ours, theirs) == 0.25


@given(offset=st.integers(-50, 5_000))
def test_a_constant_between_handle_and_external_id_is_found(offset: int) -> None:
    # Names repeat as layers do; only the first and last operations are rare.
    handles = list(range(100, 160))
    names = [1000, *[place % 4 for place in range(58)], 2000]
    ours = operations(handles, names)
    theirs = events(names, external=[handle + offset for handle in handles])

    found = pair("external_id", ours, theirs)

    assert found.offset == offset
    assert as_pairs(found) == [(place, place) for place in range(60)]


def test_a_method_that_does_not_apply_finds_nothing() -> None:
    assert as_pairs(pair("rf_id", operations([1], [0]), events([0]))) == []
    assert as_pairs(pair("external_id", operations([1], [0]), events([0]))) == []


def test_a_trace_of_one_iteration_in_a_long_timeline_takes_the_first_place_and_says_how_many_there_are() -> None:
    found = align(np.array([4, 5, 5, 6]), np.array([9, *[4, 5, 5, 6] * 3]))

    assert as_pairs(found) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert found.occurrences == 3


def test_threads_find_their_tracks_by_what_they_ran() -> None:
    forward, backward = [1, 2, 3, 4, 5], [7, 8, 9]
    ours = operations([1, 2, 3, 4, 5, 10, 11, 12], forward + backward, [1] * 5 + [2] * 3)
    theirs = TimelineEvents(
        *(np.full(8, ABSENT),) * 2, np.array([7, 1, 2, 8, 3, 4, 9, 5]), np.array([3, 0, 0, 3, 0, 0, 3, 0])
    )

    found = pair("sequence", ours, theirs)

    assert sorted(as_pairs(found)) == [(0, 1), (1, 2), (2, 4), (3, 5), (4, 7), (5, 0), (6, 3), (7, 6)]


@given(data=st.data())
def test_operations_that_one_side_alone_has_cost_only_themselves(data: st.DataObject) -> None:
    names = [data.draw(st.integers(0, 30), label="name") for _ in range(60)]
    extra = sorted(data.draw(st.sets(st.integers(0, 59), max_size=5), label="extra"))
    missing = data.draw(st.sets(st.integers(0, 59), max_size=5), label="missing")
    theirs = [name for place, name in enumerate(names) if place not in missing]
    for place in extra:
        theirs.insert(min(place, len(theirs)), 99)

    found = align(np.array(names), np.array(theirs))

    assert all(names[ours] == theirs[other] for ours, other in as_pairs(found))
    assert np.all(np.diff(found.operation) > 0)
    assert np.all(np.diff(found.event) > 0)


def test_a_few_differences_leave_nearly_all_of_a_long_thread_paired() -> None:
    rng = np.random.default_rng(7)
    names = rng.integers(0, 200, 20_000)
    theirs = np.delete(names, rng.choice(20_000, 100, replace=False))

    found = align(names, theirs)

    assert len(found.operation) > 19_850
    assert np.array_equal(names[found.operation], theirs[found.event])


@pytest.mark.parametrize("method", ["rf_id", "external_id", "sequence"])
def test_nothing_on_one_side_pairs_with_nothing(method: str) -> None:
    assert as_pairs(pair(method, operations([], []), events([]))) == []
    assert as_pairs(pair(method, operations([1, 2], [0, 1]), events([]))) == []
