"""`python -m tests.bench.first_paint`: when a reader first sees a report; writes results/first_paint.json.

Chromium opens each page from disk, three times in turn with a page of one word, the peer in the same run. First paint
is the browser's own entry, in ms since the page was asked for; medians.
"""

import json
import statistics
import tempfile
from pathlib import Path

from tests.report.browser import Page, chromium
from tests.report.tables import Job, store_of
from traceforge.report import build_report

RESULTS = Path(__file__).parent / "results" / "first_paint.json"
_BARE = "<!doctype html><html lang='en'><title>bare</title><body>one</body></html>"
_ROUNDS = 3
_PAINT = "const paint = performance.getEntriesByName('first-contentful-paint')[0];return paint ? paint.startTime : 0"
_VERDICT = "return document.querySelector('.headline, body').getBoundingClientRect().top < innerHeight"


def report_of(job: Job) -> str:
    """The page of a job."""
    with store_of(job) as store:
        return build_report(store, run_id=1, versions={}, command=None).html


def first_paint_ms(page: Page, html: str, folder: Path) -> float:
    """First contentful paint of a page opened from disk, ms."""
    page.open(html, folder)
    page.wait(f"return (() => {{ {_PAINT} }})() > 0")
    assert page.run(_VERDICT), "the verdict is not on the first screen"
    return float(str(page.run(_PAINT)))


def main() -> None:
    """Measure, print and keep."""
    pages = {
        "one_word": _BARE,
        "4_ranks_x_30_iterations": report_of(Job(iterations=30)),
        "512_ranks_x_50_iterations": report_of(Job(ranks=512, iterations=50, late_rank=37, pieces=10)),
    }
    found: dict[str, list[float]] = {name: [] for name in pages}
    with tempfile.TemporaryDirectory() as folder, chromium() as page:
        for _ in range(_ROUNDS):
            for name, html in pages.items():
                found[name].append(first_paint_ms(page, html, Path(folder)))
    kept = {
        name: {"first_paint_ms": round(statistics.median(times)), "html_mb": round(len(pages[name].encode()) / 1e6, 2)}
        for name, times in found.items()
    }
    text = json.dumps(kept, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
