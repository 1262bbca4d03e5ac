"""What a page may ask of its reader, measured in a browser. In: an open page. Out: numbers and places."""

from pathlib import Path

from .browser import Page

STOPS = (
    "return [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter((one) =>"
    "one.tabIndex >= 0 && !one.disabled && one.checkVisibility({visibilityProperty: true})).length"
)

_LEAST_OUTLINED = 50  # px
_OUTLINED = (
    "const canvas = document.querySelector('#figure-timeline [data-walk=lanes]');"
    "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
    "const hex = getComputedStyle(canvas).getPropertyValue('--bad').trim();"
    "const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));"
    "let count = 0;"
    "for (let at = 0; at < data.length; at += 4)"
    "  count += data[at] === r && data[at + 1] === g && data[at + 2] === b;"
    "return count"
)
_AXE = (
    "const done = arguments[arguments.length - 1];"
    "axe.run(document, {resultTypes: ['violations']}).then((found) => done(found.violations.map((one) => one.id)))"
)


def settled(page: Page) -> None:
    """Wait until the timeline, if there is one, has been drawn and listens."""
    page.wait("const own = document.querySelector('#figure-timeline'); return !own || own.dataset.ready !== undefined")


def open_first_finding(page: Page) -> str:
    """Click "Show it in the timeline" of the verdict, and look for its outlined block.

    Returns:
        `none` where the verdict has no moment, `not shown` where the timeline does not come into the window with
        something outlined, else `shown`.
    """
    if not page.run("return document.querySelector('.moment-first') !== null"):
        return "none"
    page.run("document.querySelector('.moment-first').click()")
    page.wait("return document.querySelector('#figure-timeline').dataset.moment !== undefined")
    page.wait("return document.querySelector('[data-walk=totals-title]').textContent !== ''")
    # On a short page it cannot reach the top of the window.
    page.wait("return document.querySelector('#figure-timeline').getBoundingClientRect().top < innerHeight / 2")
    try:
        page.wait(f"return (() => {{ {_OUTLINED} }})() > {_LEAST_OUTLINED}", patience_s=5)
    except AssertionError:
        return "not shown"
    return "shown"


def outlined(page: Page) -> int:
    """Pixels of the timeline in the colour that outlines a finding's moment."""
    found = page.run(_OUTLINED)
    assert isinstance(found, int)
    return found


def violations(page: Page, html: str, folder: Path, scheme: str, axe: str) -> set[str]:
    """Rules of axe-core that a page violates with all tabs and folds open; none where there is no script of axe."""
    if not axe:
        return set()
    page.open(html, folder, scheme=scheme)
    page.draw_all()
    page.run("document.querySelectorAll('main details').forEach((fold) => { fold.open = true; })")
    page.driver.set_script_timeout(120)  # type: ignore[attr-defined]
    page.command("Runtime.evaluate", expression=axe)
    return set(page.driver.execute_async_script(_AXE))  # type: ignore[attr-defined]
