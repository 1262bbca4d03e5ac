"""Loops of XLA last as long as all that runs in them: each instant counts once, for the innermost operation."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sources.test_xplane import event, line, plane, read
from traceforge.sources.xplane.nesting import innermost
from traceforge.sources.xplane.space import Line

Span = tuple[int, int]


def line_of(*spans: Span) -> Line:
    """A line whose events are called by their place."""
    starts, ends = (np.array(one, np.int64) for one in zip(*spans, strict=True))
    numbers = np.arange(len(spans))
    return Line("XLA Ops", [str(n) for n in numbers], starts, ends, numbers, numbers)


def said(found: Line) -> list[tuple[str, int, int, int]]:
    """Name, start, end and correlation of the events, by start."""
    rows = zip(found.names, found.starts_ns.tolist(), found.ends_ns.tolist(), found.correlation.tolist(), strict=True)
    return sorted(rows, key=lambda row: row[1:])


def test_of_a_loop_the_time_between_its_operations_is_left() -> None:
    # 0 while |··|1 fusion|··|2 call: 3 all-reduce|·····|      4 fusion
    spans = [(0, 100), (10, 40), (50, 80), (50, 80), (100, 120)]

    found, loops = innermost(line_of(*spans))

    assert said(found) == [
        ("0", 0, 10, 0),
        ("1", 10, 40, 1),
        ("0", 40, 50, 0),
        ("3", 50, 80, 3),
        ("0", 80, 100, 0),
        ("4", 100, 120, 4),
    ]
    assert loops == 2


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([(0, 10), (10, 20)], id="one after the other"),
        pytest.param([(0, 10), (4, 4), (0, 0)], id="some without a duration"),
        pytest.param([(0, 10), (5, 15)], id="overlapping"),
        pytest.param([(9, 4), (0, 10)], id="one that ends before it starts"),
    ],
)
def test_what_contains_nothing_stays_as_it_is(spans: list[Span]) -> None:
    whole = line_of(*spans)

    assert innermost(whole) == (whole, 0)


@given(drawn=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=12))
def test_every_instant_of_nested_operations_counts_once_for_the_innermost(drawn: list[Span]) -> None:
    # given events of which any two lie apart or one in the other, and no two are alike
    spans: list[Span] = []
    for start, lasts in drawn:
        one = (start, start + lasts)
        crosses = any(a < one[0] < b < one[1] or one[0] < a < one[1] < b for a, b in spans)
        spans += [] if crosses or one in spans else [one]

    found, _ = innermost(line_of(*spans))

    covering: dict[int, tuple[int, int]] = {}
    for n, (start, end) in enumerate(spans):
        for at in range(start, end):
            covering[at] = min(covering.get(at, (99, 0)), (end - start, n))
    counted = [(at, int(name)) for name, start, end, _ in said(found) for at in range(start, end)]
    assert sorted(counted) == sorted((at, n) for at, (_, n) in covering.items())


def test_a_loop_of_a_tpu_hides_no_communication_and_counts_no_time_twice(tmp_path: Path) -> None:
    # given a loop of 10 µs with a fusion of 4 µs and an all-reduce of 5 µs
    names = {"%while.7 = (s32[]) while(...)": 1, "%fusion.1 = f32[8] fusion(...)": 2, "%all-reduce.3 = f32[8] x": 3}
    work = [event(1, 0, 10_000_000), event(2, 0, 4_000_000), event(3, 4_500_000, 5_000_000)]

    reading = read(tmp_path, plane("/device:TPU:0", line("XLA Ops", *work), events=names))

    assert sorted((e["raw_start_ns"], e["name"], e["duration_ns"]) for e in reading.events) == [
        (0, "fusion.1", 4_000),
        (4_000, "while.7", 500),
        (4_500, "all-reduce.3", 5_000),
        (9_500, "while.7", 500),
    ]
    assert reading.issue("xplane_loops").count == 1
    assert (reading.summary.event_count, reading.summary.stored_count) == (4, 4)
