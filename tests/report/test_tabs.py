"""One screen, then tabs, in a real browser: short, few stops for the keyboard, every link opens the tab it leads to."""

import re
from pathlib import Path

import pytest

from traceforge.report import Report

from .browser import Page
from .budgets import STOPS

pytestmark = pytest.mark.browser

_MOST_HEIGHT = 3_500  # px at 1,280 px of width, before a tab is opened
_MOST_STOPS = 40
_FIRST_SCREEN = 1_000  # px, tabs and two further findings included
_OPEN = "return [...document.querySelectorAll('.tab-panel')].filter((one) => !one.hidden).map((one) => one.dataset.tab)"
_IN_VIEW = "const top = document.querySelector('{}').getBoundingClientRect().top; return top > -5 && top < innerHeight"


@pytest.fixture
def opened(page: Page, late_report: Report, tmp_path: Path) -> Page:
    page.open(late_report.html, tmp_path)
    return page


def press(page: Page, key: str) -> None:
    page.command("Input.dispatchKeyEvent", type="keyDown", key=key, code=key)
    page.command("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)


def test_the_page_is_short_and_has_few_stops_until_a_tab_is_opened(opened: Page) -> None:
    opened.wait("return document.querySelector('#figure-timeline').dataset.ready !== undefined")
    assert opened.run(_OPEN) == ["timeline"]
    assert int(str(opened.run("return document.documentElement.scrollHeight"))) <= _MOST_HEIGHT
    assert int(str(opened.run(STOPS))) <= _MOST_STOPS


def test_the_answer_stands_on_the_first_screen(opened: Page) -> None:
    bottom = opened.run("return Math.round(document.querySelector('nav.tabs').getBoundingClientRect().bottom)")
    assert int(str(bottom)) <= _FIRST_SCREEN


def test_on_a_narrow_screen_the_opened_tab_is_brought_into_view(
    page: Page, late_report: Report, tmp_path: Path
) -> None:
    page.open(late_report.html, tmp_path, width=400)
    page.run("document.querySelector('nav.tabs a[href=\"#trust\"]').click()")
    page.wait(
        "const own = document.querySelector('nav.tabs [aria-selected=true]').getBoundingClientRect();"
        "return own.left >= 0 && own.right <= innerWidth"
    )


@pytest.mark.parametrize(
    ("address", "tab", "target"),
    [
        ("#it=5&rank=1", "timeline", "#figure-timeline"),
        ("#finding-0", "modes", "#finding-0"),
        ("#figure-waterfall", "modes", "#figure-waterfall"),
        ("#trust", "trust", "nav.tabs"),
        ("#query-verdict", "appendix", "#query-verdict"),
    ],
)
def test_an_address_opens_the_tab_of_what_it_names(
    page: Page, late_report: Report, tmp_path: Path, address: str, tab: str, target: str
) -> None:
    # given the page, opened at an address from elsewhere
    page.open(late_report.html, tmp_path)
    page.run("location.hash = '#pacing'")
    page.wait("return document.querySelector('#pacing').closest('.tab-panel').hidden === false")

    # when a link leads to something of another tab
    page.run(f"location.hash = '{address}'")

    # then that tab is open, the others are not, and the thing is in the window
    page.wait(_OPEN.replace("return ", f"return String('{tab}') === String(") + ")")
    page.wait(_IN_VIEW.format(target))
    assert page.complaints() == []


def test_an_address_from_outside_opens_its_tab(page: Page, late_report: Report, tmp_path: Path) -> None:
    page.open(late_report.html, tmp_path)
    page.driver.get("about:blank")  # type: ignore[attr-defined]
    page.driver.get((tmp_path / "report.html").as_uri() + "#finding-1")  # type: ignore[attr-defined]
    assert page.run(_OPEN) == ["modes"]


def test_tabs_are_walked_with_arrows_and_back_returns(opened: Page) -> None:
    opened.run("document.querySelector('[role=tab]').focus()")
    press(opened, "ArrowRight")
    assert opened.run(_OPEN) == ["modes"]
    assert opened.run("return document.activeElement.getAttribute('aria-selected')") == "true"
    press(opened, "End")
    assert opened.run(_OPEN) == ["appendix"]
    opened.run("history.back()")
    opened.wait(_OPEN.replace("return ", "return String('modes') === String(") + ")")


def test_without_a_script_all_parts_are_shown(page: Page, late_report: Report, tmp_path: Path) -> None:
    without = re.sub(r"<script>.*?</script>", "", late_report.html, flags=re.DOTALL)
    page.open(without, tmp_path)
    shown = page.run("return [...document.querySelectorAll('.tab-panel')].every((one) => one.clientHeight > 50)")
    assert shown is True
    page.run("document.querySelector('nav.tabs a[href=\"#trust\"]').click()")
    page.wait(_IN_VIEW.format("#trust"))


def test_a_long_table_folds_filters_and_sorts(opened: Page) -> None:
    # given the table of lost time, with more than twelve rows
    table = "document.querySelector('#figure-losses table.rows')"
    rows = f"[...{table}.tBodies[0].rows]"
    assert opened.run(f"return {rows}.filter((row) => !row.hidden).length") == 12
    all_rows = int(str(opened.run(f"return {rows}.length")))
    assert all_rows > 12

    # when all are asked for, sorted by what was lost, twice
    opened.run(f"{table}.closest('.scroll').nextElementSibling.querySelectorAll('button')[0].click()")
    for _ in range(2):
        opened.run(f"{table}.tHead.rows[0].cells[3].querySelector('button').click()")

    # then all are shown, the largest first
    values = opened.run(f"return {rows}.filter((row) => !row.hidden).map((row) => Number(row.cells[3].dataset.value))")
    assert isinstance(values, list)
    assert len(values) == all_rows
    assert values == sorted(values, reverse=True)

    # and a filter leaves the rows that hold its text
    opened.run(
        f"const input = {table}.closest('.scroll').nextElementSibling.querySelector('input');"
        "input.value = 'RANK 2'; input.dispatchEvent(new Event('input'))"
    )
    texts = opened.run(f"return {rows}.filter((row) => !row.hidden).map((row) => row.textContent)")
    assert isinstance(texts, list)
    assert texts
    assert all("rank 2" in text for text in texts)


def test_what_is_copied_holds_no_formula(page: Page, hostile_report: Report, tmp_path: Path) -> None:
    # given a table whose cells begin with what a spreadsheet runs
    page.open(hostile_report.html, tmp_path)
    page.run("window.copyText = (text) => { window.COPIED = text; }")
    table = "document.querySelector('#figure-modes table.rows')"
    page.run(f"{table}.tBodies[0].rows[0].cells[0].textContent = '=cmd(\"x\"), 1'")

    # when it is copied
    page.run(f"[...{table}.closest('.scroll').nextElementSibling.querySelectorAll('button')].pop().click()")

    # then the cell is text, quoted as CSV wants it
    assert "'\"'\"'" not in str(page.run("return window.COPIED"))
    assert str(page.run("return window.COPIED.split('\\n')[1]")).startswith('"\'=cmd(""x""), 1",')


def test_the_title_of_the_timeline_follows_the_iteration(opened: Page) -> None:
    title = "return document.querySelector('#figure-timeline [data-walk=title]').textContent"
    opened.wait("return document.querySelector('#figure-timeline').dataset.ready !== undefined")
    assert str(opened.run(title)).startswith("Iteration 3: rank 2")
    opened.run("location.hash = 'it=5'")
    opened.wait(title + ".startsWith('Iteration 5 takes')")
    opened.run("location.hash = 'it=3&rank=2'")
    opened.wait(title + ".startsWith('Iteration 3: rank 2')")
