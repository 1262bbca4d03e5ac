"""The page undoes the compression of its data by itself, and at once: it may be printed as soon as it is loaded."""

import base64
import json
import random
import zlib
from pathlib import Path

import pytest

from traceforge.report import Report
from traceforge.report.bundle import asset

from .browser import Page

pytestmark = pytest.mark.browser

_NOTED = (
    "addEventListener('load', () => {"
    "window.WAS_READY = document.querySelector('#figure-timeline').dataset.ready !== undefined })"
)


def packed(text: str, level: int, strategy: int) -> str:
    packer = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
    return base64.b64encode(packer.compress(text.encode("ascii")) + packer.flush()).decode("ascii")


@pytest.mark.parametrize(
    ("level", "strategy"),
    [(0, zlib.Z_DEFAULT_STRATEGY), (1, zlib.Z_FIXED), (9, zlib.Z_DEFAULT_STRATEGY), (6, zlib.Z_HUFFMAN_ONLY)],
    ids=["stored", "fixed codes", "own codes", "no repeats"],
)
def test_what_was_compressed_comes_back(page: Page, tmp_path: Path, level: int, strategy: int) -> None:
    # given texts without, with near, with far and with no repeats (a fixed seed), larger than a stored block holds
    letters = random.Random(7).choices("0123456789,[]-", k=70_000)  # noqa: S311  # no secret
    texts = ["", "a", "ab" * 400, "".join(letters), json.dumps(list(range(9_000))) * 2]
    page.open("<!doctype html><title>bare</title>", tmp_path)

    for text in texts:
        script = f"{asset('timeline_inflate.js')}; return inflated({json.dumps(packed(text, level, strategy))})"
        assert page.run(script) == text


def test_what_is_cut_short_is_an_error(page: Page, tmp_path: Path) -> None:
    half = packed("0,1,2,3,4,5,6,7" * 50, 9, zlib.Z_DEFAULT_STRATEGY)[:16]
    page.open("<!doctype html><title>bare</title>", tmp_path)

    attempt = f"try {{ return inflated({json.dumps(half)}) }} catch (found) {{ return found.message }}"
    told = page.run(f"{asset('timeline_inflate.js')}; {attempt}")
    assert told == "the timeline's data are cut short"


def test_the_timeline_is_drawn_before_the_page_counts_as_loaded(
    page: Page, late_report: Report, tmp_path: Path
) -> None:
    # given a browser that prints as soon as a page is loaded, as `chromium --print-to-pdf` does
    noted = page.command("Page.addScriptToEvaluateOnNewDocument", source=_NOTED)["identifier"]
    try:
        page.open(late_report.html, tmp_path)
        page.wait("return window.WAS_READY !== undefined")
    finally:
        page.command("Page.removeScriptToEvaluateOnNewDocument", identifier=noted)

    assert page.run("return window.WAS_READY") is True
