"""The report's section on a baseline: there when one was given, absent otherwise, inert whatever names say."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from traceforge.compare import Side, compare_runs
from traceforge.report import Report, build_report
from traceforge.report.comparison_text import headline, summary
from traceforge.store.database import Store

from .browser import Page
from .conftest import HOSTILE
from .tables import Job, store_of

HEALTHY = Job(late_rank=None, run_name=f"good{HOSTILE}")


@pytest.fixture(scope="module")
def baseline() -> Iterator[Store]:
    with store_of(HEALTHY) as store:
        store.execute("UPDATE timeline.collective SET op = ?, dtype = ?", [HOSTILE, HOSTILE])
        yield store


def report_against(baseline: Store, store: Store) -> Report:
    comparison = compare_runs(Side(baseline, 1), Side(store, 1))
    return build_report(store, run_id=1, versions={}, command=None, comparison=comparison)


def test_without_a_baseline_there_is_no_section(late_report: Report) -> None:
    assert 'id="comparison"' not in late_report.html
    assert "comparison" not in late_report.summary


def test_a_late_rank_appears_as_a_change_with_its_query(baseline: Store, late_job: Store) -> None:
    made = report_against(baseline, late_job)
    section = made.html.partition('<section id="comparison"')[2].partition("</section>")[0]
    assert "Against the baseline" in section
    assert "rank 2" in section
    assert 'href="#query-comparison-cause"' in section
    assert 'id="query-comparison-cause"' in made.html
    assert "not fully comparable: op_mix" in section.lower()


def test_names_of_the_baseline_are_text_and_no_markup(baseline: Store, late_job: Store) -> None:
    made = report_against(baseline, late_job)
    assert "<script>window.PWNED" not in made.html
    assert "<img src=x" not in made.html


def test_the_summary_carries_the_comparison_as_json(baseline: Store, late_job: Store) -> None:
    document = json.loads(json.dumps(report_against(baseline, late_job).summary["comparison"], allow_nan=False))
    assert document["iteration"]["difference_ns"] > 0
    assert {"phase", "cause", "rank_work"} <= {change["family"] for change in document["changes"]}
    assert document["not_comparable_by"][0]["field"] == "op_mix"


def test_nothing_changed_is_said_in_these_words(baseline: Store) -> None:
    found = compare_runs(Side(baseline, 1), Side(baseline, 1))
    assert headline(found).startswith("No significant change: ")
    assert summary(found) == "No phase, cause, collective or rank changed significantly."


def test_a_change_that_too_few_iterations_cannot_judge_is_not_denied(baseline: Store) -> None:
    found = compare_runs(Side(baseline, 1), Side(baseline, 1))
    unjudged = replace(found, iteration=replace(found.iteration, low_ns=None, high_ns=None, is_significant=False))
    assert headline(unjudged).startswith("Cannot be judged: ")


@pytest.mark.browser
def test_the_chart_is_drawn_without_complaint_or_request(
    page: Page, baseline: Store, late_job: Store, tmp_path: Path
) -> None:
    page.open(report_against(baseline, late_job).html, tmp_path)
    page.draw_all()
    assert page.run("return document.querySelectorAll('#comparison .chart svg .mark-group').length")
    assert page.run("return window.PWNED") is None
    assert page.complaints() == []
    assert page.requests() == [(tmp_path / "report.html").as_uri()]
