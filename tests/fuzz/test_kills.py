"""A kill at the same moment each time; `tests/fuzz/kills.py` is run by hand for hundreds."""

import random
from pathlib import Path

import pytest

from tests.fuzz.kills import Judge, small_job


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc for processes")
def test_a_killed_command_leaves_nothing_and_runs_again(tmp_path: Path) -> None:
    judge, source = Judge(small_job(tmp_path), tmp_path), random.Random(1)  # noqa: S311 - to be repeated
    judge.prepare()

    judge.kill("ingest by two", source)
