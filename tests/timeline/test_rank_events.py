"""Events of a rank by class: in order, whatever a database read first, and in little memory."""

import tracemalloc

import numpy as np
import polars as pl

from traceforge.timeline.rank_events import NO_CLASS, _parts, by_class, classes

OPERATION, LAUNCH = (classes().index(name) for name in ("operation", "launch"))


def test_each_class_has_its_events_in_their_order() -> None:
    code = np.array([OPERATION, NO_CLASS, LAUNCH, OPERATION, OPERATION], dtype=np.int16)
    starts, ends = np.array([10, 20, 30, 40, 50]), np.array([11, 21, 31, 41, 51])
    times = [(starts[:3], ends[:3]), (starts[3:], ends[3:])]

    found = by_class(code, times, np.array([True, True, False, False, True]))

    assert {name: one.starts_ns.tolist() for name, one in found.of_class.items()} == {
        "operation": [10, 40, 50], "launch": [30],
    }  # fmt: skip
    assert {name: one.ends_ns.tolist() for name, one in found.training.items()} == {"operation": [11, 51]}


def test_a_small_rank_whose_events_are_out_of_turn_is_one_part() -> None:
    # given events of two threads, written by turns; in order of time they would be four stretches
    events = pl.DataFrame({"raw_start_ns": [50, 10, 60, 20]})

    assert [part.height for part in _parts(events)] == [4]


def test_millions_of_events_take_little_more_memory_than_their_times() -> None:
    count = 2**19
    code, is_training = np.full(count, OPERATION, dtype=np.int16), np.ones(count, dtype=np.bool_)
    parts = np.array_split(np.arange(count), 16)

    tracemalloc.start()
    try:
        found = by_class(code, ((part, part + 1) for part in parts), is_training)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # A start and an end take 16; taken out of arrays of all events, in an order of their own, they took 48.
    assert peak_bytes < 26 * count
    assert found.training["operation"] is found.of_class["operation"]
