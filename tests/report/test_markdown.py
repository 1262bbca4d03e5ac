"""The first screen as Markdown: it says what the page says, and no name of a trace means anything in it."""

import re

from traceforge.report import Report
from traceforge.report.markdown import escaped

from .conftest import HOSTILE


def test_the_verdict_its_cost_and_the_next_step_are_said(late_report: Report) -> None:
    lines = late_report.markdown.splitlines()

    assert lines[0] == "### job42"
    assert any(line.startswith("**Rank 2 computes longer") for line in lines)
    assert any("Recoverable per iteration" in line and line.startswith("|") for line in lines)
    assert "**Next**" in lines
    assert "       traceforge compare job42.duckdb NEW_TRACES" in lines
    assert any(line.startswith("**Trust.**") for line in lines)


def test_hostile_names_are_text(hostile_report: Report) -> None:
    # given names that are markup of HTML, and code that ends code
    shown = hostile_report.markdown

    # then no tag but our own is left, and every backtick is escaped
    assert set(re.findall(r"<[^>]*>", shown)) == {"<sub>", "</sub>"}
    outside = "\n".join(line for line in shown.splitlines() if not line.startswith("       "))
    assert re.findall(r"(?<!\\)`", outside) == []
    assert "&lt;script&gt;" in shown
    assert HOSTILE not in shown


def test_names_become_no_links_images_mentions_issues_or_tables() -> None:
    told = escaped("[a](http://evil) ![b](c) @everyone #12 www.evil.com | x\n# y ~~z~~ **w** <img> ``` 1.5 ms, 3: 4")

    assert told == (
        "\\[a\\]\\(http&#58;//evil\\) \\!\\[b\\]\\(c\\) &#64;everyone &#35;12 www&#46;evil&#46;com \\| x "
        "&#35; y \\~\\~z\\~\\~ \\*\\*w\\*\\* &lt;img&gt; \\`\\`\\` 1.5 ms, 3: 4"
    )


def test_a_command_with_a_hostile_target_stays_on_its_line(hostile_report: Report) -> None:
    commands = [line for line in hostile_report.markdown.splitlines() if line.startswith("       ")]

    assert commands == ["       traceforge compare TRACES NEW_TRACES"]
