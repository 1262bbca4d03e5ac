"""The action for GitHub: its script, as it stands in the file, run in bash with the program of this checkout."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT

ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
SCRIPT = textwrap.dedent(ACTION.rpartition("      run: |\n")[2])
NAMES = re.findall(r"^        ([A-Z]+): \$\{\{ inputs\.", ACTION, re.MULTILINE)


def act(folder: Path, traces: Path, **inputs: str) -> tuple[int, str, str]:
    """Exit code, what stands on the page of the job, and the outputs."""
    program = folder / "traceforge" / "bin" / "traceforge"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m traceforge "$@"\n')
    program.chmod(0o755)
    page, outputs = folder / "page.md", folder / "outputs"
    given = {"TRACES": str(traces), "REPORT": str(folder / "r.html"), "SUMMARY": str(folder / "s.json")} | inputs
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(folder), "GITHUB_STEP_SUMMARY": str(page),
        "GITHUB_OUTPUT": str(outputs), "TMPDIR": str(folder), **dict.fromkeys(NAMES, ""), **given,
    }  # fmt: skip
    done = subprocess.run(["bash", "-c", SCRIPT], env=environment, cwd=folder, timeout=280, check=False)
    shown, said = (file.read_text(encoding="utf-8") if file.exists() else "" for file in (page, outputs))
    return done.returncode, shown, said


CASES = [("iteration_ms=10000\ncv=50%", 0), ("iteration_ms=1; exit 0", 2), ("iteration_ms=1", 10)]


@pytest.mark.parametrize(("limits", "code"), CASES)
def test_the_page_shows_the_first_screen_and_the_code_is_that_of_check(
    limits: str, code: int, tmp_path: Path, sample_database: Callable[..., Path]
) -> None:
    ended, page, outputs = act(tmp_path, sample_database("healthy"), LIMITS=limits)

    assert ended == code
    assert outputs == f"exit-code={code}\n"
    assert page.startswith("### healthy")
    assert ("iteration" in page.partition("<sub>")[2]) is (code in {0, 10})
    assert (tmp_path / "r.html").exists()
    assert (tmp_path / "s.json").exists()


def test_traces_that_a_workflow_leaves_empty_are_refused_and_not_looked_for_in_the_current_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "rank0.json").write_text('{"traceEvents": []}')

    assert act(tmp_path, tmp_path, TRACES="") == (2, "", "exit-code=2\n")
    assert not (tmp_path / "r.html").exists()


def test_a_baseline_is_compared_with_before_the_new_summary_takes_its_place(
    tmp_path: Path, sample_database: Callable[..., Path]
) -> None:
    # given the summary of a healthy job where the next one is written to, as a build that passes it on has it
    assert act(tmp_path, sample_database("healthy"))[0] == 0

    # when a slower job is held against it
    ended, _, _ = act(tmp_path, sample_database("compute_straggler"), BASELINE=str(tmp_path / "s.json"))

    # then it is compared with the healthy one, and its own summary is there for the next build
    assert ended == 10
    assert "Rank 2" in (tmp_path / "s.json").read_text(encoding="utf-8")


def test_traces_that_cannot_be_read_leave_their_code_to_later_steps_too(tmp_path: Path) -> None:
    ended, page, outputs = act(tmp_path, tmp_path / "no_such_traces")

    assert (ended, page, outputs) == (3, "", "exit-code=3\n")


def test_no_input_is_written_into_a_script() -> None:
    scripts = re.findall(r"run: (.*(?:\n {8,}.*)*)", ACTION)

    assert len(scripts) == 2
    assert [text for text in scripts if "${{" in text] == []
