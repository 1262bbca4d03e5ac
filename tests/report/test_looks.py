"""How the page looks, coarsely: heights of sections, marks of charts, what a printer gets. Fonts may differ.

The numbers kept in looks.json are of one made-up job at one width; `--update-golden` writes them anew.
"""

import base64
import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from traceforge.report import Report

from .browser import Page
from .budgets import STOPS, open_first_finding, settled

pytestmark = pytest.mark.browser

PAGES = sorted((ROOT / "reports").glob("*/report.html"))
_KEPT = Path(__file__).with_name("looks.json")
_MOST_HEIGHT, _MOST_STOPS = 3_500, 40  # px at 1,280 px of width, and stops, before a tab is opened
_TOLERANCE = 0.25  # of a height: another font breaks lines elsewhere
_PRINTED_WIDTH, _PRINTED_HEIGHT = 718, 1_040  # px of A4 within Chromium's margins

_LOOKS = """
const height = (element) => Math.round(element.getBoundingClientRect().height);
const looks = {};
document.querySelectorAll('.absent').forEach((fold) => { fold.open = true; });
document.querySelectorAll('section').forEach((section) => {
  looks[section.id] = {
    height: height(section),
    charts: [...section.querySelectorAll('.chart svg')].map((chart) => height(chart)),
    marks: section.querySelectorAll('.chart svg .mark-rect path, .chart svg .mark-symbol path').length,
  };
});
return looks;
"""
# A chart without a name, or a mark in it that a screen reader would stop at.
_NAMELESS = """
return [...document.querySelectorAll('.chart svg:not([role=img][aria-label]), .chart svg :is([role], [aria-label])')]
  .map((element) => element.outerHTML.slice(0, 120))
"""
_BROKEN_TABLES = """
return [...document.querySelectorAll('table')].filter((table) => table.checkVisibility()).filter((table) => {
  const frame = table.closest('figure, section').getBoundingClientRect();
  const tallest = Math.max(0, ...[...table.querySelectorAll('td')].map((cell) => cell.clientHeight));
  return table.getBoundingClientRect().right > frame.right + 1 || tallest > 160;
}).map((table) => table.closest('figure, section').id)
"""
_CLIPPED = """
return [...document.querySelectorAll('figure, .verdict, .card, .tiles, .chart svg')].filter((element) => {
  const own = element.getBoundingClientRect();
  return own.width && (own.left < -1 || own.right > document.documentElement.clientWidth + 1);
}).map((element) => element.id || element.className.baseVal || element.className)
"""


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.parent.name)
def test_the_report_of_every_sample_is_short_leads_to_its_finding_and_draws_in_silence(
    page: Page, file: Path, tmp_path: Path
) -> None:
    # given the page as a reader opens it
    page.open(file.read_text(encoding="utf-8"), tmp_path)
    settled(page)

    # then it is short, and few stops lie on the keyboard's way
    assert int(str(page.run("return document.documentElement.scrollHeight"))) <= _MOST_HEIGHT
    assert int(str(page.run(STOPS))) <= _MOST_STOPS

    # and a click on its first finding shows an outlined block, unless the verdict is that nothing stands out
    is_quiet = file.parent.name in ("healthy", "tp2dp2")
    assert open_first_finding(page) == ("none" if is_quiet else "shown")

    # and all charts are drawn, each a picture with a name, without a word on the console or a request
    page.draw_all()
    assert page.run(_NAMELESS) == []
    assert page.complaints() == []
    assert page.requests() == [(tmp_path / "report.html").as_uri()]


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.parent.name)
def test_the_answer_and_the_timeline_of_every_sample_are_a_printed_page_each(
    page: Page, file: Path, tmp_path: Path
) -> None:
    page.open(file.read_text(encoding="utf-8"), tmp_path, width=_PRINTED_WIDTH)
    settled(page)
    page.draw_all()
    page.command("Emulation.setEmulatedMedia", media="print")
    try:
        first, second = page.run(  # type: ignore[misc]
            "const panel = document.querySelector('.tab-panel').getBoundingClientRect();"
            "return [panel.top + scrollY, panel.height]"
        )
        assert 0 < first <= _PRINTED_HEIGHT
        assert 0 < second <= _PRINTED_HEIGHT
        # and no table of the appendix leaves its frame, or breaks its words letter by letter
        assert page.run(_BROKEN_TABLES) == []
    finally:
        page.command("Emulation.setEmulatedMedia", media="")


def test_the_page_looks_as_it_did(page: Page, late_report: Report, tmp_path: Path, update_golden: bool) -> None:
    # given the looks of the page when somebody last looked at it
    page.open(late_report.html, tmp_path)
    page.draw_all()
    looks = page.run(_LOOKS)
    assert isinstance(looks, dict)
    if update_golden:
        _KEPT.write_text(json.dumps(looks, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    kept = json.loads(_KEPT.read_text(encoding="utf-8"))

    # then it has the same sections and charts, about as high, with exactly as many marks
    assert list(looks) == sorted(kept, key=list(looks).index)
    for name, section in kept.items():
        assert looks[name]["marks"] == section["marks"], name
        assert looks[name]["charts"] == pytest.approx(section["charts"], rel=0.1, abs=8), name
        assert looks[name]["height"] == pytest.approx(section["height"], rel=_TOLERANCE, abs=60), name


def test_nothing_is_cut_off_on_paper(page: Page, late_report: Report, tmp_path: Path) -> None:
    # given charts drawn for a wide screen
    page.open(late_report.html, tmp_path)
    page.draw_all()

    # when the page is laid out for A4
    page.command("Emulation.setEmulatedMedia", media="print")
    page.command(
        "Emulation.setDeviceMetricsOverride", width=_PRINTED_WIDTH, height=1_000, deviceScaleFactor=1, mobile=False
    )
    try:
        assert page.run(_CLIPPED) == []
        tallest = page.run(
            "return Math.max(...[...document.querySelectorAll('.chart svg')].map((c) => c.clientHeight))"
        )
        assert 0 < int(str(tallest)) < _PRINTED_HEIGHT
        # the frame around the iteration shown was placed on the screen's chart, which is larger
        assert page.run("return document.querySelector('.cells').checkVisibility()") is False
    finally:
        page.command("Emulation.setEmulatedMedia", media="")


def test_the_printed_file_has_a_few_pages_and_every_chart_on_them(
    page: Page, late_report: Report, tmp_path: Path
) -> None:
    page.open(late_report.html, tmp_path, scheme="dark")
    printed = page.command("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)
    pdf = base64.b64decode(str(printed["data"]))
    pages = len(re.findall(rb"/Type /Page\b", pdf))
    assert pdf.startswith(b"%PDF-")
    assert 4 <= pages <= 40
    assert page.run("return [...document.querySelectorAll('.chart')].every((c) => c.dataset.state === 'drawn')")
