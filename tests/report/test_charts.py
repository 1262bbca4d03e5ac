"""Tables behind the charts: what is stacked sums, what is scaled keeps its sign."""

import json
import re
from pathlib import Path

import altair
import jsonschema
import pytest
import vl_convert
from altair.utils.schemapi import validate_jsonschema

from traceforge.report import charts
from traceforge.report.charts.bandwidth import bandwidth_spec
from traceforge.report.charts.forest import ForestRow, forest_spec
from traceforge.report.charts.heatmap import colour_limits, heatmap_spec
from traceforge.report.charts.pareto import pareto_spec
from traceforge.report.charts.parts import bars_spec, share_axis
from traceforge.report.charts.phases import hidden_spec, phases_spec, phases_table
from traceforge.report.charts.pipeline import pipeline_spec
from traceforge.report.charts.racks import racks_spec
from traceforge.report.charts.ring import ring_spec
from traceforge.report.charts.scaling import CurvePoint, Mark, scaling_spec, scaling_tables
from traceforge.report.charts.strip import is_crossed, strip_domain, strip_spec
from traceforge.report.charts.trend import TrendLevel, trend_spec
from traceforge.report.charts.waterfall import Bar, waterfall_spec, waterfall_table
from traceforge.report.embedded_data import packed, row_count


def test_each_bar_of_the_waterfall_begins_where_the_last_ended() -> None:
    # a ████ 5      b     ██ 2 back (a credit)      total ███ 3
    bars = [Bar("a", "", "unexplained", 5.0), Bar("b", "", "unexplained", -2.0), Bar("all", "", "total", 3.0)]
    table = waterfall_table(bars)
    assert table["start_ms"] == [0.0, 5.0, 0.0]
    assert table["end_ms"] == [5.0, 3.0, 3.0]


def test_stacked_phases_sum_to_the_iteration() -> None:
    table = phases_table(["0"], [{"compute": 80.0, "wait": 5.0, "transfer": 20.0}])
    assert table["phase"] == ["compute", "wait", "transfer"]
    assert table["start_ms"] == [0.0, 80.0, 85.0]
    assert table["end_ms"][-1] == 105.0


def test_the_scale_is_symmetric_and_never_finer_than_the_clocks() -> None:
    limits = colour_limits({0: [0.0, 0.1, -0.1], 1: [8.0, 8.2, 8.1]}, resolution_ms=0.06, least_ms=0.5)
    assert limits == [-8.0, -4.0, -2.0, -0.8, 0.8, 2.0, 4.0, 8.0]
    coarse = colour_limits({0: [0.0, 0.1], 1: [0.2, 0.3]}, resolution_ms=0.06, least_ms=0.1)
    assert coarse[4] == pytest.approx(0.06)


def test_one_spike_does_not_set_the_scale_but_a_habit_does() -> None:
    quiet = {rank: [0.1] * 50 for rank in range(100)}
    spike = {**quiet, 7: [0.1] * 49 + [90.0]}
    habit = {**quiet, 7: [9.0] * 50}
    assert colour_limits(spike, 0, 0.05)[-1] == 0.1
    assert colour_limits(habit, 0, 0.05)[-1] == 8.0


def test_a_run_without_trouble_is_left_pale() -> None:
    limits = colour_limits({0: [0.1, -0.1], 1: [0.05, 0.0]}, resolution_ms=0, least_ms=2.0)
    assert limits[4] == pytest.approx(0.2)


def test_columns_that_repeat_travel_as_codes() -> None:
    assert packed({"phase": ["a", "b", "a", "a", "b"], "ms": [1, 2, 3, 4, 5]}) == {
        "phase": {"values": ["a", "b"], "codes": [0, 1, 0, 0, 1]},
        "ms": [1, 2, 3, 4, 5],
    }
    assert row_count({}) == 0


