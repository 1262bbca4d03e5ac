"""The page in a real browser: it draws, it obeys its own policy, it follows the reader, and names stay names."""

from pathlib import Path

import pytest

from traceforge.report import Report

from .browser import Page

pytestmark = pytest.mark.browser

_CHARTS = 6


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_charts_are_drawn_without_complaint_or_request(
    page: Page, late_report: Report, tmp_path: Path, scheme: str
) -> None:
    page.open(late_report.html, tmp_path, scheme=scheme)
    page.draw_all()
    assert page.run("return document.querySelectorAll('.chart svg .mark-group').length") >= _CHARTS  # type: ignore[operator]
    assert page.complaints() == []
    assert page.requests() == [(tmp_path / "report.html").as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_do_nothing_and_are_shown(
    page: Page, hostile_report: Report, tmp_path: Path, scheme: str
) -> None:
    page.open(hostile_report.html, tmp_path, scheme=scheme)
    page.draw_all()
    assert page.run("return window.PWNED") is None
    assert page.complaints() == []
    assert page.requests() == [(tmp_path / "report.html").as_uri()]
    assert "<script>window.PWNED=1</script>" in str(page.run("return document.querySelector('h1').textContent"))
    labels = str(page.run("return document.querySelector('#figure-waterfall .chart svg').textContent"))
    assert "<script>window.PWNED=1" in labels


def test_a_hostile_name_in_a_tooltip_is_text(page: Page, hostile_report: Report, tmp_path: Path) -> None:
    page.open(hostile_report.html, tmp_path)
    page.draw_all()
    page.run("document.querySelector('#figure-waterfall').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = page.run(
        "const bar = document.querySelector('#figure-waterfall .mark-rect path').getBoundingClientRect();"
        "return [bar.x + bar.width / 2, bar.y + bar.height / 2]"
    )
    assert isinstance(box, list)
    page.command("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    page.wait("return document.querySelector('#vg-tooltip-element.visible') !== null")
    assert "window.PWNED=1" in str(page.run("return document.querySelector('#vg-tooltip-element').textContent"))
    assert page.run("return document.querySelector('#vg-tooltip-element img')") is None
    assert page.run("return window.PWNED") is None
    assert page.complaints() == []


def test_charts_are_drawn_only_when_they_come_near(page: Page, late_report: Report, tmp_path: Path) -> None:
    page.open(late_report.html, tmp_path)
    states = page.run("return [...document.querySelectorAll('.chart')].map((chart) => chart.dataset.state ?? '')")
    assert isinstance(states, list)
    assert states[-1] == ""


def test_printing_draws_what_was_never_scrolled_to(page: Page, late_report: Report, tmp_path: Path) -> None:
    page.open(late_report.html, tmp_path, scheme="dark")
    printed = page.command("Page.printToPDF", printBackground=True)
    assert len(str(printed["data"])) > 20_000
    states = page.run("return [...document.querySelectorAll('.chart')].map((chart) => chart.dataset.state)")
    assert isinstance(states, list)
    assert len(states) >= _CHARTS
    assert set(states) == {"drawn"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_in_charts_can_be_read_in_both_schemes(
    page: Page, late_report: Report, tmp_path: Path, scheme: str
) -> None:
    page.open(late_report.html, tmp_path, scheme=scheme)
    page.draw_all()
    colours = page.run(
        "const figure = getComputedStyle(document.querySelector('figure')).backgroundColor;"
        "const words = [...document.querySelectorAll('.chart svg text')];"
        "return [figure, [...new Set(words.map((word) => getComputedStyle(word).fill))]]"
    )
    assert isinstance(colours, list)
    assert colours[1]
    for colour in colours[1]:
        assert _contrast(_channels(colour), _channels(colours[0])) >= 4.5


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("report", ["late_report", "hostile_report"])
def test_nothing_is_wider_than_the_window(
    page: Page, report: str, request: pytest.FixtureRequest, tmp_path: Path, width: int
) -> None:
    page.open(request.getfixturevalue(report).html, tmp_path, width=width)
    page.draw_all()
    page.run("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert page.run("return document.documentElement.scrollWidth <= window.innerWidth") is True


def test_words_of_a_chart_stay_inside_it_on_a_narrow_screen(page: Page, late_report: Report, tmp_path: Path) -> None:
    page.open(late_report.html, tmp_path, width=400)
    page.draw_all()
    cut_off = page.run(
        "return [...document.querySelectorAll('.chart svg text')].filter((word) => {"
        "const own = word.getBoundingClientRect(), chart = word.closest('.chart').getBoundingClientRect();"
        "return own.width && (own.left < chart.left - 1 || own.right > chart.right + 1); })"
        ".map((word) => word.textContent)"
    )
    assert cut_off == []


def test_a_link_to_a_query_opens_it(page: Page, late_report: Report, tmp_path: Path) -> None:
    page.open(late_report.html, tmp_path)
    page.run("document.querySelector('#figure-clocks .sources a').click()")
    page.wait("return document.querySelector('#query-clock_hosts').open")


def _channels(colour: str) -> list[float]:
    return [float(part) for part in colour.removeprefix("rgba(").removeprefix("rgb(").rstrip(")").split(",")[:3]]


def _contrast(one: list[float], other: list[float]) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(channels: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in channels)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
