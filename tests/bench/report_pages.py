"""`python -m tests.bench.report_pages [--axe axe.min.js] REPORT.html...`: pages in a browser; writes report_pages.json.

Of each page, at 1,280 px: its size, its height and its stops for the keyboard before a tab is opened, when the timeline
listens, requests, what the console holds, and whether a click on the first finding opens its moment with the culprit's
block outlined. At 400 px: whether it scrolls sideways. With a script of axe-core (npm package of that name): rules
violated with all tabs laid out, light and dark. `misses` names what exceeds a limit.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.report.browser import Page, chromium
from tests.report.budgets import STOPS, open_first_finding, settled, violations

RESULTS = Path(__file__).parent / "results" / "report_pages.json"
_LIMITS = {"html_mb": 5.0, "height_px": 3_500, "stops": 40, "ready_ms": 1_000, "requests": 1, "complaints": 0}


def pace_of(page: Page, html: str, folder: Path, axe: str) -> dict[str, Any]:
    """What one page does."""
    page.open(html, folder)
    settled(page)
    found: dict[str, Any] = {
        "html_mb": round(len(html.encode()) / 1e6, 2),
        "height_px": page.run("return document.documentElement.scrollHeight"),
        "stops": page.run(STOPS),
        "ready_ms": float(str(page.run("return document.querySelector('#figure-timeline')?.dataset.ready ?? 0"))),
        "first_finding": open_first_finding(page),
        "requests": len(page.requests()),
    }
    found["axe"] = sorted(
        {rule for scheme in ("light", "dark") for rule in violations(page, html, folder, scheme, axe)}
    )
    page.open(html, folder, width=400)
    page.draw_all()
    page.run("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    found["is_wide_at_400_px"] = page.run("return document.documentElement.scrollWidth > innerWidth")
    found["complaints"] = len(page.complaints())
    return found


def misses(pages: dict[str, dict[str, Any]]) -> list[str]:
    """What exceeds a limit, such as `a: stops 41`."""
    said = [
        f"{name}: {key} {page[key]}"
        for name, page in pages.items()
        for key, most in _LIMITS.items()
        if page[key] > most
    ]
    said += [f"{name}: axe {rule}" for name, page in pages.items() for rule in page["axe"]]
    said += [f"{name}: scrolls sideways" for name, page in pages.items() if page["is_wide_at_400_px"]]
    return said + [f"{name}: no moment" for name, page in pages.items() if page["first_finding"] == "not shown"]


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--axe", type=Path)
    parser.add_argument("pages", type=Path, nargs="+")
    asked = parser.parse_args()
    axe = asked.axe.read_text(encoding="utf-8") if asked.axe else ""
    pages = {}
    with tempfile.TemporaryDirectory() as folder, chromium() as page:
        for file in asked.pages:
            name = file.parent.name if file.stem == "report" else file.stem
            pages[name] = pace_of(page, file.read_text(encoding="utf-8"), Path(folder), axe)
            print(name, json.dumps(pages[name]), flush=True)
    kept = {"limits": _LIMITS, "axe": bool(axe), "misses": misses(pages), "pages": pages}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(*kept["misses"], sep="\n")


if __name__ == "__main__":
    main()
