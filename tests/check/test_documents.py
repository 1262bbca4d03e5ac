"""JUnit and markdown: complete, and inert whatever a run is called."""

from xml.etree import ElementTree

import pytest

from traceforge.check import METRICS, LimitOutcome, LimitResult, MetricLimit
from traceforge.check.documents import escaped, junit, markdown, sentence
from traceforge.check.measured import MeasuredValue

HOSTILE = "a]]>\x00\x1b<b>&\"'|`*\n# x [y](javascript:z)\ufffe"
RESULTS = [
    LimitResult(MetricLimit(METRICS["iteration_ms"], 100.0), MeasuredValue(90.0, 88.0, 92.0), LimitOutcome.ok),
    LimitResult(MetricLimit(METRICS["p95_ms"], 100.0), MeasuredValue(101.0, 96.0, 104.0), LimitOutcome.within_noise),
    LimitResult(
        MetricLimit(METRICS["wait_share"], 0.1, "baseline 5 % + 5 points"), MeasuredValue(0.2), LimitOutcome.exceeded
    ),
    LimitResult(MetricLimit(METRICS["finding_confidence"], 1.0), None, LimitOutcome.not_measured),
]


def test_junit_has_a_test_a_limit_and_counts_what_failed() -> None:
    suite = ElementTree.fromstring(junit(RESULTS, HOSTILE))  # noqa: S314  # our own text
    assert suite.attrib["tests"] == "4"
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("1", "1")
    cases = {case.attrib["name"]: case for case in suite}
    assert len(cases["iteration_ms"]) == 0
    assert "within noise" in str(cases["p95_ms"].findtext("system-out"))
    failure = cases["wait_share against baseline"].find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "wait_share is 20 %, limit 10 % (baseline 5 % + 5 points), 100 % above it"
    assert cases["finding_confidence"].find("error") is not None
    assert "<b>" in cases["iteration_ms"].attrib["classname"], "the name survives as text"


def test_markdown_is_one_table_in_which_names_act_on_nothing() -> None:
    text = markdown(RESULTS, HOSTILE)
    head, _, *rows = text.splitlines()
    assert len(rows) == 2 + len(RESULTS)
    assert all(row.startswith("| ") and row.endswith(" |") for row in rows)
    assert "<b>" not in head
    assert "\\[y\\]\\(javascript:z\\)" in head
    assert "| **exceeded** | `wait_share` | 20 % |  | 10 % (baseline 5 % + 5 points) |" in rows


@pytest.mark.parametrize("text", ["a\nb", "x\r\ny", "\u2028"])
def test_an_escaped_name_is_one_line(text: str) -> None:
    assert len(escaped(text).splitlines()) <= 1


def test_a_line_tells_value_interval_limit_and_margin() -> None:
    assert sentence(RESULTS[0]) == "iteration_ms is 90 ms (88 ms to 92 ms), limit 100 ms, 10 % below it"
    assert sentence(RESULTS[1]) == "p95_ms is 101 ms (96 ms to 104 ms), limit 100 ms, 1 % above it"
    reached = LimitResult(MetricLimit(METRICS["iteration_ms"], 90.0), MeasuredValue(90.0, 88.0, 92.0), LimitOutcome.ok)
    assert sentence(reached).endswith("limit 90 ms, 0 % below it")
    assert sentence(RESULTS[3]) == "finding_confidence cannot be measured in this run; limit low"
