"""Tables behind the charts: what is stacked sums, what is thinned keeps its time, what is scaled keeps its sign."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceforge.report.charts.forest import Prediction, forest_spec
from traceforge.report.charts.heatmap import heatmap_spec, thresholds
from traceforge.report.charts.lanes import Interval, lanes_spec, thinned
from traceforge.report.charts.pareto import pareto_spec
from traceforge.report.charts.phases import phases_table
from traceforge.report.charts.waterfall import Bar, waterfall_spec, waterfall_table
from traceforge.report.islands import packed, row_count
from traceforge.report.palette import PHASES


def test_each_bar_of_the_waterfall_begins_where_the_last_ended() -> None:
    # a ████ 5      b     ██ 2 back (a credit)      total ███ 3
    bars = [Bar("a", "", "unexplained", 5.0, 4.0, 6.0), Bar("b", "", "unexplained", -2.0), Bar("all", "", "total", 3.0)]
    table = waterfall_table(bars)
    assert table["start_ms"] == [0.0, 5.0, 0.0]
    assert table["end_ms"] == [5.0, 3.0, 3.0]
    assert table["low_ms"] == [4.0, None, None]


def test_stacked_phases_sum_to_the_iteration() -> None:
    table = phases_table(["0"], [{"compute": 80.0, "wait": 5.0, "transfer": 20.0}])
    assert table["phase"] == ["compute", "wait", "transfer"]
    assert table["start_ms"] == [0.0, 80.0, 85.0]
    assert table["end_ms"][-1] == 105.0


@given(
    st.lists(st.tuples(st.sampled_from(PHASES), st.integers(1, 1_000_000)), min_size=1, max_size=60), st.integers(1, 40)
)
def test_thinning_keeps_the_span_and_never_leaves_a_gap(pieces: list[tuple[str, int]], slots: int) -> None:
    intervals, start = [], 0
    for phase, length in pieces:
        intervals.append(Interval(phase, start, start + length))
        start += length
    thin = thinned(intervals, start / slots)
    assert len(thin) <= slots + 1
    assert thin[0].start_ns == 0
    assert thin[-1].end_ns == start
    assert all(one.end_ns == other.start_ns for one, other in pairwise(thin))
    assert all(one.phase != other.phase for one, other in pairwise(thin))


def test_thinning_gives_a_slot_to_the_phase_that_fills_most_of_it() -> None:
    # slots of 10:  |cccccccwww|wwwwwwwccc|
    intervals = [Interval("compute", 0, 7), Interval("wait", 7, 17), Interval("compute", 17, 20)]
    assert thinned(intervals, 10) == [Interval("compute", 0, 10), Interval("wait", 10, 20)]


def test_the_scale_is_symmetric_and_never_finer_than_the_clocks() -> None:
    limits = thresholds({0: [0.0, 0.1, -0.1], 1: [8.0, 8.2, 8.1]}, resolution_ms=0.06, least_ms=0.5)
    assert limits == [-8.0, -4.0, -2.0, -0.8, 0.8, 2.0, 4.0, 8.0]
    coarse = thresholds({0: [0.0, 0.1], 1: [0.2, 0.3]}, resolution_ms=0.06, least_ms=0.1)
    assert coarse[4] == pytest.approx(0.06)


def test_one_spike_does_not_set_the_scale_but_a_habit_does() -> None:
    quiet = {rank: [0.1] * 50 for rank in range(100)}
    spike = {**quiet, 7: [0.1] * 49 + [90.0]}
    habit = {**quiet, 7: [9.0] * 50}
    assert thresholds(spike, 0, 0.05)[-1] == 0.1
    assert thresholds(habit, 0, 0.05)[-1] == 8.0


def test_a_run_without_trouble_is_left_pale() -> None:
    limits = thresholds({0: [0.1, -0.1], 1: [0.05, 0.0]}, resolution_ms=0, least_ms=2.0)
    assert limits[4] == pytest.approx(0.2)


def test_columns_that_repeat_travel_as_codes() -> None:
    assert packed({"phase": ["a", "b", "a", "a", "b"], "ms": [1, 2, 3, 4, 5]}) == {
        "phase": {"values": ["a", "b"], "codes": [0, 1, 0, 0, 1]},
        "ms": [1, 2, 3, 4, 5],
    }
    assert row_count({}) == 0


@pytest.mark.parametrize(
    "spec",
    [
        waterfall_spec([Bar("a", "", "total", 1.0)], 2.0),
        forest_spec([Prediction("a", "", 0.0, -1.0, 1.0, 2.0)]),
        heatmap_spec(["0", "1"], ["4"], [-1, 1]),
        lanes_spec(4),
        pareto_spec(),
    ],
)
def test_specifications_hold_neither_data_nor_addresses_nor_counters(spec: dict[str, object]) -> None:
    text = json.dumps(spec)
    assert "http" not in text
    assert "values" not in text
    assert "view_" not in text
    assert "#" not in text.replace("url(#hatch-", "")
