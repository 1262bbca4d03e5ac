"""Rules of axe-core that pages violate, in both colour schemes, with all tabs and folds open: none.

Three kinds of pages stand for all: a finding with the fabric's figures, a pipeline, and a run without a culprit. The
bench `report_pages` goes over all pages with the axe of the day.
"""

from importlib import resources
from pathlib import Path

import pytest

from tests.conftest import ROOT

from .browser import Page
from .budgets import violations

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def axe() -> str:
    """The script that looks for violations."""
    package = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    return (resources.files(package) / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("sample", ["far_nic", "slow_stage", "healthy"])
def test_a_page_violates_no_rule_of_accessibility(
    page: Page, axe: str, tmp_path: Path, sample: str, scheme: str
) -> None:
    html = (ROOT / "reports" / sample / "report.html").read_text(encoding="utf-8")

    assert violations(page, html, tmp_path, scheme, axe) == set()


def test_a_page_without_names_and_contrast_is_told(page: Page, axe: str, tmp_path: Path) -> None:
    html = "<!doctype html><html><title>t</title><body><button></button><p style='color:#aaa'>pale</p></body></html>"

    assert {"button-name", "html-has-lang", "color-contrast"} <= violations(page, html, tmp_path, "light", axe)
