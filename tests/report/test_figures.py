"""What charts draw is what the tables hold: the right rank, the right iteration, the right unit."""

import json
import re
from typing import Any

import pytest

from tests import given
from tests.attribute.jobs import traces_of
from tests.given import US, built
from traceforge.api import STAGES
from traceforge.report import Report, build_report
from traceforge.store.database import Store


@pytest.fixture(scope="module")
def figures(late_report: Report) -> dict[str, Any]:
    """The data of each figure, as the page's script reads them."""
    return figures_of(late_report)


def figures_of(report: Report) -> dict[str, Any]:
    found = re.findall(r'<script type="application/json" id="data-([\w-]+)">(.*?)</script>', report.html, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def column(values: Any) -> list[Any]:
    return [values["values"][code] for code in values["codes"]] if isinstance(values, dict) else values


def table(panel: dict[str, Any], name: str) -> dict[str, list[Any]]:
    return {key: column(values) for key, values in panel["data"][name].items()}


def test_the_strip_draws_each_iteration_at_its_own_duration(figures: dict[str, Any], late_job: Store) -> None:
    drawn = table(figures["strip"]["panels"][0], "iterations")

    asked = late_job.query("SELECT iteration, duration_ns / 1e6 FROM timeline.iteration ORDER BY iteration").rows()
    found = [(round(left + 0.4), duration) for left, duration in zip(drawn["from"], drawn["duration_ms"], strict=True)]
    assert found == [(number, pytest.approx(duration_ms, abs=1e-5)) for number, duration_ms in asked]


def test_the_heat_map_draws_each_cell_at_its_rank_and_iteration(figures: dict[str, Any], late_job: Store) -> None:
    drawn = table(figures["lateness"]["panels"][0], "cells")

    asked = late_job.query(
        "SELECT rank, iteration, (arrival_ns - MEDIAN(arrival_ns) OVER (PARTITION BY iteration)) / 1e6"
        " FROM timeline.arrival JOIN timeline.iteration USING (run_id, iteration) WHERE NOT is_warmup"
    ).rows()
    found = {
        (int(rank), int(iteration)): value
        for rank, iteration, value in zip(drawn["rank"], drawn["iteration"], drawn["lateness_ms"], strict=True)
    }
    assert found == {(rank, iteration): pytest.approx(value, abs=1e-3) for rank, iteration, value in asked}


def test_the_stacks_draw_each_rank_with_its_mean_phases(figures: dict[str, Any], late_job: Store) -> None:
    drawn = table(figures["steps"]["panels"][0], "phases")

    asked = late_job.query(
        "SELECT rank, phase, SUM(p.duration_ns) / 1e6 / (SELECT COUNT(*) FROM timeline.iteration WHERE NOT is_warmup)"
        " FROM timeline.phase AS p JOIN timeline.iteration AS i USING (run_id, iteration)"
        " WHERE NOT i.is_warmup GROUP BY ALL HAVING SUM(p.duration_ns) > 0"
    ).rows()
    found = {
        (int(rank), phase): value
        for rank, phase, value in zip(drawn["rank"], drawn["phase"], drawn["duration_ms"], strict=True)
    }
    assert found == {(rank, phase): pytest.approx(value, abs=1e-4) for rank, phase, value in asked}


def test_the_cost_of_a_card_is_that_of_its_finding(late_report: Report, late_job: Store) -> None:
    asked = late_job.query(
        "SELECT finding_id, delay_ns_per_iteration / mean_ns * 24 * 4 AS hours FROM attribute.finding, "
        "(SELECT AVG(duration_ns) AS mean_ns FROM timeline.iteration WHERE NOT is_warmup)"
    ).rows()
    for finding_id, hours in asked:
        card = late_report.html.partition(f' id="finding-{finding_id}">')[2]
        shown = re.findall(r'<data value="([\d.e-]+)" data-unit="gpu_hours">', card)[0]
        assert float(shown) == pytest.approx(hours)


def test_ranks_that_are_blamed_together_share_a_bar() -> None:
    # given two ranks of six that are 40 us late in all of 12 iterations
    late = {(i, rank): 40 * US for i in range(12) for rank in (1, 4)}
    with built(given.store_of(*traces_of(late, iterations=12, ranks=6)), *STAGES) as store:
        page = build_report(store, run_id=0, versions={}, command="traceforge report")

    # then one bar holds the delay of both, 40 us of each iteration
    drawn = table(figures_of(page)["waterfall"]["panels"][0], "bars")
    place = drawn["label"].index("Slow compute, ranks 1, 4")
    assert drawn["end_ms"][place] - drawn["start_ms"][place] == pytest.approx(0.04)
