"""Commands run for a test. In: arguments. Out: exit code and both streams.

`run` calls the command line inside this process, which spares the start of an interpreter; `run_process` starts one,
for what only a process shows: its exit code, its streams, its environment.
"""

import io
import os
import subprocess
import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tests.conftest import ROOT
from traceforge.cli import main

SAMPLE = ROOT / "sample_traces" / "healthy"


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object, stdin: str = "") -> Finished:
    """A command in this process, which reads its files one by one and never the terminal of whoever runs the tests."""
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    kept = {name: value for name, value in os.environ.items() if name != "TRACEFORGE_DEBUG"}
    with (
        mock.patch.object(sys, "argv", ["traceforge", *map(str, arguments)]),
        mock.patch.multiple(sys, stdin=given, stdout=out, stderr=err),
        mock.patch.dict(os.environ, {**kept, "COLUMNS": "100"}, clear=True),
        mock.patch("os.cpu_count", return_value=1),
        chdir(ROOT),
    ):
        code = _exit_code()
    return Finished(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]


def _exit_code() -> int:
    try:
        main()
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    return 0


def run_process(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "traceforge", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder or ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
        input="",
        timeout=300,
        check=False,
    )