SPECS = {
    "waterfall": waterfall_spec([Bar("a", "", "total", 1.0)], 2.0),
    "forest": forest_spec([ForestRow("a", "", 0.0, -1.0, 1.0, 2.0)]),
    "heatmap": heatmap_spec(["0", "1"], ["4"], [-1, 1]),
    "pareto": pareto_spec(),
    "phases": phases_spec(4),
    "hidden": hidden_spec(4),
    "strip": strip_spec(1.0, 2.0, {"above", "below", "change"}),
    "racks": racks_spec(["a", "b"], [-1, 1]),
    "ring": ring_spec(2, 4),
    "bars": bars_spec("bars", share_axis("share"), ("cause", "share"), ["1 %"]),
    "bandwidth": bandwidth_spec(["all_reduce", "broadcast"], [325.0, 2e10]),
    "scaling": scaling_spec(
        "efficiency, %",
        [4, 16],
        scaling_tables(
            [
                CurvePoint(4, 1.0, 0.9, 1.1, False),
                CurvePoint(8, 0.8, 0.7, 0.9, False),
                CurvePoint(16, 0.6, 0.4, 0.8, True),
            ],
            [Mark(4, 1.0, "measured")],
            [Mark(8, None, "limit")],
        ),
    ),
    "pipeline": pipeline_spec(4, 16),
    "trend": trend_spec("mean iteration, ms", [TrendLevel(1, 9, 100.0, ""), TrendLevel(10, 20, 120.0, "+20 %")]),
}


@pytest.mark.parametrize("name", ["waterfall", "forest", "heatmap", "pareto"])
def test_specifications_hold_neither_data_nor_addresses_nor_counters(name: str) -> None:
    text = json.dumps(SPECS[name])
    assert "http" not in text
    assert "values" not in text
    assert "view_" not in text
    assert "#" not in text.replace("url(#hatch-", "")


@pytest.mark.parametrize("name", SPECS)
def test_specifications_are_valid_vega_lite(name: str) -> None:
    # The page takes them as they are: to validate them there takes longer than all else.
    validate_jsonschema(SPECS[name], altair.load_schema())


def test_every_chart_has_a_specification_that_is_validated() -> None:
    makers = {path.stem for path in Path(charts.__file__).parent.glob("*.py") if "_spec(" in path.read_text()}
    assert makers - {"parts"} <= SPECS.keys()


def test_a_specification_that_is_not_valid_is_noticed() -> None:
    spec = json.loads(json.dumps(SPECS["phases"]))
    spec["mark"]["opacity"] = "much"
    with pytest.raises(jsonschema.ValidationError):
        validate_jsonschema(spec, altair.load_schema())


def test_the_axis_of_durations_starts_at_zero_where_little_would_be_left_out() -> None:
    assert strip_domain(90.0, 100.0) == [88.5, 103.0]
    assert strip_domain(5.0, 100.0)[0] == 0


def test_an_iteration_far_from_its_neighbours_in_number_can_be_seen() -> None:
    # Of a thousand numbers each is a third of a pixel wide: ends that stick out by half the line's width stay seen.
    lines = [layer["mark"] for layer in SPECS["strip"]["layer"] if "x2" in layer["encoding"]]
    assert [mark.get("strokeCap") for mark in lines if mark["type"] == "rule"] == ["square"]


def test_a_word_at_an_end_of_the_run_does_not_lie_on_the_axis() -> None:
    # given a chart of 300 px over iterations 0 to 1000, with words at its ends and in its middle
    spec = json.loads(json.dumps(strip_spec(1.0, 2.0, {"above"}))) | {"width": 300}
    durations = {"duration_ms": [2.0, 1.5, 1.5]}
    spec["datasets"] = {
        name: [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for name, table in {
            "iterations": {
                "from": [0, 500, 999], "to": [1, 501, 1000], "low_ms": [2.0, 1.5, 1.5], "high_ms": [2.0, 1.5, 1.5],
                "state": ["used"] * 3, "label": ["0", "500", "999"], **durations,
            },
            "median": {"duration_ms": [1.5]},
            "above": {"at": [0, 500, 1000], "label": ["first", "middle", "last"], **durations},
        }.items()
    }  # fmt: skip

    drawn = vl_convert.vegalite_to_svg(spec)

    # then the outer ones begin and end where their iterations are
    anchors = {word: anchor for anchor, word in re.findall(r'text-anchor="(\w+)"[^>]*>(first|middle|last)<', drawn)}
    assert anchors == {"first": "start", "middle": "middle", "last": "end"}


def test_a_word_below_a_bar_gives_way_to_the_line_of_the_median() -> None:
    # given an axis from 0 to 150 ms over 150 px: a word lies 6 to 16 px below its bar
    assert is_crossed(111.0, 100.0, [0.0, 150.0])
    assert not is_crossed(101.0, 100.0, [0.0, 150.0])
    assert not is_crossed(120.0, 100.0, [0.0, 150.0])
    assert not is_crossed(89.0, 100.0, [0.0, 150.0])
