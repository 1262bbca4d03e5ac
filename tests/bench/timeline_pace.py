"""`python -m tests.bench.timeline_pace`: how fast a report's timeline moves; writes results/timeline_pace.json.

Chromium without a graphics card opens each page from disk, drags the timeline for 2.5 s and zooms it for 2.5 s, over
one iteration and the whole run. Frames are those of requestAnimationFrame, each with a move of its own. The peer, in
the same run, is a page of one word that asks for frames and draws nothing. Interactive is when the timeline has been
drawn and listens, since the page was asked for.
"""

import json
import tempfile
from pathlib import Path

from tests.report.browser import Page, chromium
from tests.report.tables import Job, store_of
from traceforge.report import build_report

RESULTS = Path(__file__).parent / "results" / "timeline_pace.json"
_BARE = "<!doctype html><html lang='en'><title>bare</title><body>one</body></html>"
_LASTING_MS = 2_500
_FRAMES = """
const done = arguments[arguments.length - 1];
const [act, lasting] = [new Function("frame", arguments[0]), arguments[1]];
let [count, began] = [0, performance.now()];
const step = () => {
  const passed = performance.now() - began;
  act(count);
  count += 1;
  if (passed < lasting) requestAnimationFrame(step);
  else done((1000 * count) / passed);
};
requestAnimationFrame(step);
"""
_CANVAS = "document.querySelector('[data-walk=lanes]')"
_SEND = (
    f"const canvas = {_CANVAS}; const box = canvas.getBoundingClientRect(); const x = box.left + 0.6 * box.width;"
    "canvas.setPointerCapture = () => {};"
    "const send = (Kind, type, more) => canvas.dispatchEvent(new Kind(type, {pointerId: 1, clientY: box.top + 60,"
    " clientX: x, bubbles: true, cancelable: true, ...more}));"
)
_PAN = _SEND + (
    "if (frame === 0) send(PointerEvent, 'pointerdown', {});"
    "send(PointerEvent, 'pointermove', {clientX: x + 80 * Math.sin(frame / 10)});"
)
_DROP = _SEND + "send(PointerEvent, 'pointerup', {clientX: x + 9});"
_ZOOM = _SEND + "send(WheelEvent, 'wheel', {deltaY: frame % 40 < 20 ? -30 : 30, ctrlKey: true});"


def frames_per_second(page: Page, act: str) -> float:
    """Frames a second while each frame does something."""
    page.driver.set_script_timeout(60)  # type: ignore[attr-defined]
    found = page.driver.execute_async_script(_FRAMES, act, _LASTING_MS)  # type: ignore[attr-defined]
    return round(float(found), 1)


def pace_of(page: Page, html: str, folder: Path) -> dict[str, float]:
    """What one page does."""
    page.open(html, folder)
    page.wait("return document.querySelector('#figure-timeline').dataset.ready !== undefined")
    found: dict[str, float] = {"html_mb": round(len(html.encode()) / 1e6, 2)}
    found["interactive_ms"] = float(str(page.run("return document.querySelector('#figure-timeline').dataset.ready")))
    page.run("document.querySelector('#figure-timeline').scrollIntoView({block: 'start', behavior: 'instant'})")
    for part in ("iteration", "run"):
        if part == "run":
            page.run("document.querySelector('[data-walk=fit]').click()")
            page.wait("return document.querySelector('[data-walk=totals-title]').textContent.includes('iterations')")
        found[f"pan_{part}_fps"] = frames_per_second(page, _PAN)
        page.run(_DROP)
        found[f"zoom_{part}_fps"] = frames_per_second(page, _ZOOM)
    return found


def main() -> None:
    """Measure, print and keep."""
    jobs = {
        "64_ranks_x_50_iterations": Job(ranks=64, iterations=50, late_rank=37, ranks_per_host=8, pieces=40),
        "512_ranks_x_50_iterations": Job(ranks=512, iterations=50, late_rank=37, ranks_per_host=8, pieces=20),
    }
    with tempfile.TemporaryDirectory() as folder, chromium() as page:
        page.open(_BARE, Path(folder))
        kept = {"one_word": {"fps": frames_per_second(page, "")}}
        for name, job in jobs.items():
            with store_of(job) as store:
                html = build_report(store, run_id=1, versions={}, command=None).html
            kept[name] = pace_of(page, html, Path(folder))
    text = json.dumps(kept, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
