"""The timeline in a real browser: a finding leads to its moment, the reader moves freely, names stay names."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.report.browser import Page
from tests.report.budgets import outlined
from tests.report.tables import Job, borrowed, store_of
from traceforge.report import Report, build_report
from traceforge.report.bundle import asset
from traceforge.units import format_ns

pytestmark = pytest.mark.browser

_FIGURE = "document.querySelector('#figure-timeline')"
_LANES = f"{_FIGURE}.querySelector('[data-walk=lanes]')"
_TIP = f"{_FIGURE}.querySelector('[data-walk=tip]')"
_SPAN = f"return [Number({_FIGURE}.dataset.from), Number({_FIGURE}.dataset.to)]"


@pytest.fixture
def walk(page: Page, late_report: Report, tmp_path: Path) -> Page:
    """The report of seven iterations by four ranks on two hosts; its timeline is drawn and in view."""
    page.open(late_report.html, tmp_path)
    page.wait(f"return {_FIGURE}.dataset.ready !== undefined")
    page.run(f"{_FIGURE}.scrollIntoView({{block: 'start', behavior: 'instant'}})")
    return page


def span_of(page: Page) -> list[float]:
    found = page.run(_SPAN)
    assert isinstance(found, list)
    return found


def settled(page: Page) -> list[float]:
    """What is in view once nothing moves any more."""
    page.wait(
        f"const now = {_FIGURE}.dataset.from + ' ' + {_FIGURE}.dataset.to; const is = window.BEFORE === now;"
        "window.BEFORE = now; return is"
    )
    return span_of(page)


def still(page: Page) -> None:
    """Wait until the lanes stay where they are for 12 frames: a wheel scrolls on after it was turned."""
    page.wait(
        f"return new Promise((done) => {{ let left = 12; const top = {_LANES}.getBoundingClientRect().top;"
        f"const look = () => {_LANES}.getBoundingClientRect().top !== top ? done(false)"
        ": (left -= 1) ? requestAnimationFrame(look) : done(true); look(); })"
    )


def at(page: Page, x: float, y: float) -> tuple[float, float]:
    """A place of the window that nothing covers, from a share of the canvas' width and px from its top."""
    still(page)
    box = page.run(f"const own = {_LANES}.getBoundingClientRect(); return [own.left + own.width * {x}, own.top + {y}]")
    assert isinstance(box, list)
    assert page.run(f"return document.elementFromPoint({box[0]}, {box[1]}) === {_LANES}"), "something covers the lanes"
    return box[0], box[1]


def mouse(page: Page, kind: str, place: tuple[float, float], **more: object) -> None:
    page.command("Input.dispatchMouseEvent", **{"type": kind, "x": place[0], "y": place[1], "button": "left", **more})


def drag(page: Page, start: tuple[float, float], end: tuple[float, float], **more: object) -> None:
    mouse(page, "mousePressed", start, clickCount=1, **more)
    for share in (0.3, 0.7, 1.0):
        between = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        mouse(page, "mouseMoved", between, buttons=1, **more)
    mouse(page, "mouseReleased", end, clickCount=1, **more)


