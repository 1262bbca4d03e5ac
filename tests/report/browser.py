"""A real browser for a page on disk. In: HTML. Out: what a reader, a reviewer or an attacker would see happen.

Chromium without a window, with a fresh profile. It is told to note every breach of the page's policy and every
request before the page's own scripts run.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)
_WATCH = """
window.BREACHES = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.BREACHES.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""
_DEADLINE_S = 60.0


class Page:
    """An open page."""

    def __init__(self, driver: object) -> None:
        self.driver = driver

    def run(self, script: str) -> object:
        """The value of a script, run by the test and not by the page."""
        return self.driver.execute_script(script)  # type: ignore[attr-defined]

    def command(self, name: str, **parameters: object) -> dict[str, object]:
        """A command of the browser's debugging protocol."""
        answer: dict[str, object] = self.driver.execute_cdp_cmd(name, parameters)  # type: ignore[attr-defined]
        return answer

    def open(self, html: str, folder: Path, *, scheme: str = "light", width: int = 1280) -> None:
        """Write a page to disk and open it from there."""
        file = folder / "report.html"
        file.write_text(html, encoding="utf-8")
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)  # type: ignore[attr-defined]
        self.driver.get(file.as_uri())  # type: ignore[attr-defined]
        # A busy machine gives the page back before its scripts have run.
        self.wait("return document.readyState === 'complete'")

    def show(self, selector: str) -> None:
        """Open the tab that an element lies on, and bring it into view."""
        self.run(
            f"const found = document.querySelector({json.dumps(selector)}), panel = found.closest('.tab-panel');"
            "if (panel && panel.hidden) document.querySelector(`[aria-controls=${panel.id}]`).click();"
            "found.scrollIntoView({block: 'center', behavior: 'instant'})"
        )

    def show_all(self) -> None:
        """Lay all tabs out below one another, as for a printer; then nothing is measured as hidden."""
        self.run("document.querySelectorAll('.tab-panel').forEach((panel) => { panel.hidden = false; })")

    def draw_all(self) -> None:
        """Bring every chart into view, as opening its tab and scrolling do, and wait until it is drawn."""
        self.show_all()
        count = self.run("return document.querySelectorAll('.chart').length")
        assert isinstance(count, int)
        for number in range(count):
            chart = f"document.querySelectorAll('.chart')[{number}]"
            self.run(f"{chart}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
            self.wait(f"return {chart}.dataset.state === 'drawn'")

    def wait(self, script: str, patience_s: float = _DEADLINE_S) -> None:
        """Until a script is true."""
        end = time.monotonic() + patience_s
        while not self.run(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)

    def complaints(self) -> list[str]:
        """Breaches of the policy, and whatever the console holds."""
        breaches = self.run("return window.BREACHES")
        assert isinstance(breaches, list)
        return [*breaches, *(entry["message"] for entry in self.driver.get_log("browser"))]  # type: ignore[attr-defined]

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened."""
        log = self.driver.get_log("performance")  # type: ignore[attr-defined]
        messages = [json.loads(entry["message"])["message"] for entry in log]
        return [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]


@contextmanager
def chromium() -> Iterator[Page]:
    """A browser, or a skipped test that says why."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary = next((path for name in _CHROMIUM if (path := shutil.which(name))), None)
    driver_path = shutil.which("chromedriver")
    if binary is None or driver_path is None:
        pytest.skip("no chromium or no chromedriver on this machine")
    with tempfile.TemporaryDirectory(prefix="traceforge-browser-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(executable_path=driver_path)
        driver = webdriver.Chrome(options=options, service=service)
        try:
            page = Page(driver)
            page.command("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
            yield page
        finally:
            driver.quit()
