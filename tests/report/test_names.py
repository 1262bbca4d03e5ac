"""Names from traces are untrusted: they are shown as text, and nothing in them is ever run."""

import re
import unicodedata

import pytest

from traceforge.report import Report, build_report
from traceforge.report.embedded_data import embedded_json
from traceforge.report.formatting import clean

from .tables import Job, borrowed


def without_scripts(html: str) -> str:
    return re.sub(r"<script\b.*?</script>", "", html, flags=re.DOTALL)


def test_hostile_names_appear_as_text_only(hostile_report: Report) -> None:
    html = hostile_report.html
    assert "<script>window.PWNED" not in html
    assert "<img" not in without_scripts(html)
    assert "&lt;/script&gt;&lt;script&gt;window.PWNED=1" in html
    assert "\\u003c/script\\u003e" in html
    assert "{{7*7}}" in html


def test_the_page_holds_only_our_own_scripts(hostile_report: Report) -> None:
    kinds = re.findall(r"<script\b([^>]*)>", hostile_report.html)
    assert [kind for kind in kinds if "application/json" not in kind] == ["", "", ""]


def test_no_element_carries_a_handler_or_a_style_of_its_own(hostile_report: Report) -> None:
    bare = without_scripts(re.sub(r"<style>.*?</style>", "", hostile_report.html, flags=re.DOTALL))
    tags = re.findall(r"<[a-z][^>]*>", bare)
    assert not [tag for tag in tags if re.search(r"\s(on\w+|style)=", tag)]


def test_nothing_is_loaded_from_anywhere(hostile_report: Report) -> None:
    tags = re.findall(r"<[a-z][^>]*>", without_scripts(hostile_report.html))
    assert not [tag for tag in tags if re.search(r"\s(src|srcset|data|action|poster)=", tag)]
    assert all(target.startswith("#") for tag in tags for target in re.findall(r'\shref="([^"]*)"', tag))
    style = re.search(r"<style>(.*?)</style>", hostile_report.html, flags=re.DOTALL)
    assert style is not None
    assert "@import" not in style[1]
    assert re.findall(r"url\(([^)]*)\)", style[1]) == ["#hatch-wait", "#hatch-communication", "#hatch-unexplained"]


def test_the_policy_names_scripts_and_style_by_hash(hostile_report: Report) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', hostile_report.html)
    assert policy is not None
    directives = policy[1].replace("&#39;", "'")
    assert directives.startswith("default-src 'none'")
    assert "unsafe" not in directives
    assert len(re.findall(r"'sha256-[\w+/=]{44}'", directives)) == 4


def test_terminal_lines_hold_no_control_characters() -> None:
    with borrowed(Job(run_name="run\x1b[31m")) as store:
        store.execute("UPDATE attribute.verdict SET headline = ?", ["red \x1b[31m bell \a back \b over \u202e end"])
        lines = build_report(store, run_id=1, versions={}, command=None).verdict_lines
    assert "red" in lines[0]
    assert all(unicodedata.category(sign) not in {"Cc", "Cf"} for line in lines for sign in line)


def test_control_and_direction_characters_become_replacement_signs() -> None:
    assert clean("a\x00b\x1b[1mc\u202ed\ue000") == "a\ufffdb\ufffd[1mc\ufffdd\ufffd"


def test_line_breaks_in_a_name_become_spaces() -> None:
    assert clean("one\n two\r\n\tthree") == "one two three"


def test_a_long_name_loses_its_middle() -> None:
    short = clean("a" * 500 + "b" * 500, limit=21)
    assert short == "a" * 10 + "…" + "b" * 10


def test_an_endless_name_costs_little() -> None:
    assert len(clean("x" * 10_000_000)) <= 160


def test_an_island_holds_no_sign_that_means_anything_to_html() -> None:
    text = embedded_json({"name": "<&>\u2028é</script>"})
    assert not set(text) & set("<>&\u2028é")


def test_an_island_refuses_numbers_json_lacks() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        embedded_json([float("nan")])
