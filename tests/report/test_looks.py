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

pytestmark = pytest.mark.browser

PAGES = sorted((ROOT / "reports").glob("*/report.html"))
_KEPT = Path(__file__).with_name("looks.json")
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
_CLIPPED = """
return [...document.querySelectorAll('figure, .verdict, .card, .tiles, .chart svg')].filter((element) => {
  const own = element.getBoundingClientRect();
  return own.width && (own.left < -1 || own.right > document.documentElement.clientWidth + 1);
}).map((element) => element.id || element.className.baseVal || element.className)
"""


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.parent.name)
def test_the_report_of_every_sample_draws_all_charts_in_silence(page: Page, file: Path, tmp_path: Path) -> None:
    page.open(file.read_text(encoding="utf-8"), tmp_path)
    page.draw_all()
    assert page.run("return [...document.querySelectorAll('.chart')].every((chart) => chart.querySelector('svg'))")
    assert page.complaints() == []
    assert page.requests() == [(tmp_path / "report.html").as_uri()]


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