def press(page: Page, key: str) -> None:
    text = {"text": key} if len(key) == 1 else {}
    page.command("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
    page.command("Input.dispatchKeyEvent", type="keyUp", key=key)


def test_the_link_of_the_first_finding_shows_its_moment_outlined_and_back_works(
    page: Page, late_report: Report, tmp_path: Path
) -> None:
    # given a page just opened, at its top
    page.open(late_report.html, tmp_path)
    page.wait(f"return {_FIGURE}.dataset.ready !== undefined")

    # when the first link to a moment is clicked, right after something else was
    page.run(f"{_FIGURE}.querySelector('[data-walk=in]').click(); document.querySelector('a.moment').click()")
    page.wait(f"return {_FIGURE}.dataset.moment === '0'")
    shown = settled(page)

    # then the timeline is in the window, shows rank 2 in iteration 3, and outlines what the others wait for
    page.wait(f"const top = {_FIGURE}.getBoundingClientRect().top; return top > -40 && top < 200")
    page.wait("return new Promise((done) => setTimeout(() => done(location.hash === '#it=3&rank=2'), 400))")
    assert page.run(f"return {_FIGURE}.querySelector('[data-walk=rank]').value") == "2"
    assert outlined(page) > 200
    assert shown[1] - shown[0] < 60_000, "an iteration takes 111 ms, its excess 8 ms; steps are µs"
    assert "Rank 2 computes longer" in str(
        page.run(f"return {_FIGURE}.querySelector('[data-walk=readout]').textContent")
    )

    # and the second finding has its own, from which the browser's back leads to the first
    page.run("location.hash = 'it=4&rank=1'")
    page.wait(f"return {_FIGURE}.dataset.moment === '1'")
    page.run("history.back()")
    page.wait(f"return {_FIGURE}.dataset.moment === '0'")
    assert page.complaints() == []
    assert page.requests() == [(tmp_path / "report.html").as_uri()]


def test_a_page_opened_with_an_address_shows_what_it_says(page: Page, late_report: Report, tmp_path: Path) -> None:
    page.open(late_report.html, tmp_path)
    page.driver.get("about:blank")  # type: ignore[attr-defined]
    page.driver.get((tmp_path / "report.html").as_uri() + "#it=5&rank=1&t=10-20.5")  # type: ignore[attr-defined]
    page.wait(f"return {_FIGURE}.dataset.ready !== undefined")

    low, high = settled(page)
    assert high - low == pytest.approx(10_500)
    assert page.run(f"return {_FIGURE}.querySelector('[data-walk=iteration]').value") == "5"
    page.wait(f"const top = {_FIGURE}.getBoundingClientRect().top; return top > -40 && top < 400")


def test_an_address_that_makes_no_sense_shows_the_nearest_place(
    page: Page, late_report: Report, tmp_path: Path
) -> None:
    page.open(late_report.html, tmp_path)
    page.wait(f"return {_FIGURE}.dataset.ready !== undefined")
    page.run("location.hash = 'it=99999&rank=<img src=x onerror=alert(1)>&t=9-2'")
    page.wait(f"return {_FIGURE}.querySelector('[data-walk=iteration]').value === '7'")
    low, high = settled(page)
    assert high - low > 100_000
    assert page.complaints() == []


def test_dragging_moves_and_the_wheel_zooms_only_where_it_was_asked_to(walk: Page) -> None:
    # given the iteration of the first finding in view
    low, high = settled(walk)

    # when the wheel turns without a click before, the page scrolls and the timeline stays
    place = at(walk, 0.5, 60)
    mouse(walk, "mouseWheel", place, deltaX=0, deltaY=120, button="none")
    still(walk)
    walk.run(f"{_FIGURE}.scrollIntoView({{block: 'start', behavior: 'instant'}})")
    assert settled(walk) == [low, high]

    # when it is dragged to the left by a quarter, later time comes into view, and no less of it
    drag(walk, at(walk, 0.75, 60), at(walk, 0.5, 60))
    walk.wait(f"return Number({_FIGURE}.dataset.from) > {low}")
    moved = settled(walk)
    assert moved[1] - moved[0] == pytest.approx(high - low)

    # when the wheel turns with Ctrl, less time is in view, around the pointer
    mouse(walk, "mouseWheel", at(walk, 0.5, 60), deltaX=0, deltaY=-240, modifiers=2, button="none")
    walk.wait(f"return Number({_FIGURE}.dataset.to) - Number({_FIGURE}.dataset.from) < {0.9 * (high - low)}")
    zoomed = settled(walk)
    assert moved[0] < zoomed[0] < zoomed[1] < moved[1]
    walk.wait("return /^#it=\\d+.*&t=-?[\\d.]+-[\\d.]+$/.test(location.hash)")
    assert walk.complaints() == []


def test_the_keyboard_moves_zooms_and_opens(walk: Page) -> None:
    low, high = settled(walk)
    walk.run(f"{_LANES}.focus()")
    press(walk, "d")
    walk.wait(f"return Number({_FIGURE}.dataset.from) > {low}")
    press(walk, "w")
    walk.wait(f"return Number({_FIGURE}.dataset.to) - Number({_FIGURE}.dataset.from) < {0.9 * (high - low)}")
    press(walk, "]")
    walk.wait(f"return {_FIGURE}.querySelector('[data-walk=iteration]').value === '4'")
    press(walk, "f")
    walk.wait(f"return Number({_FIGURE}.dataset.to) - Number({_FIGURE}.dataset.from) > {6 * (high - low)}")
    height = f"{_LANES}.clientHeight"
    before = walk.run(f"return {height}")
    press(walk, "o")
    walk.wait(f"return {height} !== {before}")
    assert walk.complaints() == []


def test_arrow_keys_reach_every_block_and_say_what_it_is(walk: Page) -> None:
    # given rank 2, opened, in iteration 3
    settled(walk)
    walk.run(f"{_LANES}.focus()")
    told = f"{_FIGURE}.querySelector('[data-walk=readout]').textContent"

    # when the row below is chosen, which is its communication, and the block after
    press(walk, "ArrowDown")
    walk.wait(f"return {told}.startsWith('rank 2, communication: all_reduce')")
    first = walk.run(f"return {told}")
    press(walk, "ArrowRight")
    walk.wait(f"return {told} !== {first!r}")

    # then further down comes the next rank
    press(walk, "ArrowDown")
    walk.wait(f"return {told}.startsWith('rank 3: ')")
    assert walk.complaints() == []


def test_a_span_that_is_dragged_over_with_shift_is_summed_by_phase(walk: Page) -> None:
    settled(walk)
    drag(walk, at(walk, 0.4, 60), at(walk, 0.6, 60), modifiers=8)
    title = f"{_FIGURE}.querySelector('[data-walk=totals-title]').textContent"
    walk.wait(f"return {title}.startsWith('Selected: ')")
    told = str(walk.run(f"return {_FIGURE}.querySelector('.walk-totals').textContent"))
    assert "compute" in told
    assert "rank 2" in told


def test_the_same_rank_in_a_normal_iteration_is_shown_below_it(walk: Page) -> None:
    settled(walk)
    height = walk.run(f"return {_LANES}.clientHeight")
    walk.run(f"{_FIGURE}.querySelector('[data-walk=compare]').click()")
    walk.wait(f"return {_LANES}.clientHeight > {height}")
    told = str(walk.run(f"return {_FIGURE}.querySelector('[data-walk=totals]').textContent"))
    normal = str(walk.run(f"return {_FIGURE}.querySelector('[data-walk=compare]').textContent")).split()[-1]
    assert f"rank 2 in iteration {normal}" in told
    assert walk.complaints() == []


def test_a_phase_can_be_switched_off(walk: Page) -> None:
    picture = f"{_LANES}.toDataURL()"
    settled(walk)
    before = walk.run(f"return {picture}")
    button = f"{_FIGURE}.querySelector('[data-phase=compute]')"
    walk.run(f"{button}.click()")
    assert walk.run(f"return {button}.getAttribute('aria-pressed')") == "false"
    walk.wait(f"return {picture} !== {before!r}")


def test_two_fingers_that_part_zoom_in_between_them(walk: Page) -> None:
    before, (x, y) = settled(walk), at(walk, 0.6, 60)
    walk.command("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=2)
    for kind, apart in (("touchStart", 30), ("touchMove", 60), ("touchMove", 120)):
        fingers = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        walk.command("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)
    walk.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    walk.command("Emulation.setTouchEmulationEnabled", enabled=False)

    after = settled(walk)
    assert after[1] - after[0] == pytest.approx((before[1] - before[0]) / 4, rel=0.1)
    assert before[0] < after[0] < after[1] < before[1]


def test_what_is_searched_for_is_counted(walk: Page) -> None:
    settled(walk)
    field = f"{_FIGURE}.querySelector('[data-walk=search]')"
    walk.run(f"{field}.value = 'all_reduce'; {field}.dispatchEvent(new Event('input'))")
    walk.wait(f"return /^“all_reduce”: [1-9]/.test({_FIGURE}.querySelector('[data-walk=readout]').textContent)")


def test_a_click_on_the_strip_opens_that_iteration(walk: Page) -> None:
    strip = f"{_FIGURE}.querySelector('[data-walk=strip]')"
    place = walk.run(
        f"const own = {strip}.getBoundingClientRect(); return [own.left + own.width * 6.5 / 8, own.top + 20]"
    )
    assert isinstance(place, list)
    mouse(walk, "mousePressed", (place[0], place[1]), clickCount=1)
    mouse(walk, "mouseReleased", (place[0], place[1]), clickCount=1)
    walk.wait(f"return {_FIGURE}.querySelector('[data-walk=iteration]').value === '6'")


def test_a_hostile_name_under_the_pointer_is_text(page: Page, hostile_report: Report, tmp_path: Path) -> None:
    # given a job whose hosts, groups and causes all try to run a script
    page.open(hostile_report.html, tmp_path)
    page.wait(f"return {_FIGURE}.dataset.ready !== undefined")
    page.run(f"{_FIGURE}.scrollIntoView({{block: 'start', behavior: 'instant'}})")

    # when the pointer goes over every row, and a block is clicked
    height = page.run(f"return {_LANES}.clientHeight")
    assert isinstance(height, int)
    told = set()
    for y in range(44, height, 9):
        for x in (0.6, 0.9):
            mouse(page, "mouseMoved", at(page, x, y), button="none")
            words, elements = page.run(f"return [{_TIP}.textContent, {_TIP}.children.length]")  # type: ignore[misc]
            told.add(str(words))
            assert elements == 0
        mouse(page, "mousePressed", at(page, 0.9, y), clickCount=1)
        mouse(page, "mouseReleased", at(page, 0.9, y), clickCount=1)

    # then the words are words
    assert any("</script>" in words for words in told)
    assert page.run("return window.PWNED") is None
    assert page.run(f"return {_FIGURE}.querySelector('img')") is None
    assert "window.PWNED=1" in str(page.run(f"return {_FIGURE}.querySelector('[data-walk=strip-text]').textContent"))
    assert page.complaints() == []


def test_the_timeline_writes_durations_as_the_sentences_do(page: Page, late_report: Report, tmp_path: Path) -> None:
    # given durations at which digits or units change, in µs
    durations = (
        1,
        9,
        99,
        100,
        806,
        999,
        1_000,
        9_994,
        9_996,
        99_940,
        99_960,
        999_400,
        999_600,
        1_107_000,
        12_345_678,
        1_134_000_000,
    )
    page.open(late_report.html, tmp_path)

    # when the timeline's own function writes them
    told = page.run(f"{asset('timeline_data.js')}; return {list(durations)}.map((us) => readable(us, 1))")

    # then they read like anywhere else on the page
    spaces = str.maketrans({" ": "\N{NO-BREAK SPACE}", ",": "\N{NARROW NO-BREAK SPACE}"})
    assert told == [format_ns(1_000 * us).translate(spaces) for us in durations]


def test_lanes_can_be_laid_out_by_the_axes_of_the_parallel_layout(page: Page, tmp_path: Path) -> None:
    # given eight ranks on two hosts, in four stages of two
    page.open((ROOT / "reports" / "slow_stage" / "report.html").read_text(encoding="utf-8"), tmp_path)
    page.wait(f"return {_FIGURE}.dataset.ready !== undefined")
    chosen = f"{_FIGURE}.querySelector('[data-walk=lanes-by]')"
    assert page.run(f"return [...{chosen}.options].map((one) => one.text)") == [
        "host", "pipeline stage", "data parallel"
    ]  # fmt: skip

    # when they are laid out by stage, by replica, and by host again
    heights = []
    for axis in ("", "pp", "dp", ""):
        page.run(f"const own = {chosen}; own.value = '{axis}'; own.dispatchEvent(new Event('change'))")
        heights.append(page.run(f"return {_LANES}.clientHeight"))

    # then each layout has a height of its own, and the first one comes back
    by_host, by_stage, by_replica, again = heights
    assert len({by_host, by_stage, by_replica}) > 1
    assert by_host == again
    assert page.complaints() == []


def test_many_hosts_are_drawn_in_blocks_that_open_into_hosts(page: Page, tmp_path: Path) -> None:
    # given 64 ranks on 32 hosts, of which rank 37 is late
    with store_of(Job(64, 6, late_rank=37, ranks_per_host=2)) as store:
        html = build_report(store, run_id=1, versions={}, command=None).html
    page.open(html, tmp_path)
    page.wait(f"return {_FIGURE}.dataset.ready !== undefined")
    height = f"return {_LANES}.clientHeight"
    before = int(str(page.run(height)))

    # then the hosts take less room than 32 rows of their own, and a click on the first block opens it
    assert before < 32 * 18
    page.run(f"{_FIGURE}.scrollIntoView({{block: 'start', behavior: 'instant'}})")
    place = at(page, 0.02, 48)
    mouse(page, "mousePressed", place, clickCount=1)
    mouse(page, "mouseReleased", place, clickCount=1)
    page.wait(f"return {_LANES}.clientHeight > {before}")
    assert page.complaints() == []


def test_hosts_of_stated_racks_are_drawn_by_rack(page: Page, tmp_path: Path) -> None:
    # given eight hosts of two ranks, every other one in rack r0, of which node0 and node2 have a culprit
    with borrowed(Job(16, 6, late_rank=5, ranks_per_host=2)) as store:
        for host in range(8):
            store.execute("INSERT INTO align.rack VALUES (1, ?, ?)", [f"node{host}", f"r{host % 2}"])
        html = build_report(store, run_id=1, versions={}, command=None).html
    page.open(html, tmp_path)
    page.wait(f"return {_FIGURE}.dataset.ready !== undefined")
    height = f"return {_LANES}.clientHeight"
    before = int(str(page.run(height)))

    # when the first row is clicked, which is what is left of rack r0
    page.run(f"{_FIGURE}.scrollIntoView({{block: 'start', behavior: 'instant'}})")
    place = at(page, 0.02, 48)
    mouse(page, "mousePressed", place, clickCount=1)
    mouse(page, "mouseReleased", place, clickCount=1)
    page.wait(f"return {_LANES}.clientHeight > {before}")

    # then there are node4 and node6 of 18 px each, and the rack's name in the room that it had
    assert int(str(page.run(height))) - before == 2 * 18
    assert page.complaints() == []
