"""The fragment for another page: it executes nothing, reaches nothing outside, and shows names as text."""

import re

import pytest

from traceforge.report import Report, build_report
from traceforge.report.fragment import own_names, scoped_style
from traceforge.store.database import Store

from .conftest import hostile_store


@pytest.fixture(scope="module")
def fragment(late_job: Store) -> str:
    return build_report(late_job, run_id=1, versions={}, command=None, as_fragment=True).html


@pytest.fixture(scope="module")
def hostile_fragment() -> str:
    with hostile_store() as store:
        return build_report(store, run_id=1, versions={}, command=None, as_fragment=True).html


def test_it_is_no_page_and_runs_nothing(fragment: str, hostile_fragment: str) -> None:
    for html in (fragment, hostile_fragment):
        bare = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
        assert re.findall(r"<(?:html|head|body|script|link|iframe|img|meta|canvas)\b", bare, flags=re.IGNORECASE) == []
        assert re.findall(r"<[^>]*\son\w+\s*=", bare) == []
        assert html.strip().startswith('<div class="traceforge-report">')


def test_it_tells_the_verdict_and_the_numbers_of_every_figure(fragment: str, late_report: Report) -> None:
    figures = len(re.findall(r"<figure\b", late_report.html))
    assert "Rank 2 computes longer" in fragment
    assert len(re.findall(r"<figure\b", fragment)) == figures
    assert all('<table class="rows">' in one for one in re.findall(r"<figure\b.*?</figure>", fragment, flags=re.DOTALL))


def test_its_identifiers_are_its_own_and_its_links_lead_to_them(fragment: str) -> None:
    names = set(re.findall(r'\sid="([^"]*)"', fragment))
    assert names
    assert all(name.startswith("traceforge-report-") for name in names)
    assert {link for link in re.findall(r'href="#([^"]*)"', fragment) if link not in names} == set()


def test_names_with_quotation_marks_are_not_taken_for_identifiers() -> None:
    html = '<p id="x">&#34; id=&#34;y&#34;</p><a href="#x">z</a>'
    assert own_names(html) == (
        '<p id="traceforge-report-x">&#34; id=&#34;y&#34;</p><a href="#traceforge-report-x">z</a>'
    )


def test_every_rule_of_the_style_lies_under_its_class() -> None:
    style = scoped_style(
        ":root { --a: 1px; }\n@media print { :root { --a: 2px; } }\nbody {\n  margin: 0;\n}\np { top: 0; }"
    )

    rules = "& { --a: 1px; }\n@media print { & { --a: 2px; } }\n& {\n  margin: 0;\n}\np { top: 0; }"
    assert style == f".traceforge-report {{\n{rules}\n}}"
