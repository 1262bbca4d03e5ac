"""What the page says of findings: their order is the table's, and nothing of one is shown under another."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from traceforge.report import Report, build_report, terminal
from traceforge.report.context import Context
from traceforge.report.diagnosis import Verdict, leading_sentences
from traceforge.report.sections.verdict import bound_told
from traceforge.store.database import Store

from .tables import MS, Job, borrowed

BOUND = "Compute-bound: the device computes 97 % of each step."
SECOND = "Rank 1 collects garbage."


def report_of(store: Store) -> Report:
    return build_report(store, run_id=1, versions={}, command=None)


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split()).replace("\N{NO-BREAK SPACE}", " ")


def verdict_of(report: Report) -> str:
    return words(report.html.partition('<section id="verdict"')[2].partition("</section>")[0])


@pytest.fixture
def costly_but_less_sure() -> Iterator[Store]:
    """A finding of 40 ms and medium confidence, which the verdict states, before one of 5 ms and high confidence."""
    with borrowed(Job()) as store:
        for number, delay_ms, confidence in ((0, 40, "medium"), (1, 5, "high")):
            store.execute(
                "UPDATE attribute.finding SET delay_ns_per_iteration = ?, delay_low_ns = ?, delay_high_ns = ?,"
                " confidence = ? WHERE finding_id = ?",
                [delay_ms * MS, (delay_ms - 1) * MS, (delay_ms + 1) * MS, confidence, number],
            )
        store.execute("UPDATE attribute.verdict SET confidence = 'medium'")
        yield store


def test_the_verdict_and_its_cost_are_those_of_the_same_finding(costly_but_less_sure: Store) -> None:
    # given a verdict that states the first finding of the table, though the second is more certain
    report = report_of(costly_but_less_sure)

    # then the page prints the first one's cost, and the second one alone as found besides
    verdict, also_found = verdict_of(report).split("Also found")
    assert "Rank 2 computes longer" in verdict
    assert "40.0 ms" in verdict
    assert "5.00 ms" not in verdict
    assert SECOND in also_found
    assert "Rank 2 computes longer" not in also_found


def test_shares_and_costs_a_day_are_of_the_pace(costly_but_less_sure: Store) -> None:
    # given 40 ms of iterations that overlap: one begins every 80 ms
    costly_but_less_sure.execute("UPDATE attribute.pace SET pace_ns = ?", [80 * MS])

    report = report_of(costly_but_less_sure)

    # then half of the time is lost: of four ranks 48 of 96 GPU-hours a day
    assert next(line for line in report.verdict_lines if "costs:" in line).endswith("per iteration, 50 % of 80.0 ms")
    assert "50 % of 80.0 ms" in verdict_of(report)
    assert re.search(r"hours lost per day 48\.0 ", verdict_of(report))


def test_the_terminal_states_the_cost_of_the_verdict(costly_but_less_sure: Store) -> None:
    lines = report_of(costly_but_less_sure).verdict_lines

    assert next(line for line in lines if line.startswith("  costs:")).startswith("  costs: 40.0 ms (39.0 to 41.0 ms)")
    assert [line.strip() for line in lines if line.startswith("  also:")] == [f"also:  {SECOND}"]


def test_a_long_explanation_takes_lines_of_the_terminal_but_not_those_of_other_findings(
    costly_but_less_sure: Store,
) -> None:
    said = " ".join(f"Sentence {number} of an explanation that is far too long." for number in range(20))
    costly_but_less_sure.execute("UPDATE attribute.verdict SET explanation = ?", [said])
    lines = report_of(costly_but_less_sure).verdict_lines

    first = next(number for number, line in enumerate(lines) if line.startswith("  Sentence 0"))
    assert lines[first + 4].endswith("…")
    assert lines[first + 5].startswith("  costs:")
    assert f"  also:  {SECOND}" in lines


def test_where_lines_are_tight_the_explanation_gives_way_to_how_far_to_trust_it(costly_but_less_sure: Store) -> None:
    usual = report_of(costly_but_less_sure).verdict_lines
    long = [f"{name} of{' many' * 120} words." for name in ("Headline", "explanation", "next_step")]
    costly_but_less_sure.execute("UPDATE attribute.verdict SET headline = ?, explanation = ?, next_step = ?", long)
    costly_but_less_sure.execute("UPDATE attribute.finding SET summary = ? WHERE finding_id = 1", ["Many words. " * 40])

    lines = report_of(costly_but_less_sure).verdict_lines
    trust = next(number for number, line in enumerate(usual) if line.startswith("  trust:"))
    assert lines[trust - len(usual) :] == usual[trust:]
    assert len(lines) <= 15


def test_a_short_explanation_leaves_its_lines_to_other_findings(
    costly_but_less_sure: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given three lines for the explanation and what else was found
    costly_but_less_sure.execute("UPDATE attribute.verdict SET explanation = 'One line.'")
    costly_but_less_sure.execute("UPDATE attribute.finding SET summary = ? WHERE finding_id = 1", ["Many words. " * 40])
    usual = report_of(costly_but_less_sure).verdict_lines
    others = 2
    monkeypatch.setattr(terminal, "_LINES", len(usual))
    assert sum(line.startswith("  also:") for line in usual) == 1

    monkeypatch.setattr(terminal, "_LEAST_EXPLAINED", 1 + others)
    assert report_of(costly_but_less_sure).verdict_lines == usual


@pytest.mark.parametrize(
    ("explanation", "told"),
    [
        ("Where the time goes: Input-bound: all of it.", ""),
        (f"Where the time goes: {BOUND}", BOUND),
        ("Nobody owns it.", BOUND),
    ],
)
def test_a_job_has_one_answer_to_what_bounds_it(explanation: str, told: str) -> None:
    # given a job whose ranks are bound by compute, and explanations that say so, say something else, or nothing
    verdict = SimpleNamespace(headline="Nothing significant.", explanation=explanation)
    context = SimpleNamespace(rows=lambda _name: [{"sentence": BOUND}])

    assert bound_told(cast("Verdict", verdict), cast("Context", context)) == told


def test_the_summary_has_the_findings_in_the_order_of_the_table(costly_but_less_sure: Store) -> None:
    findings = report_of(costly_but_less_sure).summary["findings"]

    asked = costly_but_less_sure.query(
        "SELECT mode, cause, subject, delay_ns_per_iteration, confidence, pattern FROM attribute.finding"
        " WHERE run_id = 1 ORDER BY finding_id"
    ).to_dicts()
    assert isinstance(findings, list)
    assert [{name: finding[name] for name in row} for finding, row in zip(findings, asked, strict=True)] == asked


def test_a_failure_mode_is_answered_with_its_surest_finding(costly_but_less_sure: Store) -> None:
    costly_but_less_sure.execute("UPDATE attribute.finding SET mode = 'runtime_control_plane' WHERE finding_id = 0")

    modes = report_of(costly_but_less_sure).html.partition('<section id="modes"')[2]
    assert "Runtime and control plane found, confidence high" in words(modes)


def test_a_finding_that_an_unsure_verdict_quotes_is_not_found_again(costly_but_less_sure: Store) -> None:
    costly_but_less_sure.execute(
        "UPDATE attribute.verdict SET kind = 'nothing_significant', confidence = 'low',"
        " headline = 'Nothing is certain, as files are cut short; from what is left: ' || headline"
    )
    report = report_of(costly_but_less_sure)

    assert verdict_of(report).count("Rank 2 computes longer") == 1
    assert " ".join(" ".join(report.verdict_lines).split()).count("Rank 2 computes longer") == 1
    assert SECOND in verdict_of(report)


def test_evidence_stands_under_its_own_finding(late_report: Report) -> None:
    cards = dict(
        re.findall(r'id="finding-(\d)">(.*?)(?=id="finding-\d"|</section>)', late_report.html, flags=re.DOTALL)
    )

    assert len(cards) == 3
    for number, card in cards.items():
        assert re.findall(r"finding (\d) stands out", words(card)) == [number]
        assert re.findall(r"only one run shows finding (\d)", words(card)) == [number]


def test_the_verdict_leads_to_the_evidence_of_the_finding_it_states(late_report: Report) -> None:
    verdict = late_report.html.partition('<section id="verdict"')[2].partition("</section>")[0]

    assert re.findall(r'<a class="plain" href="#finding-(\d)">Evidence for and against', verdict) == ["0"]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (100, "Slow: 1.5 of 2 ms. It waits in train.py(3): f. What for?"),
        (50, "Slow: 1.5 of 2 ms. It waits in train.py(3): f."),
        (20, "Slow: 1.5 of 2 ms."),
        (5, "Slow: 1.5 of 2 ms."),  # the first is cut elsewhere
    ],
)
def test_a_headline_keeps_whole_sentences(limit: int, kept: str) -> None:
    assert leading_sentences("Slow: 1.5 of 2 ms. It waits in train.py(3): f. What for?", limit) == kept


def test_what_a_headline_has_no_room_for_begins_the_explanation() -> None:
    rest = f"{'It is also slow. ' * 30}".strip()
    with borrowed(Job()) as store:
        store.execute("UPDATE attribute.verdict SET headline = ?, explanation = 'So it is.'", [f"It is slow. {rest}"])
        text = verdict_of(report_of(store))

    assert "…" not in text.partition("So it is.")[0]
    assert text.count("It is also slow.") == 30
    assert "It is also slow. So it is." in text
