"""Events of a rank by class: in order, whatever a database read first, and in little memory."""

import tracemalloc
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

from traceforge.align.clock_course import ClockCourse
from traceforge.timeline.rank_events import _parts, by_class, classes

OPERATION, LAUNCH, STEP, COMPUTE, INPUT = (
    classes().index(name) for name in ("operation", "launch", "iteration", "compute", "input")
)
CLOCK = ClockCourse(np.array([0]), np.array([5]), np.array([0]))


def kinds_of(*rows: tuple[int, int, int, int], backward: int | None = None) -> pl.DataFrame:
    """Kinds by number, class, thread and number of events; one may be of operations of the backward pass."""
    kinds = pl.DataFrame(rows, schema=["kind_id", "code", "track_id", "events"], orient="row")
    return kinds.with_columns(is_backward=pl.col("kind_id") == (-1 if backward is None else backward))


def events_of(*rows: tuple[int, int, int]) -> pl.DataFrame:
    """Events by kind, start and duration."""
    return pl.DataFrame(rows, schema=["kind_id", "raw_start_ns", "duration_ns"], orient="row")


def test_each_class_has_its_events_in_their_order_on_the_common_clock() -> None:
    # given a clock 5 ns ahead, a thread 7 with two operations, one of a thread 8, kernels; kinds 1 and 9 say nothing
    kinds = kinds_of((0, OPERATION, 7, 2), (2, COMPUTE, 99, 2), (3, OPERATION, 8, 1))
    pieces = [events_of((0, 15, 1), (1, 25, 1), (2, 35, 1)), events_of((3, 45, 1), (9, 48, 1), (0, 55, 1), (2, 65, 1))]

    found = by_class(kinds, pieces, CLOCK)

    assert {name: one.starts_ns.tolist() for name, one in found.wherever.items()} == {"compute": [30, 60]}
    assert {name: one.ends_ns.tolist() for name, one in found.training.items()} == {"operation": [11, 51]}


@pytest.mark.parametrize(
    ("kinds", "training"),
    [
        # The thread with steps, however little it does; without steps the one with most; of equal ones the first.
        ([(0, STEP, 8, 1), (1, OPERATION, 8, 1), (2, OPERATION, 7, 2)], {"iteration", "operation"}),
        ([(0, STEP, 8, 1), (1, COMPUTE, 7, 5), (2, OPERATION, 7, 9)], {"iteration"}),
        ([(1, OPERATION, 8, 1), (2, OPERATION, 7, 2), (3, INPUT, 8, 1)], {"operation"}),
        ([(0, LAUNCH, 7, 1), (1, OPERATION, 7, 1), (2, OPERATION, 8, 1)], {"launch", "operation"}),
        # Backward (kind 4) has a thread of its own, which launches. One that runs other operations and launches saves
        # the model, say, beside the step; one that only launches, or only runs operations, is not of it either.
        (
            [(0, STEP, 8, 1), (4, OPERATION, 7, 2), (2, LAUNCH, 7, 2), (3, INPUT, 7, 1)],
            {"iteration", "operation", "launch", "input"},
        ),
        ([(0, STEP, 8, 1), (1, OPERATION, 7, 2), (2, LAUNCH, 7, 2), (3, INPUT, 7, 1)], {"iteration"}),
        ([(0, STEP, 8, 1), (4, OPERATION, 7, 2), (2, LAUNCH, 6, 2)], {"iteration"}),
        # Nothing but launches.
        ([(0, LAUNCH, 7, 2)], {"launch"}),
    ],
)
def test_the_training_thread_marks_steps_or_does_most(
    kinds: list[tuple[int, int, int, int]], training: set[str]
) -> None:
    events = [(kind, 10 * n, 5) for kind, *_, count in kinds for n in range(count)]

    assert set(by_class(kinds_of(*kinds, backward=4), [events_of(*events)], CLOCK).training) == training


def test_a_small_rank_whose_events_are_out_of_turn_is_one_part() -> None:
    # given events of two threads, written by turns; in order of time they would be four stretches
    events = pl.DataFrame({"raw_start_ns": [50, 10, 60, 20]})

    assert [part.height for part in _parts(events)] == [4]


def test_millions_of_events_take_little_more_memory_than_their_times() -> None:
    count, pieces = 2**19, 16
    kinds, size = kinds_of((0, COMPUTE, 7, count)), count // pieces

    def read() -> Iterator[pl.DataFrame]:
        for first in range(0, count, size):
            start = np.arange(first, first + size)
            kind, lasts = np.zeros(size, dtype=np.int32), np.ones(size, dtype=np.int64)
            yield pl.DataFrame({"kind_id": kind, "raw_start_ns": start, "duration_ns": lasts})

    tracemalloc.start()
    try:
        found = by_class(kinds, read(), CLOCK)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # A start and an end take 16.
    assert peak_bytes < 24 * count
    assert len(found.wherever["compute"].starts_ns) == count
