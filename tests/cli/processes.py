"""Commands as processes of their own, on jobs that are large or slow. Out: what they said and what lives on."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import ROOT

PATIENCE_S = 30
LARGE_EVENTS = 250_001  # more than half of what is looked at together, see align/rank_batches.py


def trace(rank: int, events: int = 50) -> bytes:
    listed = [
        {"ph": "X", "cat": "cpu_op", "name": f"op {n % 50}", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5}
        for n in range(events)
    ]
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": listed}).encode()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(4):
        (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(trace(rank)))
    return folder


@pytest.fixture
def slow_job(tmp_path: Path) -> Path:
    """Two ranks that take seconds to read, even by the fast reader: nothing in them is plain."""
    folder = tmp_path / "slow"
    folder.mkdir()
    for rank in range(2):
        events = b",".join(
            [b'{"ph": "X", "cat": "cpu_op", "name": "\\ud800", "pid": [1], "tid": 1, "ts": "x", "dur": 1}'] * 300_000
        )
        (folder / f"rank{rank}.json").write_bytes(b'{"schemaVersion": 1, "traceEvents": [' + events + b"]}")
    return folder


@pytest.fixture
def large_job(tmp_path: Path) -> Path:
    """Two ranks of so many operations that each is a part of the tables by itself."""
    folder = tmp_path / "large"
    folder.mkdir()
    for rank in range(2):
        (folder / f"rank{rank}.json").write_bytes(trace(rank, LARGE_EVENTS))
    return folder


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    (tmp_path / "tmp").mkdir(exist_ok=True)
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp"), "COLUMNS": "200", **more}


def started(tmp_path: Path, *words: object) -> subprocess.Popen[str]:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background would ignore it
    return subprocess.Popen(
        [sys.executable, "-m", "traceforge", *map(str, words)],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(tmp_path: Path, words: Sequence[object], **more: object) -> subprocess.CompletedProcess[str]:
    given = {"env": environment(tmp_path), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run(
        [sys.executable, "-m", "traceforge", *map(str, words)],
        text=True,
        check=False,
        timeout=120,
        **given,  # type: ignore[call-overload]
    )


def children_of(pid: int) -> set[int]:
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.add(int(status.parent.name))
    return found


def readers_of(process: subprocess.Popen[str]) -> set[int]:
    """The processes that read for another one, once there are some, and their helper."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if len(found := children_of(process.pid)) >= 3:
            return found
        time.sleep(0.05)
    raise AssertionError("no readers were started")


def all_gone(pids: set[int]) -> bool:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        if not any(_lives(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def found_below(folder: Path, pattern: str) -> list[Path]:
    """What a pattern finds; nothing where folders go while it looks."""
    try:
        return list(folder.glob(pattern))
    except FileNotFoundError:
        return []
