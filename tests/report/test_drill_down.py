"""From the overview of who is late to one iteration, rank by rank: by mouse, by keyboard, and back."""

from pathlib import Path

import pytest

from traceforge.report import Report

from .browser import Page

pytestmark = pytest.mark.browser

_SHOWN = (
    "const own = document.querySelector('#figure-lateness .shown').getBoundingClientRect();"
    "const plot = document.querySelector('#figure-lateness .role-frame.root path.background').getBoundingClientRect();"
    "return Math.round(7 * (own.left - plot.left) / plot.width)"
)


@pytest.fixture
def opened(page: Page, late_report: Report, tmp_path: Path) -> Page:
    """The report of seven iterations (1 to 7) by four ranks, with all charts drawn."""
    page.open(late_report.html, tmp_path)
    page.draw_all()
    return page


def press(page: Page, *keys: str) -> None:
    for key in keys:
        text = {"text": "\r"} if key == "Enter" else {}
        page.command("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **text)
        page.command("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)


def test_a_click_on_a_cell_opens_its_iteration(opened: Page) -> None:
    # given the overview of seven iterations
    opened.run("document.querySelector('#figure-lateness').scrollIntoView({block: 'center', behavior: 'instant'})")

    # when the cell of rank 2 in iteration 5 is clicked
    place = opened.run(
        "const plot = document.querySelector('#figure-lateness .role-frame.root path.background')"
        ".getBoundingClientRect(); return [plot.left + 4.5 / 7 * plot.width, plot.top + 0.7 * plot.height]"
    )
    assert isinstance(place, list)
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        opened.command(
            "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1],
            button="none" if kind == "mouseMoved" else "left", clickCount=0 if kind == "mouseMoved" else 1,
        )  # fmt: skip

    # then the timeline shows it, and the overview marks its column
    opened.wait("return location.hash.startsWith('#it=5&rank=2')")
    opened.wait("return document.querySelector('[data-walk=iteration]').value === '5'")
    assert opened.run("return document.querySelector('[data-walk=rank]').value") == "2"
    opened.wait(f"{_SHOWN} === 4")
    assert opened.complaints() == []


def test_the_keyboard_alone_reaches_a_cell_and_opens_it(opened: Page) -> None:
    # given the focus on the cells, where the Tab key brings it
    opened.run("document.querySelector('#figure-lateness .cells').focus()")

    # when the arrow keys move to rank 2, iteration 4, and Enter is pressed
    press(opened, "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight")
    told = str(opened.run("return document.querySelector('#figure-lateness .readout').textContent"))
    press(opened, "Enter")

    # then the place was told in words, and the timeline shows it
    assert told.startswith("Rank 2, iteration 4: ")
    assert "ms after the median rank" in told
    opened.wait("return document.querySelector('[data-walk=iteration]').value === '4'")
    opened.wait(f"{_SHOWN} === 3")
    assert opened.complaints() == []


def test_the_cursor_stays_on_the_cells(opened: Page) -> None:
    opened.run("document.querySelector('#figure-lateness .cells').focus()")
    press(opened, "ArrowUp", "ArrowLeft", "End", "PageDown", "PageDown", "ArrowRight")
    told = str(opened.run("return document.querySelector('#figure-lateness .readout').textContent"))
    assert told.startswith("Rank 3, iteration 7: ")


def test_tab_reaches_the_verdict_the_contents_and_the_cells_in_the_order_of_the_page(opened: Page) -> None:
    # Some versions of Chromium go on from where the page was scrolled to: begin at its top.
    opened.run("window.scrollTo(0, 0); document.body.tabIndex = -1; document.body.focus()")
    seen: list[str] = []
    for _ in range(160):
        press(opened, "Tab")
        place = (
            "const at = document.activeElement;"
            "return at.dataset.walk || at.id || at.className || at.getAttribute('href') || at.tagName"
        )
        seen.append(str(opened.run(place)))
        if seen[-1] == "cells":
            break
    assert seen[0] == "skip"
    assert seen.index("moment moment-first") < seen.index("plain") < seen.index("lanes") < seen.index("cells")
